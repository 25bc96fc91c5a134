"""What is reported of a run of pytest; e2e/kit/test_report_page.py has whole runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.runner.board import RunBoard
from opentabs_py.core.runner.events import Collected, Known
from opentabs_py.testing.notes import ScreenshotStore
from opentabs_py.testing.reports.reporting import Reporting

TEST = "tests/test_chat.py::test_search"


def a_report(outcome: Any, when: Any = "call") -> pytest.TestReport:
    place = ("tests/test_chat.py", 1, "test_search")
    error = None if outcome == "passed" else "assert 0"
    return pytest.TestReport(TEST, place, {}, outcome, error, when, duration=1)


def by_rerunfailures(reporting: Reporting) -> None:
    for outcome in ("rerun", "passed"):
        reporting.pytest_runtest_logstart(TEST)
        reporting.pytest_runtest_logreport(a_report("passed", "setup"))
        reporting.pytest_runtest_logreport(a_report(outcome))
        reporting.pytest_runtest_logreport(a_report("passed", "teardown"))
        reporting.pytest_runtest_logfinish(TEST)


def by_retry(reporting: Reporting) -> None:
    reporting.pytest_runtest_logstart(TEST)
    reporting.pytest_runtest_logreport(a_report("passed", "setup"))
    for outcome in ("retried", "passed"):
        reporting.pytest_runtest_logreport(a_report(outcome))
    reporting.pytest_runtest_logreport(a_report("passed", "teardown"))
    reporting.pytest_runtest_logfinish(TEST)


@pytest.mark.parametrize("run", [by_rerunfailures, by_retry])
def test_an_attempt_that_another_plugin_repeats_has_failed(
    run: Callable[[Reporting], None], tmp_path: Path
) -> None:
    board = RunBoard()
    board.handle(Collected(tests=(Known(id=TEST, file="f", path="/f", name="n", line=1),)))

    run(Reporting(board.handle, ScreenshotStore(tmp_path, iter(()), 0)))

    test = board.tests[TEST]
    assert (test.state, [each.outcome for each in test.earlier]) == ("flaky", ["failed"])
