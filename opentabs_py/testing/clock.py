"""A clock for the server's timers that a test can control."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from opentabs_py.bridge.bridge import Bridge
    from opentabs_py.testing.marks import RunsOn
    from opentabs_py.testing.thread import ServerThread

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

Duration = float | str | timedelta
"""Seconds, or `"500ms"`, `"30s"`, `"5m"`, `"1h30m"`, or a `timedelta`."""

SETTLE_WITHIN = 10.0  # s of real time; the effects of a timer take milliseconds
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*")


def in_seconds(duration: Duration) -> float:
    """Convert a duration to seconds.

    Raises:
        ValueError: It is not a valid duration, or it is negative.
    """
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        if re.fullmatch(f"(?:{_PART.pattern})+", duration.strip()) is None:
            raise ValueError(
                f'{duration!r} is not a valid duration; write "500ms", "30s", "5m" or "1h30m"'
            )
        seconds = sum(float(part[1]) * _UNITS[part[2]] for part in _PART.finditer(duration))
    else:
        seconds = float(duration)
    if not 0 <= seconds < inf:
        raise ValueError(f"a clock can only be advanced forward, not by {duration!r}")
    return seconds


class StoppableClock:
    """Runs in real time until it is stopped; from then on only `advance` moves it.

    A `Clock` for one bridge. Call its methods in that bridge's event loop.
    """

    def __init__(self) -> None:
        self._ahead = 0.0  # s ahead of the event loop's time
        self._stopped_at: float | None = None
        self._waiting: tuple[anyio.Event, float] | None = None

    def now(self) -> float:
        """Return the current time."""
        return self._now_going() if self._stopped_at is None else self._stopped_at

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set or the clock is stopped before it."""
        if self._stopped_at is not None and until <= self._stopped_at:
            return
        self._waiting = changed, until
        deadline = until - self._ahead if self._stopped_at is None else inf
        with anyio.CancelScope(deadline=deadline):
            await changed.wait()
        self._waiting = None

    def stop(self) -> None:
        """Stop the clock."""
        self._stopped_at = self.now()
        self._wake()

    def resume(self) -> None:
        """Resume running in real time, from where the clock was stopped."""
        if self._stopped_at is not None:
            self._ahead = self._stopped_at - anyio.current_time()
            self._stopped_at = None
            self._wake()

    async def advance(self, seconds: float, settle: Callable[[], Awaitable[None]]) -> None:
        """Advance the clock, stopping at every timer along the way.

        Args:
            seconds: How far to advance.
            settle: Called after each timer; waits until all its effects are done.
        """
        end = self.now() + seconds
        while (timer := await self._next_timer()) <= end:
            self._stopped_at = max(self.now(), timer)
            self._wake()
            await self._next_timer()
            await settle()
        self._stopped_at = end

    async def _next_timer(self) -> float:
        """Wait until the waiting task has processed everything so far; return its deadline."""
        while self._waiting is None or self._waiting[0].is_set():
            await checkpoint()
        return self._waiting[1]

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting[0].set()

    def _now_going(self) -> float:
        return anyio.current_time() + self._ahead


class Clock:
    """The `opentabs.clock` of a test.

    Attributes:
        is_manual: Whether it stands still until `advance` moves it.

    Args:
        runs_on: The clock that the test or the run selects; None if neither does.
    """

    def __init__(
        self,
        clock: StoppableClock,
        bridge: "Bridge",
        thread: "ServerThread",
        *,
        runs_on: "RunsOn | None",
    ) -> None:
        self.is_manual = runs_on == "manual"
        self._runs_on = runs_on
        self._clock = clock
        self._bridge = bridge
        self._thread = thread

    def advance(self, duration: Duration) -> None:
        """Advance the timers of calls: `advance(29.9)`, `advance("5m")`.

        When it returns, every call whose time was up has ended. With `--opentabs-clock=real`, or
        the mark `clock="real"`, the clock runs in real time, and this waits that long.

        Raises:
            ValueError: It is not a valid duration, or it is negative.
            RuntimeError: Neither the test nor the run selects a clock.
        """
        seconds = in_seconds(duration)
        if self._runs_on is None:
            raise RuntimeError(
                "The clock of this test runs in real time, so it cannot be advanced. Mark the test "
                'with @pytest.mark.opentabs(clock="manual"), or run pytest with '
                '--opentabs-clock=manual; to wait in real time, mark it with clock="real".'
            )
        if self.is_manual:
            advance = self._clock.advance
            self._thread.run(advance, seconds, self._bridge.calls.settle, within=SETTLE_WITHIN)
        else:
            self._thread.sleep(seconds)
