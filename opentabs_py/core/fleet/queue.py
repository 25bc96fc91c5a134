"""The calls that wait because every worker that could take them is full.

Clients take turns, so one that waits with a hundred calls delays another's first call by one.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    """

    client: SessionKey
    wanted: Wanted


@dataclass(slots=True)
class _Client:
    waiting: deque[Waiting] = field(default_factory=deque[Waiting])
    running: int = 0


class CallQueue(Generic[Place]):
    """Waiting calls, and how many calls each client runs.

    Args:
        quotas: How many calls may wait, and how many of one client may wait or run.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._clients: OrderedDict[str, _Client] = OrderedDict()  # the next in turn first
        self._usual_seconds = 1.0

    def __len__(self) -> int:
        """Return how many calls wait."""
        return sum(len(each.waiting) for each in self._clients.values())

    @property
    def running(self) -> int:
        """How many calls run."""
        return sum(each.running for each in self._clients.values())

    def add(self, client: SessionKey, wanted: Wanted) -> Waiting:
        """Add a call; if it is not taken at once, `check` says whether it may wait."""
        call = Waiting(client, wanted)
        self._clients.setdefault(client, _Client()).waiting.append(call)
        return call

    def check(self, call: Waiting) -> None:
        """Refuse a call if more wait than may; it waits until it is discarded.

        Raises:
            ChainError: It may not wait.
        """
        own = len(self._clients[call.client].waiting)
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
        """Let a call that was taken wait again, as the next of its client; it did not run."""
        client = self._clients[call.client]
        client.running -= 1
        client.waiting.appendleft(call)
        self._clients.move_to_end(call.client, last=False)

    def discard(self, call: Waiting) -> None:
        """Remove a call that waits, because its caller does not."""
        client = self._clients[call.client]
        client.waiting.remove(call)
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
                may_run = calls_per_client is None or client.running < calls_per_client
                if not (client.waiting and may_run) or client.waiting[0].wanted in full:
                    continue
                found = place(client.waiting[0].wanted)
                if isinstance(found, Full):
                    full.add(client.waiting[0].wanted)
                    continue
                is_full = False
                client.running += 1
                self._clients.move_to_end(name)
                yield client.waiting.popleft(), found

    def ahead(self, call: Waiting) -> int:
        """Return how many waiting calls come before this one."""
        own = self._clients[call.client].waiting.index(call)
        count, has_passed = own, False
        for name, client in self._clients.items():
            if name == call.client:
                has_passed = True
            else:
                count += min(len(client.waiting), own if has_passed else own + 1)
        return count

    def _forget(self, name: str) -> None:
        client = self._clients[name]
        if not client.waiting and not client.running:
            del self._clients[name]
