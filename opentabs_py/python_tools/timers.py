"""The two timers of a Python tool's call, like those of `core/dispatch.py` for pages."""

from collections.abc import Callable
from math import inf
from typing import Literal

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.core import failures
from opentabs_py.core.dispatch import CATCH_UP, LATE, Limits
from opentabs_py.errors import CallTimeoutError

Which = Literal["idle", "ceiling"]


class Timers:
    """An idle timer, restarted by activity, and a ceiling, which nothing postpones.

    Use it on the event loop. Recording activity costs no more than reading the clock.

    Args:
        clock: The clock of the timers.
        limits: When they expire.
        end: Called once, when one of them expires.
    """

    def __init__(self, clock: AlarmClock, limits: Limits, end: Callable[[Which], None]) -> None:
        self._clock = clock
        self._limits = limits
        self._end = end
        self._started = self._heard = clock.now()
        self._signs = 0
        self._spared_until = -inf
        self._alarm = clock.set_alarm(self._deadline(), self._ring)

    def record_activity(self) -> None:
        """Record activity, which restarts the idle timer."""
        self._heard = self._clock.now()
        self._signs += 1

    def stop(self) -> None:
        """Stop both timers."""
        self._alarm.cancel()

    def error(self, which: Which) -> CallTimeoutError:
        """Return the error of a call that this timer ended."""
        return failures.python_tool_timed_out(
            which,
            limits=(self._limits.idle, self._limits.ceiling),
            reports=self._signs,
            last_report=self._heard - self._started,
        )

    def _deadline(self) -> float:
        ends = min(self._heard + self._limits.idle, self._started + self._limits.ceiling)
        return max(ends, self._spared_until)

    def _ring(self) -> None:
        now = self._clock.now()
        if now - self._deadline() > LATE:  # what the tool waits for may be ready to read
            self._spared_until = now + CATCH_UP
        deadline = self._deadline()
        if deadline > now:
            self._alarm = self._clock.set_alarm(deadline, self._ring)
        else:
            is_idle = self._heard + self._limits.idle < self._started + self._limits.ceiling
            self._end("idle" if is_idle else "ceiling")
