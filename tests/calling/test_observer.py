"""What a running call notifies its observers of."""

import pytest

from opentabs_py.calling.observer import ProgressObserver
from opentabs_py.core.progress import ProgressReport


def test_a_function_that_fails_for_one_report_is_logged_and_gets_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received = list[float | None]()

    def handle(report: ProgressReport) -> None:
        received.append(report.progress)
        if report.progress == 1:
            raise KeyError("no such bar")

    ProgressObserver(handle).on_reports([ProgressReport(1, 1.0), ProgressReport(2, 2.0)])

    assert received == [1, 2]
    assert "no such bar" in caplog.text
