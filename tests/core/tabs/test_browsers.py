"""Which browser handles a call: never another person's by a guess."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import (
    PROTOCOL_VERSION,
    DocumentState,
    HelloParams,
    LoadingTab,
    TabsParams,
)
from opentabs_py.core.sites.instances import Instance, Instances
from opentabs_py.core.tabs.browsers import (
    JoinedTabs,
    choose,
    choose_for_new,
    choose_page,
    renumbered,
)
from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.core.tabs.owners import TabOwners
from opentabs_py.core.tabs.selection import Tabs, Target, Wait
from opentabs_py.errors import CallRefusedError, ChainError

NOW = 100.0
CHAT = Target("chat", ("https://chat.example/*",))


@dataclass
class Browser:
    name: str
    tabs: Tabs
    number: int = 0


def document(
    tab_id: int,
    *,
    readiness: str = "ready",
    is_shown: bool = False,
    url: str = "https://chat.example/",
    plugin: str = "chat",
) -> DocumentState:
    return DocumentState.model_validate(
        {
            "documentId": f"{tab_id:032x}",
            "tabId": tab_id,
            "url": url,
            "title": f"Tab {tab_id}",
            "active": is_shown,
            "focused": is_shown,
            "protected": True,
            "calls": [],
            "plugins": {plugin: {"readiness": readiness}},
        }
    )


def loading(tab_id: int, url: str = "https://chat.example/") -> LoadingTab:
    return LoadingTab(tab_id=tab_id, url=url, plugins=["chat"])


def browser(
    name: str,
    *documents: DocumentState,
    coming: Sequence[LoadingTab] = (),
    connected: bool = True,
    since: float = 0.0,
) -> Browser:
    tabs = Tabs()
    tabs.connection_changed(connected=connected, now=since)
    if connected:
        tabs.update(documents, now=since, loading=coming)
    return Browser(name, tabs)


WORK = browser("work", document(1))
HOME = browser("home", document(BLOCK + 1))
EMPTY = browser("empty")


def test_the_only_browser_with_a_ready_tab_takes_the_call() -> None:
    assert choose([EMPTY, HOME], CHAT, None, NOW) == 1
    unready = browser("work", document(1, readiness="unavailable"))
    assert choose([unready, HOME], CHAT, None, NOW) == 1


def test_a_ready_tab_of_another_plugin_does_not_count() -> None:
    other = browser("other", document(1, plugin="mail"))
    assert choose([other, HOME], CHAT, None, NOW) == 1


def test_two_browsers_that_could_take_a_call_are_an_error_that_names_them_and_their_tabs() -> None:
    error = choose([WORK, HOME], CHAT, None, NOW)
    assert isinstance(error, ChainError)
    assert error.detail.code == "SEVERAL_BROWSERS"
    assert error.detail.retryable is False
    assert 'work: 1 "Tab 1"' in str(error)
    assert f'home: {BLOCK + 1} "Tab {BLOCK + 1}"' in str(error)


def test_of_two_browsers_the_one_that_shows_the_page_takes_the_call() -> None:
    shown = browser("home", document(BLOCK + 1, is_shown=True))
    assert choose([WORK, shown], CHAT, None, NOW) == 1
    both = browser("work", document(1, is_shown=True))
    assert isinstance(choose([both, shown], CHAT, None, NOW), ChainError)


def test_a_page_behind_another_in_the_focused_window_is_not_shown() -> None:
    behind = document(BLOCK + 1).model_copy(update={"focused": True})
    unfocused = document(1).model_copy(update={"active": True})
    both = [browser("work", unfocused), browser("home", behind)]
    assert isinstance(choose(both, CHAT, None, NOW), ChainError)


def test_a_shown_page_that_is_not_ready_does_not_count_beside_ready_ones() -> None:
    signed_out = document(1, readiness="unavailable", is_shown=True)
    work = browser("work", signed_out, document(2))
    assert isinstance(choose([work, HOME], CHAT, None, NOW), ChainError)


def test_where_it_is_ready_nowhere_the_same_applies_to_tabs_that_are_not_ready() -> None:
    signed_out = browser("work", document(1, readiness="unavailable"))
    comes = browser("home", coming=[loading(BLOCK + 1)])
    assert choose([signed_out, EMPTY], CHAT, None, NOW) == 0
    assert choose([EMPTY, comes], CHAT, None, NOW) == 1
    error = choose([signed_out, comes], CHAT, None, NOW)
    assert isinstance(error, ChainError)
    assert str(error).endswith('work: 1 "Tab 1"; home.')
    shown = browser("work", document(1, readiness="unavailable", is_shown=True))
    assert choose([shown, comes], CHAT, None, NOW) == 0


def test_without_any_tab_a_connected_browser_says_so() -> None:
    gone = browser("gone", connected=False)
    assert choose([gone, EMPTY, EMPTY], CHAT, None, NOW) == 1
    assert choose([gone, gone], CHAT, None, NOW) == 0


@pytest.mark.parametrize(
    ("tab_id", "index"), [(1, 0), (BLOCK + 1, 1), (BLOCK - 1, 0), (99 * BLOCK, 0)]
)
def test_a_named_tab_decides_whatever_else_there_is(tab_id: int, index: int) -> None:
    shown = browser("shown", document(3, is_shown=True))
    target = Target("chat", tab_id=tab_id)
    assert choose([shown, HOME], target, 1, NOW) == index


def test_the_browser_that_a_client_used_last_takes_its_next_call() -> None:
    shown = browser("work", document(1, is_shown=True))
    assert choose([shown, HOME], CHAT, 1, NOW) == 1
    assert choose([shown, HOME], CHAT, 0, NOW) == 0


def test_a_browser_used_last_without_a_tab_any_more_is_forgotten() -> None:
    assert choose([EMPTY, HOME], CHAT, 0, NOW) == 1


def test_a_browser_that_just_disconnected_is_waited_for() -> None:
    """Its tab may be the right one; choosing another browser's would be a guess."""
    away = browser("work", connected=False, since=NOW - 1)
    choice = choose([away, HOME], CHAT, None, NOW)
    assert isinstance(choice, Wait)
    assert choice.until == NOW - 1 + away.tabs.grace
    assert choose([away, HOME], CHAT, 0, NOW) == 0  # which then waits itself
    assert choose([away, HOME], CHAT, 1, NOW) == 1
    assert choose([away, HOME], CHAT, None, choice.until) == 1


