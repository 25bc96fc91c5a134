"""How much may be on its way to another process, by how long it takes until that is answered."""

from math import inf
from typing import Final

DELAY: Final = 0.5  # s; for how long what is on its way may hold up what comes next
ALWAYS_ALLOWED: Final = 64 * 1024  # bytes
FIRST_ALLOWED: Final = 128 * 1024  # bytes; what the way carries is not known yet
ALLOWED_AT_MOST: Final = 4 * 1024 * 1024  # bytes


class Pace:
    """An estimate of what a way carries in `DELAY` beyond the time of its quickest answer.

    Args:
        allowed: How much may be on its way at first, in bytes.

    Attributes:
        allowed: How much may be on its way now, in bytes.
    """

    def __init__(self, allowed: int = FIRST_ALLOWED) -> None:
        self.allowed = allowed
        self._quickest = inf  # s

    def handle_answer(self, *, ahead: int, took: float) -> None:
        """Handle an answer: everything that was on its way has arrived.

        Args:
            ahead: How much that was, in bytes.
            took: How long the answer took, in seconds.
        """
        self._quickest = min(self._quickest, took)
        delay = took - self._quickest
        if delay > DELAY:
            self.allowed = max(ALWAYS_ALLOWED, int(ahead * DELAY / delay))
        elif delay < DELAY / 2 and ahead >= self.allowed:  # more might have arrived
            self.allowed = min(2 * self.allowed, ALLOWED_AT_MOST)

    def handle_reconnect(self) -> None:
        """Forget the quickest answer, because the next one may take another way."""
        self._quickest = inf
