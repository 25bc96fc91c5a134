"""What threads leave for the event loop."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Takes items from any thread, and hands them on in the loop's, in order.

    Made on the event loop. What is put in there is handed on at once. A loop that is closed takes
    no more, and who puts something in hears nothing of it.

    Args:
        hand_on: Takes an item, on the event loop. Must not raise.
        size: How many may wait; then the oldest go.
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
        """Leave an item."""
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
            except RuntimeError:  # the loop is closed: nobody is there who could be told
                with self._lock:
                    self._items.clear()

    def empty(self) -> None:
        """Hand on all that is there; to be called on the event loop."""
        while True:
            with self._lock:
                if not self._items:
                    self._is_awaited = False
                    return
                item = self._items.popleft()
            self._hand_on(item)
