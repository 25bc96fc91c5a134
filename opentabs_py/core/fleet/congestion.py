"""How much may be in flight to another process, by how long its acknowledgements take.

This is delay-based congestion control, as in LEDBAT (RFC 6817): the round-trip time beyond the
shortest one is the time that data waits in queues on the network. The window grows while that is
short, and shrinks when it exceeds the target. Loss plays no part, because TCP hides it.
"""

from math import inf
from typing import Final

QUEUING_DELAY: Final = 0.5  # s; for how long data in flight may delay what is sent next
MIN_WINDOW: Final = 64 * 1024  # bytes
INITIAL_WINDOW: Final = 128 * 1024  # bytes; the bandwidth is not known yet
MAX_WINDOW: Final = 4 * 1024 * 1024  # bytes


class CongestionWindow:
    """The limit of the bytes in flight.

    Args:
        size: The limit at first, in bytes.

    Attributes:
        size: The limit now, in bytes.
    """

    def __init__(self, size: int = INITIAL_WINDOW) -> None:
        self.size = size
        self._shortest = inf  # s; round-trip time

    def handle_ack(self, *, in_flight: int, round_trip: float) -> None:
        """Handle an acknowledgement of everything that was in flight when its request was sent.

        Args:
            in_flight: How much that was, in bytes.
            round_trip: How long the acknowledgement took, in seconds.
        """
        self._shortest = min(self._shortest, round_trip)
        delay = round_trip - self._shortest
        if delay > QUEUING_DELAY:
            self.size = max(MIN_WINDOW, int(in_flight * QUEUING_DELAY / delay))
        elif delay < QUEUING_DELAY / 2 and in_flight >= self.size:  # the window was the limit
            self.size = min(2 * self.size, MAX_WINDOW)

    def handle_reconnect(self) -> None:
        """Forget the shortest round trip, because the network may be another one."""
        self._shortest = inf
