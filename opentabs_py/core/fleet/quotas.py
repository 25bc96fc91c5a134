"""How many calls an endpoint makes, and how many may wait."""

from dataclasses import dataclass
from typing import Final

QUEUE: Final = 1000
QUEUE_PER_CLIENT: Final = 100


@dataclass(frozen=True, slots=True)
class Quotas:
    """How many calls an endpoint makes.

    Attributes:
        queue: How many may wait while all workers are full.
        queue_per_client: How many of them may be of one client.
        calls_per_client: How many of one client may run at once; None for any number.
        waits: How long a call may wait, in seconds.
    """

    queue: int = QUEUE
    queue_per_client: int = QUEUE_PER_CLIENT
    calls_per_client: int | None = None
    waits: float = 60.0
