"""Which of the tools that pages register are listed, and where they run."""

from math import inf
from typing import Any

import pytest

from opentabs_py.core import page_tools
from opentabs_py.core.page_tools import (
    Cadence,
    ListedPageTool,
    PageRegistrations,
    SchemaCache,
    list_tools,
    plain_text,
    read_schema,
    wire_name,
)
from opentabs_py.core.protocol import (
    DocumentState,
    LoadingTab,
    PageToolsParams,
    PluginState,
    RegisteredTool,
)
from opentabs_py.core.tabs.selection import Tabs, Target, Wait
from opentabs_py.errors import ChainError

SHOP, OTHER = "https://shop.example/", "https://other.example/"
READY = {"@page": PluginState(readiness="ready")}


def a_document(number: int = 1, url: str = SHOP, **more: Any) -> DocumentState:
    about: dict[str, Any] = {
        "document_id": f"{number:032x}",
        "tab_id": number,
        "url": url,
        "title": "",
        "active": False,
        "focused": False,
        "protected": True,
        "calls": [],
        "plugins": READY,
    }
    return DocumentState(**{**about, **more})


def a_tool(name: str = "add", number: int = 1, **more: Any) -> RegisteredTool:
    about: dict[str, Any] = {
        "id": number,
        "name": name,
        "title": "",
        "description": "",
        "read_only": False,
        "consequential": False,
        "untrusted_content": False,
        "input_schema": {"type": "object"},
    }
    return RegisteredTool(**{**about, **more})


def a_list_of(*tools: RegisteredTool, number: int = 1) -> PageToolsParams:
    return PageToolsParams(document_id=f"{number:032x}", tools=[*tools])


def registrations_of(*pages: tuple[DocumentState, RegisteredTool]) -> PageRegistrations:
    registrations = PageRegistrations()
    registrations.update([document for document, _ in pages], [])
    for document, tool in pages:
        registrations.add(PageToolsParams(document_id=document.document_id, tools=[tool]))
    return registrations


def listed(
    *registrations: PageRegistrations, taken: set[str] | None = None
) -> list[ListedPageTool]:
    tools, refused = list_tools(registrations, taken or set(), SchemaCache())
    assert not refused
    return tools


def refusal(schema: dict[str, Any]) -> str:
    registrations = registrations_of((a_document(), a_tool(input_schema=schema)))
    tools, refused = list_tools([registrations], set(), SchemaCache())
    assert tools == []
    [why] = refused.values()
    return why


def test_a_tool_for_which_no_name_is_left_is_refused() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    taken: set[str] = set()
    for _ in range(5):  # the plain one, and those with a suffix of 4 to 32 digits
        [tool] = listed(registrations, taken=taken)
        taken.add(tool.name)
    tools, refused = list_tools([registrations], taken, SchemaCache())
    assert tools == []
    assert refused == {
        "https://shop.example 'add'": "other tools have all names that it could have"
    }


def test_a_pattern_of_a_page_is_neither_compiled_nor_a_reason_to_refuse_its_tool() -> None:
    schema = {"properties": {"a": {"pattern": "^[^]$"}, "b": {"pattern": r"\p{L}{200}"}}}
    [tool] = listed(registrations_of((a_document(), a_tool(input_schema=schema))))
    assert tool.input_schema == {"type": "object", **schema}  # clients may check it
    assert "is not valid JSON Schema" in refusal({"properties": {"a": {"pattern": 7}}})


# --- what the pages have ---


def test_pages_that_have_tools_over_the_limits_are_named_with_how_many() -> None:
    registrations = registrations_of(
        (a_document(), a_tool()), (a_document(2, OTHER), a_tool("sub"))
    )
    registrations.add(a_list_of(a_tool()).model_copy(update={"left_out": 7}))
    registrations.add(
        PageToolsParams(document_id=f"{9:032x}", tools=[], left_out=1)
    )  # not yet known
    tools, refused = list_tools([registrations], set(), SchemaCache())
    assert len(tools) == 2
    assert list(refused) == ["https://shop.example, 7 tools"]


def test_a_list_counts_once_its_document_is_known() -> None:
    registrations = PageRegistrations()
    assert registrations.add(a_list_of(a_tool()))
    assert listed(registrations) == []
    before = registrations.version
    registrations.update([a_document()], [])
    assert [tool.name for tool in listed(registrations)] == ["page_shop_example_add"]
    assert registrations.version > before


