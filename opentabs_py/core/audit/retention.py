"""Retention of audit entries."""

from dataclasses import dataclass
from math import ceil
from typing import Final

_DAY: Final = 24 * 3600.0  # s
_MB: Final = 1_000_000
_DOWN_TO: Final = 0.9  # of the largest size, so that not every call removes another


@dataclass(frozen=True, slots=True)
class Retention:
    """The bounds of what is kept.

    Attributes:
        days: Older calls are removed.
        megabytes: If the file is larger, the oldest calls are removed.
    """

    days: float = 30.0
    megabytes: float = 100.0

    def begin(self, now: float) -> float:
        """Return when the oldest call that is kept may have started, given the time."""
        return now - self.days * _DAY

    def excess(self, size: int, calls: int) -> int:
        """Return how many of the oldest calls to remove from a file of so many bytes."""
        most = self.megabytes * _MB
        return 0 if size <= most else ceil(calls * (1 - _DOWN_TO * most / size))
