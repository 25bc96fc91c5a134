"""The two timers of a Python tool's call, on a clock."""

from collections.abc import Callable

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.core import failures
from opentabs_py.core.limits import Limits, Timer, Timers
from opentabs_py.errors import CallTimeoutError


class RunningTimers:
    """An idle timer, restarted by activity, and a ceiling, which nothing postpones.

    Use it on the event loop. Recording activity costs no more than reading the clock.

    Args:
        clock: The clock of the timers.
        limits: When they expire.
        end: Called once, when one of them expires.
    """

    def __init__(self, clock: AlarmClock, limits: Limits, end: Callable[[Timer], None]) -> None:
        self._clock = clock
        self._end = end
        self._timers = Timers.start(limits, clock.now())
        self._alarm = clock.set_alarm(self._timers.deadline(), self._ring)

    def record_activity(self) -> None:
        """Record activity, which restarts the idle timer."""
        self._timers.restart_idle(self._clock.now())

    def stop(self) -> None:
        """Stop both timers."""
        self._alarm.cancel()

    def error(self, *, declared: bool) -> CallTimeoutError:
        """Return the error of a call that one of them has just ended.

        Args:
            declared: Whether the tool itself declares the limit of that one.
        """
        return failures.python_tool_timed_out(self._timers, declared=declared)

    def _ring(self) -> None:
        now = self._clock.now()
        self._timers.spare(now, self._timers.deadline())
        deadline, timer = self._timers.deadline(), self._timers.next()[1]
        if deadline > now:
            self._alarm = self._clock.set_alarm(deadline, self._ring)
        else:
            self._end(timer)
