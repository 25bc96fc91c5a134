"""Which worker takes a call."""

from collections.abc import Mapping
from typing import Any

import pytest

from opentabs_py.core.browsers import BLOCK
from opentabs_py.core.fleet.messages import FLEET_VERSION, Announcement, Served
from opentabs_py.core.fleet.routing import Full, Wanted, choose, conflict, holder, usable
from opentabs_py.errors import ChainError


def worker(
    name: str, number: int = 0, *, ready: int | None = 1, browsers: int = 1, **more: Any
) -> Announcement:
    given: dict[str, Any] = {
        "version": FLEET_VERSION,
        "opentabs": "1",
        "name": name,
        "instance": f"{name:0>16}".encode().hex()[-16:],
        "host": "h",
        "pid": 1,
        "started": 1.0,
        "state": "serving",
        "number": number,
        "browsers": [str(n) for n in range(browsers)],
        "labels": {},
        "max_calls": 2,
        "running": {},
        "served": {"chat": Served(digest="d", ready=ready)},
    }
    return Announcement(**(given | more))


def chosen(
    workers: list[Announcement], wanted: Wanted, loads: Mapping[str, int] | None = None
) -> str | Full:
    found = choose(workers, wanted, lambda each: (loads or {}).get(each.name, 0))
    assert not isinstance(found, ChainError)
    return found if isinstance(found, Full) else found.name


CHAT = Wanted("chat")


def test_the_worker_with_the_fewest_calls_takes_it() -> None:
    workers = [worker("a"), worker("b")]
    assert chosen(workers, CHAT, {"a": 1}) == "b"


def test_of_those_with_as_many_the_one_that_was_chosen_longest_ago_takes_it() -> None:
    assert chosen([worker("b"), worker("a")], CHAT) == "b"


def test_a_worker_with_a_ready_tab_comes_before_one_without_calls() -> None:
    workers = [worker("closed", ready=0), worker("ready")]
    assert chosen(workers, CHAT, {"ready": 1}) == "ready"


def test_where_it_is_ready_nowhere_a_worker_that_serves_it_says_why() -> None:
    workers = [worker("other", served={}), worker("closed", ready=0)]
    assert chosen(workers, CHAT) == "closed"


def test_a_tool_that_needs_no_tab_is_always_ready() -> None:
    assert chosen([worker("closed", ready=0), worker("python", ready=None)], CHAT) == "python"


def test_a_call_waits_for_the_ready_workers_if_they_are_full() -> None:
    workers = [worker("full"), worker("closed", ready=0)]
    assert chosen(workers, CHAT, {"full": 2}) == Full()


def test_without_a_worker_that_serves_it_there_is_an_error() -> None:
    error = choose([worker("a", served={})], CHAT, lambda _: 0)
    assert isinstance(error, ChainError)
    assert error.detail.code == "NO_WORKER"
    assert error.detail.retryable


def test_the_worker_of_the_named_tab_takes_it() -> None:
    workers = [worker("a", 10), worker("b", 20, browsers=2), worker("c", 30)]
    named = Wanted("chat", tab_id=21 * BLOCK + 7)
    assert chosen(workers, named, {"b": 1}) == "b"
    assert chosen(workers, named, {"b": 2}) == Full()


@pytest.mark.parametrize("tab_id", [7, 22 * BLOCK, 19 * BLOCK])
def test_a_tab_of_nobody_is_an_error(tab_id: int) -> None:
    workers = [worker("b", 20, browsers=2)]
    assert holder(workers, tab_id) is None
    error = choose(workers, Wanted("chat", tab_id=tab_id), lambda _: 0)
    assert isinstance(error, ChainError)
    assert error.detail.code == "TAB_NOT_FOUND"


def test_a_client_stays_in_the_worker_where_it_opened_a_tab() -> None:
    workers = [worker("a", 10), worker("b", 20)]
    own = Wanted("chat", own_tabs=[20 * BLOCK + 1])
    assert chosen(workers, own, {"b": 1}) == "b"


def test_a_tab_of_its_own_that_is_gone_or_of_another_plugin_counts_for_nothing() -> None:
    workers = [worker("a", 10), worker("b", 20, served={})]
    assert chosen(workers, Wanted("chat", own_tabs=[20 * BLOCK, 30 * BLOCK])) == "a"


def test_a_worker_is_used_while_it_serves_and_has_all_labels() -> None:
    eu = worker("a", labels={"site": "eu", "tier": "gold"})
    assert usable(eu, {})
    assert usable(eu, {"site": "eu"})
    assert not usable(eu, {"site": "eu", "tier": "tin"})
    assert not usable(worker("a", state="draining"), {})


def test_of_two_with_one_name_the_later_conflicts() -> None:
    early, late = worker("a", 10), worker("a", 20, instance="f" * 16, started=2.0)
    assert conflict(late, [early, late]) is early
    assert conflict(early, [early, late]) is None


def test_of_two_with_overlapping_numbers_the_later_conflicts() -> None:
    early = worker("a", 10, browsers=3)
    assert conflict(worker("b", 12, started=2.0), [early]) is early
    assert conflict(worker("b", 9, started=2.0, browsers=2), [early]) is early
    assert conflict(worker("b", 13, started=2.0), [early]) is None


def test_one_without_browsers_still_has_its_number() -> None:
    early = worker("a", 10, browsers=0)
    assert conflict(worker("b", 10, started=2.0), [early]) is early


def test_one_that_serves_had_the_name_before_one_that_starts_whatever_their_clocks_say() -> None:
    serving, starting = worker("a", started=9.0), worker("a", state="starting", instance="f" * 16)
    assert conflict(starting, [serving]) is serving
    assert conflict(serving, [starting]) is None


def test_one_that_leaves_conflicts_with_nobody() -> None:
    gone = worker("a", state="leaving")
    assert conflict(worker("a", started=2.0, instance="f" * 16), [gone]) is None
