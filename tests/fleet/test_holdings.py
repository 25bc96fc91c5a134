"""What an endpoint's clients have in which workers."""

from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.fleet.holdings import ClientHoldings
from tests.core.fleet.test_pool import worker

CHAT = frozenset({"chat"})


def test_a_closed_tab_no_longer_binds_its_client_to_a_worker() -> None:
    held = ClientHoldings()
    held.add("a", BLOCK, worker("one", 1), CHAT)
    held.remove("a", BLOCK)
    assert held.of("a", "chat") == ()
    assert held.workers("a") == []


def test_only_the_last_tab_of_a_client_that_is_closed_releases_its_worker() -> None:
    held = ClientHoldings()
    one = worker("one", 1)
    for tab, at in ((BLOCK, one), (BLOCK + 1, one), (2 * BLOCK, worker("two", 2))):
        held.add("a", tab, at, CHAT)
    held.add("b", BLOCK + 2, one, CHAT)
    assert held.remove("a", BLOCK) is None
    assert held.remove("a", BLOCK + 1) is one
    assert held.of("a", "chat") == (2 * BLOCK,)


def test_a_worker_with_a_stream_of_a_client_is_released_with_the_client() -> None:
    held = ClientHoldings()
    one, two = worker("one", 1), worker("two", 2)
    assert held.add_other("a", one)
    assert not held.add_other("a", one)
    assert not held.add("a", BLOCK, one, CHAT)
    assert held.remove("a", BLOCK) is None
    assert held.add("a", 2 * BLOCK, two, CHAT)
    assert not held.add_other("a", two)
    assert held.add_other("b", one)
    assert {each.name for each in held.discard("a")} == {"one", "two"}
    assert held.discard("a") == []
    held.forget(two.instance)
    assert held.discard("b") == [one]
    assert held.add_other("b", one)
    held.forget(one.instance)
    assert held.discard("b") == []


def test_a_tab_that_a_client_did_not_open_is_not_forgotten_for_another() -> None:
    held = ClientHoldings()
    held.add("b", BLOCK, worker("one", 1), CHAT)
    assert held.remove("a", BLOCK) is None
    assert held.remove(None, BLOCK) is None
    assert held.of("b", "chat") == (BLOCK,)
