"""Which worker takes a call."""

from typing import Any

import pytest

from opentabs_py.core.fleet.messages import FLEET_VERSION, Announcement, ServedOwner
from opentabs_py.core.fleet.pool import Full, Pool, Wanted
from opentabs_py.core.tabs.numbers import BLOCK
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
        "served": {"chat": ServedOwner(digest="d", ready=ready)},
    }
    return Announcement(**(given | more))


def a_pool(*workers: Announcement) -> Pool:
    pool = Pool(ENDPOINT)
    for each in workers:
        pool.put(each)
    return pool


def chosen(pool: Pool, wanted: Wanted) -> str | Full:
    found = pool.choose(wanted)
    assert not isinstance(found, ChainError)
    return found if isinstance(found, Full) else found.name


ENDPOINT, OTHER = "e" * 16, "f" * 16
CHAT = Wanted("chat")


def test_the_worker_with_the_fewest_calls_takes_it() -> None:
    pool = a_pool(worker("a", 10, running={OTHER: 1}), worker("b", 20))
    assert chosen(pool, CHAT) == "b"


def test_of_those_with_as_many_the_one_that_was_chosen_longest_ago_takes_it() -> None:
    a, b = worker("a", 10), worker("b", 20)
    pool = a_pool(a, b)
    for expected in ("a", "b", "a", "b"):
        assert chosen(pool, CHAT) == expected
        pool.begin({"a": a, "b": b}[expected])
    assert chosen(pool, CHAT) == Full()
    pool.end(b)
    assert chosen(pool, CHAT) == "b"
    pool.end(a)
    assert chosen(pool, CHAT) == "a"
    pool.begin(a)
    pool.begin(b)
    assert chosen(pool, CHAT) == Full()


def test_workers_without_calls_take_turns() -> None:
    workers = {name: worker(name, number) for name, number in (("a", 10), ("b", 20))}
    pool = a_pool(*workers.values())
    for expected in ("a", "b", "a", "b"):
        assert chosen(pool, CHAT) == expected
        pool.begin(workers[expected])
        pool.end(workers[expected])


def test_workers_that_serve_the_build_that_clients_see_take_its_calls() -> None:
    old, new = (
        {"chat": ServedOwner(digest=digest, ready=ready)} for digest, ready in (("d", 1), ("e", 0))
    )
    pool = a_pool(worker("a", 10, served=old), worker("b", 20, served=new, running={OTHER: 1}))
    assert chosen(pool, Wanted("chat", "e")) == "b"
    assert chosen(pool, Wanted("chat", "d")) == "a"
    assert chosen(pool, Wanted("chat", "gone")) == "a"
    pool.put(worker("a", 10, served=new))
    assert chosen(pool, Wanted("chat", "e")) == "a"


def test_own_calls_count_from_when_they_are_sent_and_not_again_when_announced() -> None:
    first = worker("a", max_calls=2)
    pool = a_pool(first)
    pool.begin(first)
    pool.put(worker("a", max_calls=2, running={ENDPOINT: 1}))
    assert chosen(pool, CHAT) == "a"
    pool.put(worker("a", max_calls=2, running={ENDPOINT: 1, OTHER: 1}))
    assert chosen(pool, CHAT) == Full()


def test_calls_in_a_worker_that_went_and_came_back_still_count() -> None:
    a = worker("a", max_calls=1)
    pool = a_pool(a)
    pool.begin(a)
    pool.remove(a.instance)
    pool.put(a)
    assert chosen(pool, CHAT) == Full()
    pool.end(a)
    assert chosen(pool, CHAT) == "a"


def test_a_call_that_ends_in_a_worker_that_has_gone_changes_nothing() -> None:
    a, b = worker("a", 10), worker("b", 20)
    pool = a_pool(a, b)
    pool.begin(a)
    pool.remove(a.instance)
    pool.end(a)
    assert chosen(pool, CHAT) == "b"


def test_a_worker_with_a_ready_tab_comes_before_one_without_calls() -> None:
    pool = a_pool(worker("closed", 10, ready=0), worker("ready", 20, running={OTHER: 1}))
    assert chosen(pool, CHAT) == "ready"


def test_a_worker_takes_calls_as_soon_as_a_tab_is_ready() -> None:
    pool = a_pool(worker("a", 10), worker("b", 20, ready=0))
    pool.begin(worker("a", 10))
    assert chosen(pool, CHAT) == "a"
    assert pool.put(worker("b", 20))
    assert chosen(pool, CHAT) == "b"


