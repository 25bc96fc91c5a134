"""The list of tabs that agents read."""

from typing import Any

from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import DocumentState, LoadingTab
from opentabs_py.core.schemas.checker import Checker
from opentabs_py.core.tabs.listing import (
    LONGEST_TITLE,
    LONGEST_URL,
    SCHEMA,
    TAB,
    describe_opened,
    has_reported,
    list_tabs,
)
from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.core.tabs.owners import TabOwners
from tests.fakes import OTHER_PAGE, Json, a_document


def listed(*documents: Json, loading: list[LoadingTab] | None = None) -> Any:
    return list_tabs([DocumentState.model_validate(each) for each in documents], loading or [])


def test_a_tab_is_described_by_what_an_agent_needs_to_choose_it() -> None:
    assert listed(a_document(title="Inbox (3)")) == {
        "tabs": [
            {
                "tabId": 7,
                "title": "Inbox (3)",
                "url": "https://chat.example/",
                "active": True,
                "plugins": [{"name": "chat", "readiness": "ready"}],
            }
        ]
    }


def test_the_tab_that_calls_prefer_comes_first() -> None:
    behind = a_document(tabId=9, documentId=OTHER_PAGE, active=False, focused=False)
    tabs = listed(behind, a_document())["tabs"]
    assert [tab["tabId"] for tab in tabs] == [7, 9]


def test_a_plugin_that_is_not_ready_has_the_reason_if_it_is_known() -> None:
    plugins = {
        "mail": {"readiness": "pending"},
        "chat": {"readiness": "unavailable", "reason": "isReady() threw:\n no user"},
    }
    [tab] = listed(a_document(plugins=plugins))["tabs"]
    assert tab["plugins"] == [
        {"name": "chat", "readiness": "unavailable", "reason": "isReady() threw:  no user"},
        {"name": "mail", "readiness": "pending"},
    ]


def test_a_tab_that_is_loading_is_listed_as_pending_after_the_others() -> None:
    coming = LoadingTab(tab_id=3, url="https://mail.example/", plugins=["mail", "chat"])
    _, tab = listed(a_document(), loading=[coming])["tabs"]
    assert tab == {
        "tabId": 3,
        "title": "",
        "url": "https://mail.example/",
        "active": False,
        "plugins": [
            {"name": "chat", "readiness": "pending"},
            {"name": "mail", "readiness": "pending"},
        ],
    }


def test_tabs_of_pages_own_tools_are_listed_but_not_as_a_plugin() -> None:
    documents = a_document(plugins={PAGE: {"readiness": "ready"}})
    coming = LoadingTab(tab_id=3, url="https://mail.example/", plugins=[PAGE, "mail"])
    one, other = listed(documents, loading=[coming])["tabs"]
    assert one["plugins"] == []
    assert other["plugins"] == [{"name": "mail", "readiness": "pending"}]


def test_a_document_that_no_plugin_runs_in_any_more_is_left_out() -> None:
    assert listed(a_document(plugins={})) == {"tabs": []}


def test_what_pages_write_takes_one_line_and_no_more_than_the_limits() -> None:
    [tab] = listed(a_document(title="a\nb" + "x" * 999, url="https://x/" + "y" * 999))["tabs"]
    assert tab["title"].startswith("a bx")
    assert (len(tab["title"]), len(tab["url"])) == (LONGEST_TITLE, LONGEST_URL)


def test_the_list_matches_its_schema_which_refuses_others() -> None:
    checker = Checker(SCHEMA)
    reason = {"chat": {"readiness": "unavailable", "reason": "signed out"}}
    coming = LoadingTab(tab_id=3, url="https://mail.example/", plugins=["mail"])
    assert not checker.violations(listed(a_document(plugins=reason), loading=[coming]))
    assert not checker.violations(listed())
    assert checker.violations({"tabs": [{"tabId": "7"}]})


# --- client-owned tabs ---


def numbered(tab_id: int, **more: Any) -> DocumentState:
    made = a_document(tabId=tab_id, documentId=f"{tab_id:032x}", **more)
    return DocumentState.model_validate(made)


def three_tabs() -> tuple[list[DocumentState], TabOwners]:
    """Return the tabs of the user (1), of a client (2) and of nobody in particular (3)."""
    owners = TabOwners()
    owners.add(2, "a")
    owners.add(3, None)
    return [numbered(tab_id) for tab_id in (1, 2, 3)], owners


def listed_for(client: str | None) -> list[Any]:
    documents, owners = three_tabs()
    listed: Any = list_tabs(documents, [], owners=owners, client=client)
    return [(tab["tabId"], tab.get("own")) for tab in listed["tabs"]]


def test_a_client_sees_its_own_tabs_first_and_not_those_of_others() -> None:
    assert listed_for("a") == [(2, True), (1, None), (3, False)]
    assert listed_for("b") == [(1, None), (3, False)]


def test_without_a_session_all_tabs_are_listed_because_each_can_be_named() -> None:
    assert listed_for(None) == [(1, None), (3, False), (2, False)]


def opened(tab_id: int, *documents: DocumentState, loading: list[LoadingTab] | None = None) -> Any:
    owners = TabOwners()
    owners.add(tab_id, "a")
    url = "https://chat.example/new"
    return describe_opened(tab_id, url, documents, loading or [], owners=owners, client="a")


def test_with_several_browsers_each_tab_says_whose_it_is() -> None:
    names = {0: "work", 1: "home"}
    documents = [numbered(1), numbered(BLOCK + 1)]
    coming = LoadingTab(tab_id=BLOCK + 2, url="https://chat.example/", plugins=["chat"])
    listed: Any = list_tabs(documents, [coming], names)
    assert {tab["tabId"]: tab["browser"] for tab in listed["tabs"]} == {
        1: "work",
        BLOCK + 1: "home",
        BLOCK + 2: "home",
    }
    owners, url = TabOwners(), "https://chat.example/"
    owners.add(BLOCK + 1, "a")
    opened = describe_opened(BLOCK + 1, url, documents, [], names, owners=owners, client="a")
    assert opened["browser"] == "home"


def test_a_tab_that_was_opened_is_described_as_in_the_list() -> None:
    tab = opened(2, numbered(1), numbered(2, title="Inbox"))
    assert (tab["tabId"], tab["title"], tab["own"]) == (2, "Inbox", True)
    assert Checker(TAB).violations(tab) == []


def test_a_tab_that_was_opened_and_still_loads_is_pending() -> None:
    coming = LoadingTab(tab_id=2, url="https://chat.example/", plugins=["chat"])
    other = LoadingTab(tab_id=3, url="https://chat.example/", plugins=["mail"])
    assert opened(2, loading=[other, coming])["plugins"] == [
        {"name": "chat", "readiness": "pending"}
    ]


def test_a_tab_that_was_opened_on_a_page_without_plugins_has_none() -> None:
    tab = opened(2, numbered(1))
    assert (tab["url"], tab["title"]) == ("https://chat.example/new", "")
    assert (tab["active"], tab["plugins"]) == (False, [])
    assert Checker(TAB).violations(tab) == []


def test_a_page_has_reported_when_none_of_its_plugins_is_pending() -> None:
    pending = numbered(2, plugins={"a": {"readiness": "ready"}, "b": {"readiness": "pending"}})
    assert not has_reported(2, [numbered(1), pending])
    assert has_reported(2, [numbered(1), numbered(2, readiness="unavailable")])
    assert not has_reported(2, [])
