"""Which tabs in which workers belong to an endpoint's clients."""

from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.fleet.own_tabs import OwnRemoteTabs
from tests.core.fleet.test_pool import worker

CHAT = frozenset({"chat"})


def test_a_closed_tab_no_longer_binds_its_client_to_a_worker() -> None:
    tabs = OwnRemoteTabs()
    tabs.add("a", BLOCK, worker("one", 1), CHAT)
    tabs.remove("a", BLOCK)
    assert tabs.of("a", "chat") == ()
    assert tabs.workers("a") == []


def test_only_the_last_tab_of_a_client_that_is_closed_releases_its_worker() -> None:
    tabs = OwnRemoteTabs()
    one = worker("one", 1)
    for tab, at in ((BLOCK, one), (BLOCK + 1, one), (2 * BLOCK, worker("two", 2))):
        tabs.add("a", tab, at, CHAT)
    tabs.add("b", BLOCK + 2, one, CHAT)
    assert tabs.remove("a", BLOCK) is None
    assert tabs.remove("a", BLOCK + 1) is one
    assert tabs.of("a", "chat") == (2 * BLOCK,)


def test_a_worker_with_a_stream_of_a_client_is_released_with_the_client() -> None:
    tabs = OwnRemoteTabs()
    one, two = worker("one", 1), worker("two", 2)
    assert tabs.add_other("a", one)
    assert not tabs.add_other("a", one)
    assert not tabs.add("a", BLOCK, one, CHAT)
    assert tabs.remove("a", BLOCK) is None
    assert tabs.add("a", 2 * BLOCK, two, CHAT)
    assert not tabs.add_other("a", two)
    assert tabs.add_other("b", one)
    assert {each.name for each in tabs.discard("a")} == {"one", "two"}
    assert tabs.discard("a") == []
    tabs.forget(two.instance)
    assert tabs.discard("b") == [one]
    assert tabs.add_other("b", one)
    tabs.forget(one.instance)
    assert tabs.discard("b") == []


def test_a_tab_that_a_client_did_not_open_is_not_forgotten_for_another() -> None:
    tabs = OwnRemoteTabs()
    tabs.add("b", BLOCK, worker("one", 1), CHAT)
    assert tabs.remove("a", BLOCK) is None
    assert tabs.remove(None, BLOCK) is None
    assert tabs.of("b", "chat") == (BLOCK,)