def test_what_a_worker_offers_does_not_change_with_its_calls() -> None:
    pool = Pool(ENDPOINT)
    assert pool.put(worker("a"))
    assert not pool.put(worker("a", running={OTHER: 1}, calls=9))
    assert pool.put(worker("a", served={}))
    assert pool.put(worker("a", served={}, browsers=2))


def test_a_worker_whose_first_tabs_are_ready_offers_something_else() -> None:
    pool = a_pool(worker("a", ready=0))
    assert pool.put(worker("a", ready=2))
    assert not pool.put(worker("a", ready=3))
    assert pool.put(worker("a", ready=0))


def test_where_it_is_ready_nowhere_a_worker_that_serves_it_says_why() -> None:
    pool = a_pool(worker("other", 10, served={}), worker("closed", 20, ready=0))
    assert chosen(pool, CHAT) == "closed"


def test_a_tool_that_needs_no_tab_is_always_ready() -> None:
    pool = a_pool(worker("closed", 10, ready=0), worker("python", 20, ready=None))
    assert chosen(pool, CHAT) == "python"


def test_a_call_waits_for_the_ready_workers_if_they_are_full() -> None:
    pool = a_pool(worker("full", 10, running={OTHER: 2}), worker("closed", 20, ready=0))
    assert chosen(pool, CHAT) == Full()


def test_without_a_worker_that_serves_it_there_is_an_error() -> None:
    error = a_pool(worker("a", served={})).choose(CHAT)
    assert isinstance(error, ChainError)
    assert error.detail.code == "NO_WORKER"
    assert "serves chat now" in str(error)
    assert error.detail.retryable


def test_a_worker_that_did_not_take_a_call_is_full_until_it_announces_itself_again() -> None:
    a = worker("a")
    pool = a_pool(a)
    pool.note_busy(a)
    assert chosen(pool, CHAT) == Full()
    pool.put(a)
    assert chosen(pool, CHAT) == "a"


def test_a_worker_that_announced_itself_meanwhile_is_not_full() -> None:
    before = worker("a")
    pool = a_pool(before)
    pool.put(worker("a", calls=1))
    pool.note_busy(before)
    assert chosen(pool, CHAT) == "a"


def test_the_least_busy_of_some_workers_is_found_whatever_else_is_there() -> None:
    a, b, c = worker("a", 10), worker("b", 20, running={OTHER: 1}), worker("c", 30)
    pool = a_pool(a, b, c)
    pool.begin(a)
    pool.begin(a)
    assert pool.least_busy([a, b]) is b


def test_the_worker_of_the_named_tab_takes_it() -> None:
    b = worker("b", 20, browsers=2, running={OTHER: 1})
    pool = a_pool(worker("a", 10), b, worker("c", 30))
    named = Wanted("chat", tab_id=21 * BLOCK + 7)
    assert chosen(pool, named) == "b"
    pool.begin(b)
    assert chosen(pool, named) == Full()


@pytest.mark.parametrize("tab_id", [7, 22 * BLOCK, 19 * BLOCK])
def test_an_unowned_tab_is_an_error(tab_id: int) -> None:
    pool = a_pool(worker("b", 20, browsers=2))
    assert pool.holder(tab_id) is None
    error = pool.choose(Wanted("chat", tab_id=tab_id))
    assert isinstance(error, ChainError)
    assert error.detail.code == "TAB_NOT_FOUND"
    assert f"a tab {tab_id}." in str(error)


def test_the_tabs_of_a_worker_that_is_gone_are_unowned() -> None:
    a = worker("a", 10)
    pool = a_pool(a)
    assert pool.remove(a.instance)
    assert pool.holder(10 * BLOCK) is None
    assert not pool.remove(a.instance)


def test_a_number_that_another_has_meanwhile_stays_that_one() -> None:
    late, early = worker("late", 10), worker("early", 10)
    pool = a_pool(late, early)
    pool.remove(late.instance)
    assert pool.holder(10 * BLOCK) is early


def test_a_client_stays_in_the_worker_where_it_opened_a_tab() -> None:
    pool = a_pool(worker("a", 10), worker("b", 20, running={OTHER: 1}))
    assert chosen(pool, Wanted("chat", own_tabs=(20 * BLOCK + 1,))) == "b"


def test_a_tab_of_its_own_that_is_gone_or_of_another_plugin_counts_for_nothing() -> None:
    pool = a_pool(worker("a", 10), worker("b", 20, served={}))
    assert chosen(pool, Wanted("chat", own_tabs=(20 * BLOCK, 30 * BLOCK))) == "a"
