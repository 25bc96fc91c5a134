"""The state of the icon: the number of calls in its browser that run or await the user."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import anyio

from opentabs_py.bridge.connection import Connection
from opentabs_py.core import protocol

LOOK_AGAIN: Final = 0.25  # s; a shorter call would only flicker


class Activity:
    """The calls of one browser, counted for its extension."""

    def __init__(self) -> None:
        self._running = 0
        self._waiting = 0
        self._changed = asyncio.Event()  # far cheaper than anyio's

    @contextmanager
    def running(self) -> Generator[None]:
        """Count a call while the context is open."""
        self._running += 1
        self._notify()
        try:
            yield
        finally:
            self._running -= 1
            self._notify()

    def set_waiting(self, count: int) -> None:
        """Handle a change of the number of calls that wait for the user, in any browser."""
        self._waiting = count
        self._notify()

    async def send(self, connection: Connection) -> None:
        """Send the numbers whenever they have changed, until cancelled.

        An extension that has just said hello takes them for 0.
        """
        shown = protocol.ActivityParams(running=0, waiting=0)
        while True:
            now = protocol.ActivityParams(running=self._running, waiting=self._waiting)
            if now != shown:
                shown = now
                connection.send(protocol.ActivityChanged(params=now))
            await self._changed.wait()
            await anyio.sleep(LOOK_AGAIN)

    def _notify(self) -> None:
        self._changed.set()  # wakes every connection's `send`, of which an old one may be ending
        self._changed.clear()