def test_the_same_list_again_changes_nothing() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    before = registrations.version
    assert not registrations.add(a_list_of(a_tool()))
    registrations.update([a_document()], [])
    assert registrations.version == before


def test_the_tools_of_a_document_go_with_it() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    before = registrations.version
    registrations.update([], [])
    assert (listed(registrations), registrations.version > before) == ([], True)
    registrations.update([a_document()], [])
    assert listed(registrations) == []


def test_a_document_that_may_be_reconnecting_keeps_its_tools() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    loading = LoadingTab(tab_id=1, url=SHOP, plugins=["@page"])
    registrations.update([], [loading])
    assert len(listed(registrations)) == 1
    registrations.update([a_document(2, tab_id=1)], [loading])
    assert listed(registrations) == []


def test_a_document_outside_the_patterns_has_no_tools() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    registrations.update([a_document(plugins={"chat": PluginState(readiness="ready")})], [])
    assert listed(registrations) == []


def test_a_new_url_of_a_document_is_a_change() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    before = registrations.version
    registrations.update([a_document(url=f"{SHOP}cart")], [])
    assert registrations.version > before


def test_lists_of_unknown_documents_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_tools, "MOST_UNSEEN", 2)
    registrations = PageRegistrations()
    for number in (1, 2, 3):
        registrations.add(a_list_of(a_tool(), number=number))
    registrations.update([a_document(number) for number in (1, 2, 3)], [])
    assert [document.tab_id for document, _ in registrations.tools()] == [2, 3]


def test_a_document_without_tools_is_not_one_that_has_sent_no_list() -> None:
    registrations = PageRegistrations()
    registrations.add(a_list_of())
    assert registrations.of_document(a_document(1).document_id) == []
    assert registrations.of_document(a_document(2).document_id) is None


# --- the list ---


def test_the_same_tool_in_two_tabs_is_one_with_two_places() -> None:
    first = (a_document(1), a_tool(number=1))
    second = (a_document(2, f"{SHOP}x"), a_tool(number=5, description="other words"))
    registrations = registrations_of(first, second)
    [tool] = listed(registrations)
    assert registrations.places(tool) == [first, second]
    assert [wire_name(registered) for _, registered in registrations.places(tool)] == [
        "1 add",
        "5 add",
    ]


@pytest.mark.parametrize(
    "more", [{"input_schema": {"properties": {}}}, {"read_only": True}, {"consequential": True}]
)
def test_a_tool_with_another_schema_or_other_hints_is_another(more: dict[str, Any]) -> None:
    registrations = registrations_of((a_document(1), a_tool()), (a_document(2), a_tool(**more)))
    first, second = listed(registrations)
    assert first.name != second.name
    assert [document.tab_id for document, _ in registrations.places(second)] == [2]


def test_tools_of_two_origins_are_never_one() -> None:
    registrations = registrations_of((a_document(1), a_tool()), (a_document(2, OTHER), a_tool()))
    assert [tool.name for tool in listed(registrations)] == [
        "page_shop_example_add",
        "page_other_example_add",
    ]
    assert [document.tab_id for document, _ in registrations.places(listed(registrations)[0])] == [
        1
    ]


def test_a_suffixed_name_works_before_it_is_needed() -> None:
    registrations = registrations_of((a_document(1), a_tool("add-x")))
    [alone] = listed(registrations)
    both = registrations_of((a_document(1), a_tool("add-x")), (a_document(2), a_tool("add_x")))
    assert alone.other_names == (listed(both)[0].name,)
    assert listed(both)[0].other_names == ()


def test_a_name_that_is_taken_stays_that_tool_s() -> None:
    registrations = registrations_of((a_document(), a_tool()))
    [tool] = listed(registrations, taken={"page_shop_example_add"})
    assert tool.name.startswith("page_shop_example_add_")


def test_a_page_of_no_site_has_no_tools() -> None:
    registrations = registrations_of(
        (a_document(url="file:///x"), a_tool()), (a_document(2), a_tool("sub"))
    )
    registrations.add(a_list_of(a_tool()).model_copy(update={"left_out": 7}))
    assert [tool.name for tool in listed(registrations)] == ["page_shop_example_sub"]


