"""Pass items from threads to the event loop."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Receives items from any thread, and delivers them in order on the event loop.

    Create it on the event loop. Items put there are delivered immediately. Once the loop is
    closed, items are silently discarded.

    Args:
        hand_on: Receives each item, on the event loop. Must not raise.
        size: How many items may wait; beyond that, the oldest are dropped.
    """

    def __init__(self, hand_on: Callable[[T], None], *, size: int) -> None:
        self.dropped = 0
        self._hand_on = hand_on
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = threading.Lock()
        self._items: deque[T] = deque(maxlen=size)
        self._is_awaited = False

    def put(self, item: T) -> None:
        """Add an item, from any thread."""
        with self._lock:
            if len(self._items) == self._items.maxlen:
                self.dropped += 1
            self._items.append(item)
            here = threading.get_ident() == self._thread
            wake = not here and not self._is_awaited
            self._is_awaited = self._is_awaited or wake
        if here:
            self.empty()
        elif wake:
            try:
                self._loop.call_soon_threadsafe(self.empty)
            except RuntimeError:  # the loop is closed: there is no one left to deliver to
                with self._lock:
                    self._items.clear()

    def empty(self) -> None:
        """Deliver all waiting items; call it on the event loop."""
        while True:
            with self._lock:
                if not self._items:
                    self._is_awaited = False
                    return
                item = self._items.popleft()
            self._hand_on(item)
