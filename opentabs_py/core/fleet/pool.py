"""The workers that an endpoint may use, and which of them takes a call.

An endpoint may know a thousand workers, each of which announces itself every two seconds, and
makes thousands of calls a second. So nothing here grows with the number of workers except one pass
over those that serve the plugin, for each call; what that needs is kept until it changes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.tabs.numbers import browser_of
from opentabs_py.errors import ChainError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call needs.

    Attributes:
        owner: The plugin, or the module of Python tools, that the tool belongs to.
        digest: The build that clients see, as workers announce it. Another one takes the call only
            if no worker serves this one.
        tab_id: The tab that it names, if it names one.
        own_tabs: The tabs that its client has opened for the plugin, the most recent one first.
    """

    owner: str
    digest: str = ""
    tab_id: int | None = None
    own_tabs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Full:
    """Some workers could take the call, but each runs as many as it may."""


class Pool:
    """The workers that may be used.

    Args:
        endpoint: The id of the endpoint, whose own calls are counted here.
    """

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._workers: dict[str, Announcement] = {}  # by their run, as all below
        self._of_browser: dict[int, str] = {}
        self._own: Counter[str] = Counter()
        self._busy: set[str] = set()  # said that they are, after what they announced
        self._turns = count()
        self._turn: dict[str, int] = {}  # when each was chosen last
        # Whether it is full, its load, its turn: the smallest takes the next call.
        self._ranks: dict[str, tuple[bool, int, int]] = {}
        # By plugin and build; kept until the offers change.
        self._candidates: dict[tuple[str, str], Sequence[str]] = {}

    def put(self, worker: Announcement) -> bool:
        """Use a worker, as it announces itself now; return whether it offers something else."""
        instance = worker.instance
        before = self._workers.get(instance)
        self._workers[instance] = worker
        self._busy.discard(instance)
        self._turn.setdefault(instance, next(self._turns))
        self._rank(instance)
        if before is not None and _offers(before) == _offers(worker):
            return False
        if before is not None:
            self._forget_browsers(before)
        for number in _browsers(worker):
            self._of_browser[number] = instance
        self._candidates.clear()
        return True

    def remove(self, instance: str) -> bool:
        """Stop using a worker; return whether it was in use."""
        worker = self._workers.pop(instance, None)
        if worker is None:
            return False
        self._forget_browsers(worker)
        self._candidates.clear()
        self._busy.discard(instance)
        del self._turn[instance], self._ranks[instance]
        return True

    def begin(self, worker: Announcement) -> None:
        """Record that a call is sent to a worker, which now was chosen last."""
        self._own[worker.instance] += 1
        self._turn[worker.instance] = next(self._turns)
        self._rank(worker.instance)

    def end(self, worker: Announcement) -> None:
        """Record that a call that was sent to a worker has ended."""
        self._own[worker.instance] -= 1
        if not self._own[worker.instance]:
            del self._own[worker.instance]
        self._rank(worker.instance)

    def note_busy(self, worker: Announcement) -> None:
        """Record that a worker did not take a call: it is full until it announces itself again."""
        if self._workers.get(worker.instance) is worker:
            self._busy.add(worker.instance)
            self._rank(worker.instance)

    def choose(self, wanted: Wanted) -> Announcement | Full | ChainError:
        """Choose the worker for a call.

        The worker of the named tab; else of a tab that the client opened for itself; else, of those
        that serve this build of the plugin, or if there are none, of those that serve it at all,
        and of these preferably those in which it works in some tab now, the one with the fewest
        calls, and of several, the one that was chosen longest ago.
        """
        if wanted.tab_id is not None:
            named = self.holder(wanted.tab_id)
            if named is None:
                return failures.no_such_tab(wanted.tab_id)
            return self._unless_full(named.instance)
        for tab in wanted.own_tabs:
            own = self.holder(tab)
            if own is not None and wanted.owner in own.served:
                return self._unless_full(own.instance)
        key = wanted.owner, wanted.digest
        if (candidates := self._candidates.get(key)) is None:
            candidates = self._candidates[key] = self._find_candidates(*key)
        if not candidates:
            return failures.no_worker(wanted.owner)
        return self._unless_full(min(candidates, key=self._ranks.__getitem__))

    def least_busy(self, workers: Sequence[Announcement]) -> Announcement:
        """Return the one of some workers in which the fewest calls run."""
        return min(workers, key=self._load)

    def holder(self, tab_id: int) -> Announcement | None:
        """Return the worker that has a tab."""
        instance = self._of_browser.get(browser_of(tab_id))
        return None if instance is None else self._workers[instance]

    def _load(self, worker: Announcement) -> int:
        of_others = worker.total_running - worker.running.get(self._endpoint, 0)
        return of_others + self._own[worker.instance]

    def _rank(self, instance: str) -> None:
        worker = self._workers.get(instance)
        if worker is not None:
            load = self._load(worker)
            is_full = load >= worker.max_calls or instance in self._busy
            self._ranks[instance] = (is_full, load, self._turn[instance])

    def _unless_full(self, instance: str) -> Announcement | Full:
        is_full, *_ = self._ranks[instance]
        return Full() if is_full else self._workers[instance]

    def _find_candidates(self, owner: str, digest: str) -> Sequence[str]:
        serving = [each for each in self._workers.values() if owner in each.served]
        serving = [each for each in serving if each.served[owner].digest == digest] or serving
        ready = [each for each in serving if each.served[owner].ready != 0]
        return [each.instance for each in ready or serving]

    def _forget_browsers(self, worker: Announcement) -> None:
        for number in _browsers(worker):
            # Another may have the number already, in whose favour this worker is refused.
            if self._of_browser.get(number) == worker.instance:
                del self._of_browser[number]


def _browsers(worker: Announcement) -> range:
    return range(worker.number, worker.number + len(worker.browsers))


def _offers(worker: Announcement) -> object:
    served = {owner: (each.digest, each.ready != 0) for owner, each in worker.served.items()}
    return _browsers(worker), served