def test_more_tools_than_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_tools, "MOST", 1)
    first = (a_document(1), a_tool("one"))
    registrations = registrations_of(
        first, (a_document(2), a_tool("two")), (a_document(3), a_tool("one"))
    )
    tools, refused = list_tools([registrations], set(), SchemaCache())
    assert [tool.name for tool in tools] == ["page_shop_example_one"]
    assert refused == {"https://shop.example 'two'": "1 tools of pages are listed already"}
    assert [document.tab_id for document, _ in registrations.places(tools[0])] == [1, 3]


def test_what_a_page_says_is_marked_cut_and_cleaned() -> None:
    schema = {
        "properties": {
            "title": {"type": "string", "description": "\x1b[31m" + "y" * 400},
            "list": {"type": "array", "prefixItems": [{"title": "a\u202eb"}]},
        },
        "default": {"title": "kept"},
    }
    tool = a_tool(title="A\x1b\u202e", description="x" * 2000, input_schema=schema)
    [shown] = listed(registrations_of((a_document(), tool)))
    assert shown.title == "A (shop.example)"
    assert shown.description.startswith(
        "A tool of the page https://shop.example, which describes it as"
    )
    assert len(shown.description) < 1100
    properties: Any = shown.input_schema["properties"]
    assert len(properties["title"]["description"]) == 300
    assert "\x1b" not in properties["title"]["description"]
    assert properties["list"]["prefixItems"][0]["title"] == "a b"
    assert shown.input_schema["type"] == "object"


def test_members_that_are_named_like_a_note_are_not_notes() -> None:
    member = {"description": "x\x1by", "properties": {"title": {"description": "a\x1bb"}}}
    schema = {"properties": {"title": {"const": "x\x1by"}, "description": member}}
    [shown] = listed(registrations_of((a_document(), a_tool(input_schema=schema))))
    assert shown.input_schema["properties"] == {
        "title": {"const": "x\x1by"},
        "description": {"description": "x y", "properties": {"title": {"description": "a b"}}},
    }


def test_a_tool_with_an_unusable_schema_hides_no_other() -> None:
    broken = a_tool("broken", input_schema={"type": "array"})
    registrations = registrations_of((a_document(1), broken), (a_document(2), a_tool()))
    tools, refused = list_tools([registrations], set(), SchemaCache())
    assert [tool.name for tool in tools] == ["page_shop_example_add"]
    assert [*refused] == ["https://shop.example 'broken'"]


def test_a_tool_without_words_still_gets_a_name() -> None:
    [shown] = listed(registrations_of((a_document(), a_tool())))
    assert shown.title == "add (shop.example)"
    assert shown.description.endswith("which describes it as: nothing")


@pytest.mark.parametrize(
    ("hints", "annotations"),
    [
        ({}, {"readOnlyHint": False}),
        ({"read_only": True}, {"readOnlyHint": True}),
        (
            {"read_only": True, "consequential": True},
            {"readOnlyHint": False, "consequentialHint": True, "destructiveHint": True},
        ),
        (
            {"untrusted_content": True},
            {"readOnlyHint": False, "untrustedContentHint": True, "openWorldHint": True},
        ),
    ],
)
def test_hints_become_annotations(hints: dict[str, Any], annotations: dict[str, bool]) -> None:
    [shown] = listed(registrations_of((a_document(), a_tool(**hints))))
    assert shown.annotations == annotations
    assert shown.meta == {
        "origin": "https://shop.example",
        "name": "add",
        "consequentialHint": hints.get("consequential", False),
        "untrustedContentHint": hints.get("untrusted_content", False),
    }


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "array"}, "write 'object'"),
        ({"properties": []}, "not an object"),
        ({"properties": {"tabId": {}}}, "'tabId'"),
        ({"properties": {"x": {"$ref": "#/nowhere"}}}, "does not contain"),
    ],
)
def test_a_tool_with_an_unusable_schema_is_left_out(schema: dict[str, Any], why: str) -> None:
    assert why in refusal(schema)


def test_a_schema_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def note(schema: Any) -> Any:
        read.append(schema)
        return read_schema(schema)

    monkeypatch.setattr(page_tools, "read_schema", note)
    cache = SchemaCache(most=2)
    cache.read({"title": "x", "type": "object"})
    cache.read({"type": "object", "title": "x"})
    assert len(read) == 1
    cache, read[:] = SchemaCache(most=2), []
    for name in ("a", "a", "b", "a", "c", "a"):  # the third does not fit
        cache.read({"title": name})
    assert [each["title"] for each in read] == ["a", "b", "c", "a"]