def test_only_tabs_of_the_named_instance_count() -> None:
    urls = {"eu": ("https://eu.example/",), "us": ("https://us.example/",)}
    eu = Instance("eu", Instances(urls))
    target = Target("chat", instance=eu)
    work = browser("work", document(1, url="https://us.example/"))
    home = browser("home", document(BLOCK + 1, url="https://eu.example/"))
    assert choose([work, home], target, None, NOW) == 1
    us = browser("work", coming=[loading(1, "https://us.example/")])
    assert choose([us, home], target, None, NOW) == 1


@pytest.mark.parametrize("index", [0, 3])
def test_tabs_are_numbered_among_those_of_all_browsers(index: int) -> None:
    snapshot = TabsParams(
        tab_ids=[1, 2], documents=[document(1)], loading=[loading(2)], crashed=[2]
    )
    seen = renumbered(snapshot, index)
    base = index * BLOCK
    assert (seen.tab_ids, seen.crashed) == ([base + 1, base + 2], [base + 2])
    assert [each.tab_id for each in seen.documents] == [base + 1]
    assert [each.tab_id for each in seen.loading] == [base + 2]
    assert seen.documents[0].document_id == snapshot.documents[0].document_id


def test_a_hello_is_renumbered_too() -> None:
    hello = HelloParams(
        protocol_version=PROTOCOL_VERSION,
        extension_version="1",
        boot_id="b",
        browser_id="c" * 32,
        browser="x",
        time=1.0,
        tab_ids=[4],
        documents=[document(4)],
    )
    assert renumbered(hello, 1).documents[0].tab_id == BLOCK + 4


