"""Wait for the next change of something."""

import anyio


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
