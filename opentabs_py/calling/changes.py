"""Wait for the next change of something."""

from collections.abc import Callable
from typing import TypeVar

import anyio

from opentabs_py.core.tabs.selection import Wait

_Decided = TypeVar("_Decided")


class Changes:
    """Wakes everyone who waits for the next change.

    Call `next` before looking at what may change: a change after that look is then not missed.
    """

    def __init__(self) -> None:
        self._next = anyio.Event()

    def next(self) -> anyio.Event:
        """Return an event that is set at the next change."""
        return self._next

    def notify(self) -> None:
        """Wake everyone who waits."""
        changed, self._next = self._next, anyio.Event()
        changed.set()

    async def wait_quiet(self, seconds: float) -> None:
        """Wait until nothing has changed for some seconds."""
        is_quiet = False
        while not is_quiet:
            with anyio.move_on_after(seconds) as waiting:
                await self.next().wait()
            is_quiet = waiting.cancelled_caught

    async def decide(self, look: Callable[[float], _Decided | Wait]) -> _Decided:
        """Return what a function decides; while it says to wait, ask it again at each change.

        Args:
            look: Decides at a time, in seconds of the event loop's clock. It is asked again at the
                end of its `Wait` at the latest.
        """
        while True:
            changed = self.next()
            decided = look(anyio.current_time())
            if not isinstance(decided, Wait):
                return decided
            with anyio.CancelScope(deadline=decided.until):
                await changed.wait()
