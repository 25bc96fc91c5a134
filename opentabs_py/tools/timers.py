"""The two timers of a call of a Python tool, as `core/dispatch.py` has them for pages."""

from collections.abc import Callable
from math import inf
from typing import Literal

from opentabs_py.clock import AlarmClock
from opentabs_py.core import failures
from opentabs_py.core.dispatch import CATCH_UP, LATE, Limits
from opentabs_py.errors import CallTimeoutError

Which = Literal["idle", "ceiling"]


class Timers:
    """An idle timer, which signs of life start anew, and a ceiling, which nothing moves.

    To be used on the event loop. A sign of life costs no more than reading the clock.

    Args:
        clock: What they run on.
        limits: When they end what they are of.
        end: Called once, when one of them does.
    """

    def __init__(self, clock: AlarmClock, limits: Limits, end: Callable[[Which], None]) -> None:
        self._clock = clock
        self._limits = limits
        self._end = end
        self._started = self._heard = clock.now()
        self._signs = 0
        self._spared_until = -inf
        self._alarm = clock.set_alarm(self._deadline(), self._ring)

    def hear(self) -> None:
        """Take a sign of life."""
        self._heard = self._clock.now()
        self._signs += 1

    def stop(self) -> None:
        """End nothing any more."""
        self._alarm.cancel()

    def error(self, which: Which) -> CallTimeoutError:
        """Give the error of a call that a timer ended."""
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
        if now - self._deadline() > LATE:  # what the tool waits for may be there to be read
            self._spared_until = now + CATCH_UP
        deadline = self._deadline()
        if deadline > now:
            self._alarm = self._clock.set_alarm(deadline, self._ring)
        else:
            is_idle = self._heard + self._limits.idle < self._started + self._limits.ceiling
            self._end("idle" if is_idle else "ceiling")
