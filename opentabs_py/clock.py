"""What the timers of calls run on."""

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
