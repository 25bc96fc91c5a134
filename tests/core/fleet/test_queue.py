"""Calls that wait for a worker: in order, within their bounds, and each placed once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.fleet.pool import Full, Wanted
from opentabs_py.core.fleet.queue import CallQueue, Waiting
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.errors import ChainError

CHAT = Wanted("chat")


def a_queue(
    *, queue: int = 100, queue_per_client: int = 100, calls_per_client: int | None = None
) -> CallQueue[str]:
    return CallQueue(Quotas(queue, queue_per_client, calls_per_client))


def take(queue: CallQueue[str], count: int) -> list[str]:
    """Place this many calls, and return their clients."""
    left = [count]

    def place(_wanted: Wanted) -> str | Full:
        if not left[0]:
            return Full()
        left[0] -= 1
        return "place"

    return [waiting.client for waiting, _ in queue.take(place)]


def add(queue: CallQueue[str], clients: str) -> list[Waiting]:
    return [queue.add(client, CHAT) for client in clients]


def test_calls_of_several_clients_alternate() -> None:
    queue = a_queue()
    add(queue, "aaab")
    assert take(queue, 4) == ["a", "b", "a", "a"]
    assert (len(queue), queue.running) == (0, 4)


def test_turns_continue_where_they_stopped() -> None:
    queue = a_queue()
    add(queue, "aabbcc")
    assert take(queue, 2) == ["a", "b"]
    assert take(queue, 2) == ["c", "a"]


def test_a_call_that_cannot_be_placed_does_not_stop_those_of_others() -> None:
    queue = a_queue()
    queue.add("a", Wanted("full"))
    queue.add("b", CHAT)
    placed = [
        waiting.client
        for waiting, _ in queue.take(lambda wanted: Full() if wanted.owner == "full" else "place")
    ]
    assert placed == ["b"]
    assert len(queue) == 1


def test_a_call_that_cannot_be_placed_does_not_stop_the_later_ones_of_its_client() -> None:
    queue = a_queue()
    full, *others = [queue.add("a", Wanted(owner)) for owner in ("full", "chat", "full", "shop")]
    places = queue.take(lambda wanted: Full() if wanted.owner == "full" else wanted.owner)
    assert [place for _, place in places] == ["chat", "shop"]
    assert [waiting for waiting, _ in queue.take(lambda _: "place")] == [full, others[1]]


def test_what_is_full_for_one_client_is_not_tried_for_the_others() -> None:
    queue = a_queue()
    add(queue, "abc")
    tried: list[Wanted] = []

    def place(wanted: Wanted) -> str | Full:
        tried.append(wanted)
        return Full()

    assert [*queue.take(place)] == []
    assert tried == [CHAT]


def test_a_client_runs_no_more_calls_at_once_than_it_may() -> None:
    queue = a_queue(calls_per_client=1)
    calls = add(queue, "aab")
    assert take(queue, 3) == ["a", "b"]
    add(queue, "c")
    assert take(queue, 3) == ["c"]
    queue.end(calls[0], 1.0)
    assert take(queue, 3) == ["a"]


def test_a_client_that_runs_all_it_may_is_not_told_that_workers_are_busy() -> None:
    queue = a_queue(queue=0, calls_per_client=2)
    add(queue, "aa")
    take(queue, 2)
    [waiting] = add(queue, "a")
    with pytest.raises(ChainError, match="already has 2 calls running, which is its limit"):
        queue.check(waiting)
    assert queue.busy(waiting).detail.code == "FLEET_BUSY"


def test_how_many_come_before_a_call() -> None:
    queue = a_queue()
    a1, a2, b1, b2, c1 = add(queue, "aabbc")
    assert [queue.ahead(each) for each in (a1, b1, c1, a2, b2)] == [0, 1, 2, 3, 4]


def test_calls_that_need_something_else_do_not_come_before_a_call() -> None:
    queue = a_queue()
    for client in "ab":
        queue.add(client, Wanted("full"))
    calls = add(queue, "ab")
    assert [queue.ahead(each) for each in calls] == [0, 1]


@given(st.text("abc", min_size=1, max_size=12))
def test_how_many_come_before_a_call_is_how_many_are_placed_before_it(clients: str) -> None:
    queue = a_queue()
    calls = add(queue, clients)
    expected = {id(call): queue.ahead(call) for call in calls}
    placed = [waiting for waiting, _ in queue.take(lambda _: "place")]
    assert [expected[id(call)] for call in placed] == [*range(len(calls))]


def test_no_more_than_the_bound_may_wait() -> None:
    queue = a_queue(queue=2)
    a, b = add(queue, "ab")
    queue.check(b)
    [c] = add(queue, "c")
    with pytest.raises(ChainError) as busy:
        queue.check(c)
    assert busy.value.detail.code == "FLEET_BUSY"
    assert busy.value.detail.retry_after == 2  # two calls of a second each, one at a time
    queue.discard(c)
    assert (len(queue), queue.ahead(a)) == (2, 0)


def test_without_a_queue_a_call_still_runs_if_there_is_room() -> None:
    queue = a_queue(queue=0)
    add(queue, "a")
    assert take(queue, 1) == ["a"]


def test_one_client_may_not_fill_the_queue() -> None:
    queue = a_queue(queue_per_client=2)
    *_, greedy, b = add(queue, "aabab")
    with pytest.raises(ChainError):
        queue.check(greedy)
    queue.check(b)


def test_the_time_to_retry_follows_how_long_calls_take() -> None:
    queue = a_queue(queue=4)
    for _ in range(200):
        [call] = add(queue, "a")
        take(queue, 1)
        queue.end(call, 30.0)
    *_, last = add(queue, "abcde")
    with pytest.raises(ChainError) as busy:
        queue.check(last)
    assert busy.value.detail.retry_after == pytest.approx(120, rel=0.01)


def test_a_call_that_did_not_run_is_the_next_again() -> None:
    queue = a_queue()
    a1, *_ = add(queue, "aab")
    assert take(queue, 1) == ["a"]
    queue.put_back(a1)
    assert queue.running == 0
    assert queue.ahead(a1) == 0
    assert take(queue, 3) == ["a", "b", "a"]


def test_a_call_that_no_caller_waits_for_is_forgotten() -> None:
    queue = a_queue()
    a1, a2 = add(queue, "aa")
    queue.discard(a1)
    assert queue.ahead(a2) == 0
    queue.discard(a2)
    assert len(queue) == 0
    assert take(queue, 1) == []


def test_a_call_that_could_not_run_says_nothing_of_how_long_calls_take() -> None:
    queue = a_queue(queue=1)
    [call] = add(queue, "a")
    take(queue, 1)
    queue.end(call, None)
    *_, last = add(queue, "ab")
    with pytest.raises(ChainError) as busy:
        queue.check(last)
    assert busy.value.detail.retry_after == 1