def test_lines_and_joiners_of_a_text_are_kept() -> None:
    assert plain_text("one\ntwo\u200d\tthree", 100) == "one\ntwo\u200d three"


# --- when ---


def test_a_change_is_listed_after_a_rest_however_many_follow() -> None:
    cadence = Cadence(rest=1.0, apart=10.0)
    assert cadence.due(5.0, is_changed=False) == inf
    assert cadence.due(5.0, is_changed=True) == 6.0
    assert cadence.due(5.9, is_changed=True) == 6.0


def test_a_change_is_listed_at_least_apart_seconds_after_the_last_list() -> None:
    cadence = Cadence(rest=1.0, apart=10.0)
    cadence.handle_listed(6.0)
    assert cadence.due(7.0, is_changed=True) == 16.0


def test_a_list_that_takes_long_is_made_less_often() -> None:
    cadence = Cadence(rest=0.0, apart=1.0, share=0.05)
    cadence.handle_listed(6.0, took=0.2)
    assert cadence.due(6.0, is_changed=True) == 10.0
    cadence.handle_listed(10.0, took=0.001)
    assert cadence.due(10.0, is_changed=True) == 11.0


# --- whether a page may still have a tool ---


def test_a_page_that_reloads_may_offer_its_tool_again_until_it_has_loaded() -> None:
    pages = registrations_of((a_document(), a_tool()))
    [tool] = listed(pages)
    assert pages.may_have(tool, None)
    assert pages.may_have(tool, 1)
    assert not pages.may_have(tool, 2)
    assert registrations_of((a_document(2, OTHER), a_tool()), (a_document(), a_tool())).may_have(
        tool, 1
    )
    pages.update([], [LoadingTab(tab_id=1, url=SHOP, plugins=["@page"])])
    assert pages.may_have(tool, 1)
    coming = a_document(2, tab_id=1, plugins={"@page": PluginState(readiness="pending")})
    pages.update([coming], [])
    assert pages.may_have(tool, 1)
    pages.add(a_list_of(a_tool("sub"), number=2))
    assert pages.may_have(tool, 1)  # it registers one tool after the other
    pages.update([a_document(2, tab_id=1)], [])
    assert not pages.may_have(tool, 1)
    assert not pages.may_have(tool, None)


@pytest.mark.parametrize("shown", [[], [a_document(2, OTHER, tab_id=1)]])
def test_a_page_that_was_left_or_closed_does_not_have_its_tools(
    shown: list[DocumentState],
) -> None:
    pages = registrations_of((a_document(), a_tool()))
    [tool] = listed(pages)
    pages.update(shown, [])
    assert not pages.may_have(tool, 1)


# --- where ---


def tabs_with(*documents: DocumentState, loading: int | None = None) -> Tabs:
    tabs = Tabs(grace=5.0)
    tabs.connection_changed(connected=True, now=0.0)
    coming = [] if loading is None else [LoadingTab(tab_id=loading, url=SHOP, plugins=["@page"])]
    tabs.update(documents, 0.0, loading=coming)
    return tabs


BOUND = Target("@page", tab_id=1, document_id=a_document().document_id)


def test_a_bound_call_runs_in_its_document() -> None:
    document = a_document()
    assert tabs_with(a_document(2), document).choose(BOUND, 0.0) is document


@pytest.mark.parametrize(
    "tabs",
    [
        tabs_with(),
        tabs_with(a_document(2, tab_id=1)),
        tabs_with(a_document(2, tab_id=1), loading=1),
        tabs_with(a_document(plugins={})),
        tabs_with(loading=2),
    ],
)
def test_a_bound_call_fails_at_once_when_its_document_is_gone(tabs: Tabs) -> None:
    found = tabs.choose(BOUND, 0.0)
    assert isinstance(found, ChainError)
    assert found.detail.code == "PAGE_TOOL_GONE"


def test_a_bound_call_waits_for_a_document_that_may_be_reconnecting() -> None:
    tabs = tabs_with(loading=1)
    found = tabs.choose(BOUND, 0.0)
    assert isinstance(found, Wait)
    assert isinstance(tabs.choose(BOUND, found.until), ChainError)


def test_a_bound_call_waits_until_its_page_has_loaded() -> None:
    document = a_document(plugins={"@page": PluginState(readiness="pending")})
    found = tabs_with(document).choose(BOUND, 0.0)
    assert isinstance(found, Wait)
    assert found.error.detail.code == "TAB_NOT_READY"