def test_joined_tabs_are_those_of_all_browsers() -> None:
    comes = browser("home", coming=[loading(BLOCK + 2)])
    joined = JoinedTabs([WORK.tabs, comes.tabs])
    assert [each.tab_id for each in joined.documents] == [1]
    assert [each.tab_id for each in joined.loading] == [BLOCK + 2]
    assert joined.has_browser
    gone = Tabs(has_browser=False)
    assert not JoinedTabs([gone]).has_browser


def test_a_plugin_has_the_best_status_that_it_has_anywhere() -> None:
    signed_out = browser("work", document(1, readiness="unavailable"))
    assert JoinedTabs([EMPTY.tabs]).status("chat") == "closed"
    assert JoinedTabs([EMPTY.tabs, signed_out.tabs]).status("chat") == "unavailable"
    assert JoinedTabs([signed_out.tabs, HOME.tabs, EMPTY.tabs]).status("chat") == "ready"


def test_a_disconnected_browser_is_waited_for_and_only_without_any_it_fails() -> None:
    away = browser("away", connected=False, since=NOW - 1)
    later = browser("later", connected=False, since=NOW)
    gone = browser("gone", connected=False)
    assert JoinedTabs([gone.tabs, HOME.tabs]).why_disconnected(NOW) is None
    wait = JoinedTabs([later.tabs, away.tabs, HOME.tabs]).why_disconnected(NOW)
    assert isinstance(wait, Wait)
    assert wait.until == NOW - 1 + away.tabs.grace
    assert isinstance(JoinedTabs([gone.tabs]).why_disconnected(NOW), ChainError)


# --- client-owned tabs ---


def of_client(client: str | None, tab_id: int | None = None) -> Target:
    return Target("chat", ("https://chat.example/*",), tab_id, client=client)


def with_own_tabs(*browsers: Browser, **tabs: int) -> list[Browser]:
    """Let clients own these tabs; all browsers share the owners, as in a server."""
    owners = browsers[0].tabs.owners
    for each in browsers:
        each.tabs.owners = owners
    for client, tab in tabs.items():
        owners.add(tab, client)
    return [*browsers]


def test_a_clients_own_tab_decides_before_the_browser_that_it_used_last() -> None:
    work = browser("work", document(1, is_shown=True))
    home = browser("home", document(BLOCK + 1), document(BLOCK + 2))
    both = with_own_tabs(work, home, a=BLOCK + 2)
    assert choose(both, of_client("a"), 0, NOW) == 1
    assert choose(both, of_client("b"), 0, NOW) == 0


def test_a_browser_whose_only_tab_is_anothers_does_not_count() -> None:
    work = browser("work", document(1))
    home = browser("home", document(BLOCK + 1))
    both = with_own_tabs(work, home, a=BLOCK + 1)
    assert choose(both, of_client("b"), None, NOW) == 0
    assert choose(both, of_client(None), None, NOW) == 0


def test_an_own_tab_without_the_plugin_does_not_decide() -> None:
    work = browser("work", document(1))
    home = browser("home", document(BLOCK + 1, plugin="mail"))
    assert choose(with_own_tabs(work, home, a=BLOCK + 1), of_client("a"), None, NOW) == 0


def test_the_browser_of_an_own_tab_does_not_decide_though_the_user_has_the_plugin_there() -> None:
    work = browser("work", document(1))
    home = browser("home", document(BLOCK + 1, plugin="mail"), document(BLOCK + 2))
    assert choose(with_own_tabs(work, home, a=BLOCK + 1), of_client("a"), 0, NOW) == 0


def test_own_tabs_are_found_where_the_numbers_of_the_browsers_do_not_begin_at_zero() -> None:
    work = replace(browser("work", document(3 * BLOCK + 1)), number=3)
    home = replace(browser("home", document(4 * BLOCK + 1)), number=4)
    both = with_own_tabs(work, home, a=4 * BLOCK + 1)
    work.tabs.owners.add(4 * BLOCK + 2, "b", ["chat"])
    assert choose(both, of_client("a"), 0, NOW) == 1
    assert choose(both, of_client("b"), 0, NOW) == 1
    assert choose(both, of_client("c"), 0, NOW) == 0


