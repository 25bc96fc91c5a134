"""What a running call notifies its observers of."""

from collections.abc import Callable, Sequence

import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.observer import CallObserver, ProgressObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry


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


def test_of_a_function_that_fails_for_every_report_the_first_error_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def handle(report: ProgressReport) -> None:
        raise KeyError(f"no bar {report.progress}")

    observer = ProgressObserver(handle)
    observer.on_reports([ProgressReport(1, 1.0), ProgressReport(2, 2.0)])
    observer.on_reports([ProgressReport(3, 3.0)])

    [record] = caplog.records
    assert record.exc_info is not None
    assert "no bar 1.0" in str(record.exc_info[1])


class Observer(CallObserver):
    """Notes what it is notified of, and then fails if it is broken."""

    def __init__(self, *, is_broken: bool) -> None:
        self.seen: list[str] = []
        self._is_broken = is_broken

    def _note(self, what: str) -> None:
        self.seen.append(what)
        if self._is_broken:
            raise RuntimeError(f"broken at {what}")

    def on_sent(self) -> None:
        self._note("sent")

    def on_waiting(self, why: str, /) -> None:
        self._note(why)

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        self._note(f"{len(reports)} reports")

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        self._note(f"{len(entries)} entries")


@pytest.mark.parametrize(
    ("notify", "what"),
    [
        (ToolCall.notify_sent, "sent"),
        (lambda call: call.notify_waiting("asks"), "asks"),
        (lambda call: call.notify_progress([ProgressReport(0)]), "1 reports"),
        (lambda call: call.notify_log([LogEntry(level="info", message="", time=0)]), "1 entries"),
    ],
)
def test_an_observer_that_raises_is_logged_and_the_others_are_notified(
    notify: Callable[[ToolCall], None], what: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken, other = Observer(is_broken=True), Observer(is_broken=False)
    notify(ToolCall({}, Limits(), (broken, other)))
    assert broken.seen == other.seen == [what]
    assert f"broken at {what}" in caplog.text
