"""The calls that wait because every worker that could take them is full.

Clients take turns, so one that waits with a hundred calls delays another's first call by one. Of a
client, the oldest call that can be placed is the next: one for a full worker delays no others.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count
from operator import attrgetter
from typing import Final, Generic, TypeVar

from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.pool import Full, Wanted
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import ChainError

Place = TypeVar("Place")

RETRY_AT_LEAST: Final = 1.0  # s


@dataclass(eq=False, slots=True)
class Waiting:
    """A call that waits.

    Attributes:
        client: Who makes it.
        wanted: What it needs.
        number: How many calls were added before it.
    """

    client: SessionKey
    wanted: Wanted
    number: int


@dataclass(slots=True)
class _Client:
    """A client.

    Attributes:
        waiting: Its calls that wait, the oldest first, by what they need; none of these is empty.
        running: How many of its calls run.
    """

    waiting: defaultdict[Wanted, deque[Waiting]] = field(default_factory=lambda: defaultdict(deque))
    running: int = 0

    def __len__(self) -> int:
        return sum(map(len, self.waiting.values()))

    def next(self, full: AbstractSet[Wanted]) -> Sequence[Waiting]:
        """Return the oldest call of each need that is not full, the oldest of these first."""
        oldest = [calls[0] for wanted, calls in self.waiting.items() if wanted not in full]
        return sorted(oldest, key=attrgetter("number"))

    def remove(self, call: Waiting) -> None:
        calls = self.waiting[call.wanted]
        calls.remove(call)
        if not calls:
            del self.waiting[call.wanted]


class CallQueue(Generic[Place]):
    """Waiting calls, and how many calls each client runs.

    Args:
        quotas: How many calls may wait, and how many of one client may wait or run.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._clients: OrderedDict[str, _Client] = OrderedDict()  # the next in turn first
        self._numbers = count()
        self._usual_seconds = 1.0

    def __len__(self) -> int:
        """Return how many calls wait."""
        return sum(map(len, self._clients.values()))

    @property
    def running(self) -> int:
        """How many calls run."""
        return sum(each.running for each in self._clients.values())

    def add(self, client: SessionKey, wanted: Wanted) -> Waiting:
        """Add a call; if it is not taken at once, `check` says whether it may wait."""
        call = Waiting(client, wanted, next(self._numbers))
        self._clients.setdefault(client, _Client()).waiting[wanted].append(call)
        return call

    def check(self, call: Waiting) -> None:
        """Refuse a call if more wait than may; it waits until it is discarded.

        Raises:
            ChainError: It may not wait.
        """
        own = len(self._clients[call.client])
        if len(self) > self._quotas.queue or own > self._quotas.queue_per_client:
            raise self.busy(call)

    def busy(self, call: Waiting) -> ChainError:
        """Return the error for one of the waiting calls, which is to wait no longer."""
        waiting = len(self) - 1  # the others
        soon = self._usual_seconds * waiting / max(1, self.running)
        return failures.fleet_busy(waiting, max(RETRY_AT_LEAST, soon), self.running_at_quota(call))

    def running_at_quota(self, call: Waiting) -> int | None:
        """Return how many calls the client of a call runs, if it may run no more."""
        running = self._clients[call.client].running
        return running if running == self._quotas.calls_per_client else None

    def put_back(self, call: Waiting) -> None:
        """Let a call that was taken wait again, where it was; it did not run."""
        client = self._clients[call.client]
        client.running -= 1
        client.waiting[call.wanted].appendleft(call)
        self._clients.move_to_end(call.client, last=False)

    def discard(self, call: Waiting) -> None:
        """Remove a call that waits, because its caller does not."""
        self._clients[call.client].remove(call)
        self._forget(call.client)

    def end(self, call: Waiting, seconds: float | None) -> None:
        """Record that a call that was taken has ended, and how long it ran, if it did."""
        self._clients[call.client].running -= 1
        if seconds is not None:
            self._usual_seconds += (seconds - self._usual_seconds) / 16
        self._forget(call.client)

    def take(self, place: Callable[[Wanted], Place | Full]) -> Iterator[tuple[Waiting, Place]]:
        """Yield the calls that can be placed now, in their turn, each with its place.

        Args:
            place: Returns where a call runs from now on, or that it is full there.
        """
        calls_per_client = self._quotas.calls_per_client
        full: set[Wanted] = set()  # what is full for one is full for all who want the same
        is_full = False
        while not is_full:
            is_full = True
            for name in [*self._clients]:
                client = self._clients[name]
                if client.running == calls_per_client:
                    continue
                placed = _place_oldest(client, place, full)
                if placed is not None:
                    is_full = False
                    client.running += 1
                    self._clients.move_to_end(name)
                    yield placed

    def ahead(self, call: Waiting) -> int:
        """Return how many waiting calls that need the same come before this one."""
        own = self._clients[call.client].waiting[call.wanted].index(call)
        ahead, has_passed = own, False
        for name, client in self._clients.items():
            if name == call.client:
                has_passed = True
            else:
                others = len(client.waiting.get(call.wanted, ()))
                ahead += min(others, own if has_passed else own + 1)
        return ahead

    def _forget(self, name: str) -> None:
        client = self._clients[name]
        if not client.waiting and not client.running:
            del self._clients[name]


def _place_oldest(
    client: _Client, place: Callable[[Wanted], Place | Full], full: set[Wanted]
) -> tuple[Waiting, Place] | None:
    """Remove the oldest call of a client that can be placed, and return it with its place.

    Args:
        client: The client.
        place: Returns where a call runs from now on, or that it is full there.
        full: What is full; more is added.
    """
    for call in client.next(full):
        found = place(call.wanted)
        if not isinstance(found, Full):
            client.remove(call)
            return call, found
        full.add(call.wanted)
    return None
