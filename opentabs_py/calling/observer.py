"""The interface for observers of a running call."""

import logging
import time
from collections.abc import Callable, Sequence

from opentabs_py.calling.clock import Clock, wall_clock
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.recorder import CallRecorder, Instant

logger = logging.getLogger(__name__)


class CallObserver:
    """Is notified of what a call does; override what you need.

    No method may block. What one raises is logged.
    """

    def on_sent(self) -> None:
        """Handle the departure of the call to its tool."""

    def on_begun(self) -> None:
        """Called when the tool starts; for tools in pages, only of calls that are traced."""

    def on_waiting(self, why: str, /) -> None:
        """Called when the call begins to wait for the user, and every few seconds while it does."""

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Handle a batch of reports; batches arrive in order, each report once."""

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        """Handle what the call's plugin logs in the call's page."""


class ProgressObserver(CallObserver):
    """Passes each report to a function; the call goes on if that fails.

    Only its first error is logged: a call may report ten thousand times.
    """

    def __init__(self, handle: Callable[[ProgressReport], object]) -> None:
        self._handle = handle
        self._has_failed = False

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Pass them on, one by one."""
        for report in reports:
            try:
                self._handle(report)
            except Exception:  # a program's own function
                if not self._has_failed:
                    logger.exception("The function that receives a call's progress failed")
                self._has_failed = True


def progress_observers(
    handle: Callable[[ProgressReport], object] | None,
) -> tuple[CallObserver, ...]:
    """Return the observers for an optional function that receives reports."""
    return () if handle is None else (ProgressObserver(handle),)


class RecorderObserver(CallObserver):
    """Records what a call does, and when.

    Args:
        recorder: The call's recorder.
        clock: The clock of the call's timers.
    """

    def __init__(self, recorder: CallRecorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Record the batch."""
        self._recorder.record_progress(reports, instant(self._clock))

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        """Record the log entries."""
        self._recorder.record_logs(entries, instant(self._clock))


def instant(clock: Clock) -> Instant:
    """Return the current time, for a recorder."""
    return Instant(wall=wall_clock(), monotonic=time.monotonic(), timer=clock.now())
