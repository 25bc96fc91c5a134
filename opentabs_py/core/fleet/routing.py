"""Which worker of a fleet takes a call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opentabs_py.core.browsers import BLOCK
from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.errors import ChainError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a call needs.

    Attributes:
        owner: The plugin, or the module of Python tools, that the tool belongs to.
        tab_id: The tab that it names, if it names one.
        own_tabs: The tabs in which its client has opened a page of the plugin, the most recent one
            first.
    """

    owner: str
    tab_id: int | None = None
    own_tabs: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Full:
    """Some workers could take the call, but each runs as many as it may."""


def choose(
    workers: Sequence[Announcement], wanted: Wanted, load: Callable[[Announcement], int]
) -> Announcement | Full | ChainError:
    """Choose the worker for a call.

    The worker of the named tab; else of a tab that the client opened for itself; else, of those
    in which the plugin works in some tab now, or if there are none, of those that serve it, the one
    with the fewest calls.

    Args:
        workers: The workers that may be used, those chosen longest ago first.
        wanted: What the call needs.
        load: Returns how many calls run in a worker.
    """
    if wanted.tab_id is not None:
        named = holder(workers, wanted.tab_id)
        if named is None:
            return failures.no_such_tab(wanted.tab_id)
        return _unless_full([named], load)
    for tab in wanted.own_tabs:
        own = holder(workers, tab)
        if own is not None and wanted.owner in own.served:
            return _unless_full([own], load)
    serving = [each for each in workers if wanted.owner in each.served]
    if not serving:
        return failures.no_worker(wanted.owner)
    ready = [each for each in serving if each.served[wanted.owner].ready != 0]
    return _unless_full(ready or serving, load)


def holder(workers: Sequence[Announcement], tab_id: int) -> Announcement | None:
    """Return the worker that has a tab."""
    browser = tab_id // BLOCK
    of_it = (each for each in workers if 0 <= browser - each.number < len(each.browsers))
    return next(of_it, None)


def usable(worker: Announcement, labels: Mapping[str, str]) -> bool:
    """Return whether a worker takes calls, and has all these labels."""
    return worker.state == "serving" and labels.items() <= worker.labels.items()


def conflict(worker: Announcement, others: Sequence[Announcement]) -> Announcement | None:
    """Return the worker that has this one's name, or one of its numbers, and had it earlier.

    One that is serving had it before one that is starting, whatever their clocks say. All who
    compare the same workers come to the same result, whoever was heard first.
    """
    clashing = (
        other
        for other in others
        if other.instance != worker.instance
        and other.state != "leaving"
        and (_name_and_numbers_clash(worker, other))
        and _rank(other) < _rank(worker)
    )
    return next(clashing, None)


def _rank(worker: Announcement) -> tuple[bool, float, str]:
    return worker.state == "starting", worker.started, worker.instance


def _name_and_numbers_clash(one: Announcement, other: Announcement) -> bool:
    first, second = sorted((one, other), key=lambda each: each.number)
    return one.name == other.name or second.number < first.number + max(1, len(first.browsers))


def _unless_full(
    workers: Sequence[Announcement], load: Callable[[Announcement], int]
) -> Announcement | Full:
    free = [each for each in workers if load(each) < each.max_calls]
    return min(free, key=load) if free else Full()
