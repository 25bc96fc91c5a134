"""Which plugins are listed as tabs come and go, and how often that changes."""

from math import inf

from opentabs_py.core.protocol import DocumentState, LoadingTab
from opentabs_py.core.tabs.listed_plugins import ListedPlugins
from opentabs_py.core.tabs.selection import Tabs
from tests.fakes import OTHER_PAGE, a_document


def connected() -> Tabs:
    tabs = Tabs(grace=5.0)
    tabs.connection_changed(connected=True, now=0.0)
    return tabs


def show(tabs: Tabs, now: float, *, loading: bool = False, **readiness: str) -> None:
    """Report a tab in which plugins are in these states; without any, close it."""
    plugins = {name: {"readiness": state} for name, state in readiness.items()}
    documents = [DocumentState.model_validate(a_document(plugins=plugins))] if plugins else []
    coming = [LoadingTab(tab_id=9, url="https://chat.example/", plugins=["chat"])]
    tabs.update(documents, now, loading=coming if loading else [])


def settled(tabs: Tabs, now: float) -> ListedPlugins:
    """Return the plugins of tabs that have not changed for long."""
    plugins = ListedPlugins()
    plugins.step(tabs, now - 1.0)
    plugins.step(tabs, now)
    return plugins


def test_a_plugin_is_listed_once_it_has_been_ready_for_a_moment() -> None:
    tabs, plugins = connected(), ListedPlugins(rest=0.25)
    assert plugins.step(tabs, 10.0) == inf
    show(tabs, 11.0, chat="ready", mail="pending", news="unavailable")
    assert plugins.step(tabs, 11.0) == 11.25
    assert plugins.names == frozenset()
    assert plugins.step(tabs, 11.25) == inf
    assert plugins.names == {"chat"}


def test_a_plugin_whose_tab_closes_is_no_longer_listed() -> None:
    tabs = connected()
    show(tabs, 0.0, chat="ready")
    plugins = settled(tabs, 10.0)
    assert plugins.names == {"chat"}
    show(tabs, 20.0)
    plugins.step(tabs, 20.0)
    plugins.step(tabs, 20.25)
    assert plugins.names == frozenset()


def test_a_change_during_the_rest_begins_it_again() -> None:
    tabs, plugins = connected(), ListedPlugins(rest=0.25)
    show(tabs, 1.0, chat="ready")
    plugins.step(tabs, 1.0)
    show(tabs, 1.2, chat="ready", mail="ready")
    assert plugins.step(tabs, 1.2) == 1.45
    assert plugins.step(tabs, 1.3) == 1.45
    assert plugins.names == frozenset()


def test_what_was_but_a_flicker_changes_nothing() -> None:
    tabs = connected()
    show(tabs, 0.0, chat="ready")
    plugins = settled(tabs, 10.0)
    before = plugins.names
    show(tabs, 20.0)
    plugins.step(tabs, 20.0)
    show(tabs, 20.1, chat="ready")
    assert plugins.step(tabs, 20.1) == inf
    assert plugins.names is before


def test_two_changes_of_the_list_are_apart() -> None:
    tabs, plugins = connected(), ListedPlugins(rest=0.25, apart=1.0)
    show(tabs, 0.0, chat="ready")
    plugins.step(tabs, 0.0)
    plugins.step(tabs, 0.25)
    show(tabs, 0.3)
    assert plugins.step(tabs, 0.3) == 1.25
    assert plugins.names == {"chat"}
    assert plugins.step(tabs, 1.25) == inf
    assert plugins.names == frozenset()


def test_a_listed_plugin_stays_while_its_page_loads_again() -> None:
    tabs = connected()
    show(tabs, 0.0, chat="ready")
    plugins = settled(tabs, 10.0)
    show(tabs, 20.0, loading=True)
    assert plugins.step(tabs, 20.0) == inf
    show(tabs, 21.0, chat="pending")
    assert plugins.step(tabs, 21.0) == inf
    show(tabs, 22.0, chat="unavailable")
    plugins.step(tabs, 22.0)
    plugins.step(tabs, 23.0)
    assert plugins.names == frozenset()


def test_a_plugin_that_was_never_ready_is_not_listed_while_its_page_loads() -> None:
    tabs = connected()
    show(tabs, 0.0, loading=True, chat="pending")
    assert settled(tabs, 10.0).names == frozenset()


def test_one_ready_tab_of_several_is_enough() -> None:
    tabs = connected()
    states = [a_document(readiness="unavailable"), a_document(documentId=OTHER_PAGE, tabId=8)]
    tabs.update([DocumentState.model_validate(each) for each in states], 0.0)
    assert settled(tabs, 10.0).names == {"chat"}


def test_an_extension_that_reconnects_changes_nothing_and_one_that_stays_away_does() -> None:
    tabs = connected()
    show(tabs, 0.0, chat="ready")
    plugins = settled(tabs, 10.0)
    tabs.connection_changed(connected=False, now=20.0)
    assert plugins.step(tabs, 20.0) == 25.0
    assert plugins.names == {"chat"}
    plugins.step(tabs, 25.0)
    plugins.step(tabs, 25.25)
    assert plugins.names == frozenset()
