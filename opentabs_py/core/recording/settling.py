"""How long to wait at the end of a recording for what is on its way."""

from typing import Final

SETTLE_WITHIN: Final = 3.0  # s; for responses
READ_WITHIN: Final = 4.0  # s; for the rest of their bodies, which the page may never read


class Settling:
    """Waits at the end of a recording: first for responses, then for their bodies.

    Args:
        now: The time, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._until = now + SETTLE_WITHIN
        self._has_responses = False
        self._given_up = 0  # requests that got no response in time

    def left(self, now: float, *, unanswered: int, pending: int) -> float:
        """Return how much longer to wait, in seconds; 0 if no longer.

        Args:
            now: The time, in seconds.
            unanswered: How many requests have no response.
            pending: How many have not ended.
        """
        if not self._has_responses and (unanswered == 0 or now >= self._until):
            self._has_responses = True
            self._given_up = unanswered
            self._until = now + READ_WITHIN
        return max(0.0, self._until - now) if pending > self._given_up else 0.0
