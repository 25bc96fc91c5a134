"""What the timers of calls run on."""

import heapq
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Protocol

import anyio


class Clock(Protocol):
    """A steady clock, in seconds, that its own waits go by."""

    def now(self) -> float:
        """Give the time."""
        ...

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before it."""
        ...


class SystemClock:
    """The clock that goes by itself."""

    def now(self) -> float:
        """Give the event loop's time."""
        return anyio.current_time()

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before it."""
        with anyio.CancelScope(deadline=until):
            await changed.wait()


class Alarm:
    """What is to be called at a time.

    Args:
        ring: Called on the event loop. Must not block or raise.
    """

    __slots__ = ("_ring",)

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring: Callable[[], None] | None = ring

    @property
    def cancelled(self) -> bool:
        """Whether it calls nothing any more: it was cancelled, or has rung."""
        return self._ring is None

    def cancel(self) -> None:
        """Call nothing any more; and hold nothing, for the clock may keep this until its time."""
        self._ring = None

    def ring(self) -> None:
        """Call it, once."""
        ring, self._ring = self._ring, None
        if ring is not None:
            ring()


class AlarmClock:
    """A clock that alarms can be set on. Whoever waits on it has them ring meanwhile.

    So all timers of a server come by one wait, and a clock that a test moves needs to know of one.

    Args:
        clock: What it goes by.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._numbers = count()  # of two alarms for one time, the first set rings first
        self._waiting: list[anyio.Event] = []

    def now(self) -> float:
        """Give the time."""
        return self._clock.now()

    def set_alarm(self, at: float, ring: Callable[[], None]) -> Alarm:
        """Have a function called at a time; to be called on the event loop."""
        alarm = Alarm(ring)
        sooner = at < self._next()
        heapq.heappush(self._alarms, (at, next(self._numbers), alarm))
        if sooner:
            for changed in self._waiting:
                changed.set()
        return alarm

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before it; an earlier alarm sets it too."""
        self._waiting.append(changed)
        try:
            while not changed.is_set():
                await self._clock.wait(changed, min(until, self._next()))
                self._ring()
                if self.now() >= until:
                    break
        finally:
            self._waiting.remove(changed)

    async def run(self) -> None:
        """Have the alarms ring where nobody else waits, until cancelled."""
        while True:
            await self.wait(anyio.Event(), inf)

    def _next(self) -> float:
        while self._alarms and self._alarms[0][2].cancelled:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else inf

    def _ring(self) -> None:
        now = self.now()
        while self._next() <= now:
            heapq.heappop(self._alarms)[2].ring()
