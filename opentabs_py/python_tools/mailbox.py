"""Pass items from threads to the event loop."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from opentabs_py.calling.loop import call_on_loop

T = TypeVar("T")

# A thread may put items faster than they are delivered; other calls run between so many.
AT_ONCE: Final = 100


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
                call_on_loop(self._loop, self._deliver_some)
            except RuntimeError:  # the loop is closed: there is no one left to deliver to
                with self._lock:
                    self._items.clear()

    def empty(self) -> None:
        """Deliver the items that wait now; call it on the event loop."""
        self._deliver(len(self._items))

    def _deliver_some(self) -> None:
        """Deliver a few items, and the rest after others have had the event loop."""
        self._deliver(AT_ONCE)
        with self._lock:
            has_more = self._is_awaited = bool(self._items)
        if has_more:
            self._loop.call_soon(self._deliver_some)

    def _deliver(self, most: int) -> None:
        for _ in range(most):
            try:
                item = self._items.popleft()  # without the lock, which a busy thread often holds
            except IndexError:
                return
            self._hand_on(item)