def test_an_own_tab_that_was_opened_for_the_plugin_decides_whatever_it_shows() -> None:
    work = browser("work", document(1))
    home = browser("home")
    both = with_own_tabs(work, home)
    work.tabs.owners.add(BLOCK + 1, "a", ["chat"])
    assert choose(both, of_client("a"), 0, NOW) == 1
    assert choose(both, of_client("b"), 0, NOW) == 0


def test_an_own_tab_that_loads_decides() -> None:
    work = browser("work", document(1))
    home = browser("home", coming=[loading(BLOCK + 1)])
    assert choose(with_own_tabs(work, home, a=BLOCK + 1), of_client("a"), None, NOW) == 1


def test_the_browser_of_an_own_tab_is_waited_for_while_it_reconnects() -> None:
    work = browser("work", document(1))
    home = browser("home", connected=False, since=NOW)
    found = choose(with_own_tabs(work, home, a=BLOCK + 1), of_client("a"), 0, NOW)
    assert isinstance(found, Wait)


def test_a_new_tab_is_opened_in_the_named_browser_the_preferred_one_or_the_only_one() -> None:
    assert choose_for_new(["work", "home"], "home", 0) == 1
    assert choose_for_new(["work", "home"], None, 1) == 1
    assert choose_for_new(["work"], None, None) == 0


def test_a_new_tab_that_either_could_have_is_an_error_that_names_them() -> None:
    error = choose_for_new(["work", "home"], None, None)
    assert isinstance(error, CallRefusedError)
    assert error.detail.code == "SEVERAL_BROWSERS"
    assert "work, home" in str(error)


def test_a_new_tab_is_opened_in_a_browser_that_is_gone_only_if_it_is_named_or_all_are() -> None:
    assert choose_for_new(["work", "home"], None, None, {0}) == 1
    assert choose_for_new(["work", "home"], None, 0, {0}) == 1
    assert choose_for_new(["work", "home"], "work", None, {0}) == 0
    assert choose_for_new(["work", "home"], None, None, {0, 1}) == 0
    assert choose_for_new(["work", "home"], None, 1, {0, 1}) == 1


def test_the_error_about_a_new_tab_names_no_browser_that_is_gone() -> None:
    error = choose_for_new(["work", "home", "play"], None, None, {1})
    assert isinstance(error, CallRefusedError)
    assert "work, play." in str(error)


def test_a_new_tab_in_a_browser_that_does_not_exist_is_an_error_that_names_those_that_do() -> None:
    error = choose_for_new(["work", "home"], "hone", 0)
    assert isinstance(error, CallRefusedError)
    assert error.detail.code == "INVALID_ARGUMENTS"
    assert "no browser 'hone'" in str(error)
    assert "work, home" in str(error)


def test_of_equal_browsers_the_one_with_the_fewest_calls_takes_the_call() -> None:
    shown = browser("home", document(BLOCK + 1, is_shown=True))
    assert choose([WORK, shown], CHAT, None, NOW, [(0, 5), (1, 0)]) == 0
    assert choose([WORK, shown], CHAT, None, NOW, [(1, 0), (0, 5)]) == 1
    assert choose([WORK, shown], CHAT, None, NOW, [(1, 5), (1, 4)]) == 1


def test_equal_browsers_do_not_wait_for_one_that_is_reconnecting() -> None:
    gone = browser("gone", connected=False, since=NOW - 0.1)
    assert choose([gone, HOME], CHAT, None, NOW, [(0, 0), (0, 0)]) == 1


def test_browsers_may_be_numbered_from_any_number() -> None:
    first, second = (
        replace(browser(str(number), document(number * BLOCK + 1)), number=number)
        for number in (700, 701)
    )
    named = replace(CHAT, tab_id=701 * BLOCK + 1)
    assert choose([first, second], named, None, NOW) == 1
    for nobodys in (5, 699 * BLOCK + 1, 702 * BLOCK + 1):
        assert choose([first, second], replace(CHAT, tab_id=nobodys), None, NOW) == 0
    both = with_own_tabs(first, second, a=701 * BLOCK + 1)
    assert choose(both, of_client("a"), None, NOW) == 1


