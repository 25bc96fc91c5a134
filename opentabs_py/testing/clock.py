"""The clock of the server's timers, in the hands of a test."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

if TYPE_CHECKING:
    from opentabs_py.bridge import Bridge
    from opentabs_py.testing.marks import Clock as RunsOn
    from opentabs_py.testing.thread import ServerThread

Duration = float | str | timedelta
"""Seconds, or `"500ms"`, `"30s"`, `"5m"`, `"1h30m"`, or a `timedelta`."""

SETTLE_WITHIN = 10.0  # s of real time; what follows from a timer takes milliseconds
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*")


def in_seconds(duration: Duration) -> float:
    """Give a duration in seconds.

    Raises:
        ValueError: It is none, or negative.
    """
    if isinstance(duration, timedelta):
        seconds = duration.total_seconds()
    elif isinstance(duration, str):
        if re.fullmatch(f"(?:{_PART.pattern})+", duration.strip()) is None:
            raise ValueError(f'{duration!r} is no duration; write "500ms", "30s", "5m", "1h30m"')
        seconds = sum(float(part[1]) * _UNITS[part[2]] for part in _PART.finditer(duration))
    else:
        seconds = float(duration)
    if not 0 <= seconds < inf:
        raise ValueError(f"a clock goes forward only, and {duration!r} is not forward")
    return seconds


class StoppableClock:
    """Goes by itself until it is stopped; from then on only `advance` moves it.

    A `Clock` for one bridge, in whose event loop all of this is to be called.
    """

    def __init__(self) -> None:
        self._ahead = 0.0  # of the event loop's time
        self._stopped_at: float | None = None
        self._waiting: tuple[anyio.Event, float] | None = None

    def now(self) -> float:
        """Give the time."""
        return self._now_going() if self._stopped_at is None else self._stopped_at

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before it, or the clock is stopped."""
        if self._stopped_at is not None and until <= self._stopped_at:
            return
        self._waiting = changed, until
        deadline = until - self._ahead if self._stopped_at is None else inf
        with anyio.CancelScope(deadline=deadline):
            await changed.wait()
        self._waiting = None

    def stop(self) -> None:
        """Stand still."""
        self._stopped_at = self.now()
        self._wake()

    def go(self) -> None:
        """Go by itself again, from where it stood."""
        if self._stopped_at is not None:
            self._ahead = self._stopped_at - anyio.current_time()
            self._stopped_at = None
            self._wake()

    async def advance(self, seconds: float, settle: Callable[[], Awaitable[None]]) -> None:
        """Move on, stopping at every timer on the way.

        Args:
            seconds: How far.
            settle: Waits, after each timer, until all that follows from it is done.
        """
        end = self.now() + seconds
        while (timer := await self._next_timer()) <= end:
            self._stopped_at = max(self.now(), timer)
            self._wake()
            await self._next_timer()
            await settle()
        self._stopped_at = end

    async def _next_timer(self) -> float:
        """Wait until whoever waits knows all that has happened so far; give its timer."""
        while self._waiting is None or self._waiting[0].is_set():
            await checkpoint()
        return self._waiting[1]

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting[0].set()

    def _now_going(self) -> float:
        return anyio.current_time() + self._ahead


class Clock:
    """What the `opentabs.clock` of a test is.

    Attributes:
        is_manual: Whether it stands still until `advance` moves it.

    Args:
        runs_on: What the test, or the run, says that it runs on; None where neither says it.
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
        """Let time pass for the timers of calls: `advance(29.9)`, `advance("5m")`.

        When it returns, every call whose time was up has ended. With `--opentabs-clock=real`, or
        the mark `clock="real"`, the clock goes by itself, and this waits as long as it says.

        Raises:
            ValueError: It is no duration, or negative.
            RuntimeError: Nothing says what the clock of this test runs on.
        """
        seconds = in_seconds(duration)
        if self._runs_on is None:
            raise RuntimeError(
                "The clock of this test goes by itself, so it cannot be advanced. Mark the test "
                'with @pytest.mark.opentabs(clock="manual"), or run pytest with '
                '--opentabs-clock=manual; to wait in real time, mark it with clock="real".'
            )
        if self.is_manual:
            advance = self._clock.advance
            self._thread.run(advance, seconds, self._bridge.settle, within=SETTLE_WITHIN)
        else:
            self._thread.sleep(seconds)
