"""The names and the numbers of workers, of which each may have only one owner."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from opentabs_py.core.fleet.messages import Announcement

Claim: TypeAlias = str | int


def claims_of(worker: Announcement) -> Sequence[Claim]:
    """Return what no other worker may have: its name, and a number for each of its browsers."""
    return [worker.name, *range(worker.number, worker.number + max(1, len(worker.browsers)))]


class Claims:
    """What the workers of a fleet claim."""

    def __init__(self) -> None:
        self._workers: defaultdict[Claim, dict[str, Announcement]] = defaultdict(dict)

    def put(self, worker: Announcement) -> None:
        """Add what a worker claims."""
        for claim in claims_of(worker):
            self._workers[claim][worker.instance] = worker

    def remove(self, worker: Announcement) -> None:
        """Remove what a worker claims."""
        for claim in claims_of(worker):
            del self._workers[claim][worker.instance]
            if not self._workers[claim]:
                del self._workers[claim]

    def rivals(self, worker: Announcement) -> Sequence[Announcement]:
        """Return the workers that claim something of what a worker claims, itself among them."""
        rivals = {
            instance: each
            for claim in claims_of(worker)
            for instance, each in self._workers.get(claim, {}).items()
        }
        return [*rivals.values()]


def conflict(worker: Announcement, others: Iterable[Announcement]) -> Announcement | None:
    """Return the worker that has this one's name, or one of its numbers, and had it earlier.

    One that is serving had it before one that is starting, whatever their clocks say. All who
    compare the same workers come to the same result, whoever was heard first.
    """
    clashing = (
        other
        for other in others
        if other.instance != worker.instance
        and other.state != "leaving"
        and not {*claims_of(worker)}.isdisjoint(claims_of(other))
        and _rank(other) < _rank(worker)
    )
    return next(clashing, None)


def _rank(worker: Announcement) -> tuple[bool, float, str]:
    return worker.state == "starting", worker.started, worker.instance