def test_of_two_browsers_that_could_take_a_call_the_error_names_the_plugin() -> None:
    assert "plugin 'chat'" in str(choose([WORK, HOME], CHAT, None, NOW))


# --- tools that pages register themselves ---


def page_of(
    *pages: DocumentState,
    tab_id: int | None = None,
    client: str | None = None,
    owners: TabOwners | None = None,
    preferred: int | None = None,
) -> int | str:
    """Return the tab of the chosen page, or the code and text of the error."""
    names = {0: "work", 1: "home"}
    target = Target(PAGE, tab_id=tab_id, client=client, page_tool="shop_add")
    chosen = choose_page(pages, target, owners or TabOwners(), names, preferred)
    if isinstance(chosen, DocumentState):
        return chosen.tab_id
    return f"{chosen.detail.code}: {chosen}"


def test_a_page_in_front_is_preferred_in_one_browser_and_between_two() -> None:
    assert page_of(document(1), document(2, is_shown=True), document(3)) == 2
    shown = document(BLOCK + 1, is_shown=True)
    assert page_of(document(1), document(BLOCK + 2), shown) == BLOCK + 1


def test_of_two_browsers_with_the_page_the_preferred_one_is_chosen() -> None:
    shown = document(BLOCK + 1, is_shown=True)
    assert page_of(document(1), shown, preferred=0) == 1
    assert page_of(document(1), document(BLOCK + 1), preferred=1) == BLOCK + 1
    assert page_of(document(1), shown, preferred=7) == BLOCK + 1


def test_pages_in_two_browsers_of_which_none_is_clear_are_an_error_that_names_them() -> None:
    error = str(page_of(document(1), document(BLOCK + 1)))
    assert error.startswith("SEVERAL_BROWSERS")
    assert f'work: 1 "Tab 1"; home: {BLOCK + 1} "Tab {BLOCK + 1}"' in error
    both = [document(1, is_shown=True), document(BLOCK + 1, is_shown=True)]
    assert str(page_of(*both)).startswith("SEVERAL_BROWSERS")


def test_a_client_s_own_page_that_it_used_last_is_chosen_in_whichever_browser() -> None:
    owners = TabOwners()
    owners.add(BLOCK + 1, "a")
    owners.add(1, "a")
    owners.use(BLOCK + 1, "shop_add")
    pages = document(1), document(2, is_shown=True), document(BLOCK + 1)
    assert page_of(*pages, client="a", owners=owners, preferred=0) == BLOCK + 1
    assert page_of(*pages, client="b", owners=owners) == 2


def test_a_page_that_is_named_is_used_or_refused() -> None:
    owners = TabOwners()
    owners.add(3, "a")
    pages = document(1), document(2, is_shown=True), document(3)
    assert page_of(*pages, tab_id=1) == 1
    theirs = str(page_of(*pages, tab_id=3, client="b", owners=owners))
    assert theirs.startswith("TAB_NOT_YOURS")
    assert "Tab 3 belongs to another client" in theirs
    assert "for the tool 'shop_add'" in theirs
    missing = str(page_of(*pages, tab_id=9, client="b", owners=owners))
    assert missing.startswith("TAB_NOT_FOUND")
    assert "Tab 9 does not match the tool 'shop_add'. Tabs that do: 2" in missing
    assert "3" not in missing


def test_without_a_page_that_may_be_used_the_tool_is_gone() -> None:
    owners = TabOwners()
    owners.add(1, "a")
    assert str(page_of(document(1), client="b", owners=owners)).startswith("PAGE_TOOL_GONE")


def test_a_client_whose_tab_no_longer_has_the_tool_does_not_use_the_users() -> None:
    owners = TabOwners()
    owners.add(3, "a")
    owners.add(4, "b")
    owners.use(3, "shop_add")
    owners.use(4, "shop_remove")
    assert str(page_of(document(1), client="a", owners=owners)).startswith("PAGE_TOOL_GONE")
    assert page_of(document(1), tab_id=1, client="a", owners=owners) == 1
    assert page_of(document(1), client="b", owners=owners) == 1
