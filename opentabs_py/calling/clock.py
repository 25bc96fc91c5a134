"""The clocks that calls' timers run on, and the time of day."""

import heapq
import logging
import time
from collections.abc import Callable
from itertools import count
from math import inf
from typing import Final, Protocol

import anyio

logger = logging.getLogger(__name__)

STALE_ALARMS: Final = 1000  # that were cancelled; more are looked for only when there are as many
MS: Final = 1000  # times are in seconds here, and in milliseconds on the wire to the extension


def wall_clock() -> float:
    """Return the time in seconds since the epoch."""
    return time.time()


class Clock(Protocol):
    """A steady clock, in seconds, with waits on it."""

    def now(self) -> float:
        """Return the time."""
        ...

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before that."""
        ...


class SystemClock:
    """Real time."""

    def now(self) -> float:
        """Return the event loop's time."""
        return anyio.current_time()

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set before that."""
        with anyio.CancelScope(deadline=until):
            await changed.wait()


class Alarm:
    """A function to call at a certain time.

    Args:
        ring: Called on the event loop. Must not block, nor raise, which is only logged.
    """

    __slots__ = ("_ring",)

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring: Callable[[], None] | None = ring

    @property
    def cancelled(self) -> bool:
        """Whether it will not ring (again): it was cancelled, or has rung."""
        return self._ring is None

    def cancel(self) -> None:
        """Never ring; also drop the function, because the clock may keep this until its time."""
        self._ring = None

    def ring(self) -> None:
        """Call the function, once."""
        ring, self._ring = self._ring, None
        if ring is not None:
            ring()


class AlarmClock:
    """A clock with alarms, which ring while anything waits on it.

    All timers of a server thus share one wait, and a test's clock needs to know of only one.

    Args:
        clock: The underlying clock.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._most = STALE_ALARMS  # alarms, before the cancelled ones are removed
        self._numbers = count()  # alarms for the same time ring in the order they were set
        self._waiting: list[anyio.Event] = []

    def now(self) -> float:
        """Return the time."""
        return self._clock.now()

    def set_alarm(self, at: float, ring: Callable[[], None]) -> Alarm:
        """Schedule a function for a time; call this on the event loop."""
        alarm = Alarm(ring)
        sooner = at < self._next()
        heapq.heappush(self._alarms, (at, next(self._numbers), alarm))
        if len(self._alarms) > self._most:
            self._remove_cancelled()
        if sooner:
            for changed in self._waiting:
                changed.set()
        return alarm

    async def wait(self, changed: anyio.Event, until: float) -> None:
        """Wait until a time, or until an event is set; alarms before that ring and may set it."""
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
        """Ring the alarms when nothing else waits on the clock, until cancelled."""
        while True:
            await self.wait(anyio.Event(), inf)

    def _remove_cancelled(self) -> None:
        """Remove what would otherwise be kept until its time, which may be days away or never."""
        self._alarms = [each for each in self._alarms if not each[2].cancelled]
        heapq.heapify(self._alarms)
        self._most = 2 * len(self._alarms) + STALE_ALARMS

    def _next(self) -> float:
        while self._alarms and self._alarms[0][2].cancelled:
            heapq.heappop(self._alarms)
        return self._alarms[0][0] if self._alarms else inf

    def _ring(self) -> None:
        now = self.now()
        while self._next() <= now:
            alarm = heapq.heappop(self._alarms)[2]
            try:
                alarm.ring()
            except Exception:  # or it would end the server
                logger.exception("An alarm failed")
