"""In which page a call of a tool that pages register runs."""

from typing import Any

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.page_tools import PageRegistrations, SchemaCache, list_tools
from opentabs_py.core.protocol import DocumentState, PageToolsParams, RegisteredTool
from opentabs_py.core.tabs.numbers import numbers_of
from opentabs_py.core.trace.recorder import CallRecorder, Instant
from opentabs_py.errors import CallError, CallRefusedError, ChainError
from tests.fakes import pages_of

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = RegisteredTool.model_validate(
    {
        "id": 3,
        "name": "add",
        "title": "",
        "description": "",
        "readOnly": False,
        "consequential": False,
        "untrustedContent": False,
        "inputSchema": SCHEMA,
    }
)


def a_bridge(
    *tabs: int, number: int = 0, focused: int | None = None, registered: RegisteredTool = ADD
) -> Bridge:
    """Return the link to a browser with these tabs, each with the tool."""
    reports = PageRegistrations()
    bridge = Bridge(
        secret="s" * 64,
        origin="chrome-extension://x",
        name=f"b{number}",
        number=number,
        page_tools=reports,
    )
    documents = [
        DocumentState.model_validate(
            {
                "documentId": f"{numbers_of(number)[tab]:032x}",
                "tabId": numbers_of(number)[tab],
                "url": "https://shop.example/",
                "title": f"tab {tab}",
                "active": tab == focused,
                "focused": tab == focused,
                "protected": True,
                "calls": [],
                "plugins": {"@page": {"readiness": "ready"}},
            }
        )
        for tab in tabs
    ]
    bridge.tabs.connection_changed(connected=True, now=0.0)
    bridge.tabs.update(documents, 0.0)
    reports.update(documents, [])
    for document in documents:
        reports.add(PageToolsParams(document_id=document.document_id, tools=[registered]))
    return bridge


def a_tool(pages: Pages) -> PageTool:
    reports = [each.page_tools for each in pages.bridges if each.page_tools is not None]
    [listed], _ = list_tools(reports, (), SchemaCache())
    return PageTool(pages, listed, message_limit=1000)


def chosen(tool: PageTool, client: str | None = None, **arguments: Any) -> int | None:
    target, name, rest = tool.check({"a": 1, **arguments}, client)
    assert (name, rest) == ("3 add", {"a": 1})
    assert target.document_id == f"{target.tab_id or 0:032x}"
    return target.tab_id


def failure(tool: PageTool, client: str | None = None, **arguments: Any) -> str:
    with pytest.raises(CallError) as caught:
        tool.check({"a": 1, **arguments}, client)
    return caught.value.detail.code


async def test_the_tab_in_front_takes_the_call_unless_another_is_named() -> None:
    tool = a_tool(pages_of(a_bridge(1, 2, focused=1)))
    assert chosen(tool) == 1
    assert chosen(tool, tabId=2) == 2
    assert failure(tool, tabId=3) == "TAB_NOT_FOUND"
    assert failure(tool, tabId="2") == "INVALID_ARGUMENTS"


async def test_arguments_are_checked_first() -> None:
    tool = a_tool(pages_of(a_bridge(1)))
    with pytest.raises(CallRefusedError):
        tool.check({"a": "x", "tabId": 9}, None)


async def test_an_integer_that_the_page_would_round_is_refused() -> None:
    with pytest.raises(CallRefusedError, match="at a: the page would not receive this number"):
        a_tool(pages_of(a_bridge(1))).check({"a": 2**53 + 1}, None)


async def test_a_pattern_is_checked_unless_it_is_large_or_only_javascript_supports_it() -> None:
    properties = {
        "a": {"type": "integer"},
        "date": {"pattern": r"^\d{4}-\d{2}-\d{2}$"},
        "name": {"pattern": r"^\p{L}{200}\d$"},
        "any": {"pattern": "^[^]$"},
    }
    registered = ADD.model_copy(update={"input_schema": {"properties": properties}})
    tool = a_tool(pages_of(a_bridge(1, registered=registered)))
    given = {"a": 1, "name": "1", "any": ""}
    assert tool.check(given, None)[2] == given
    with pytest.raises(CallRefusedError, match="date"):
        tool.check({**given, "date": "today"}, None)


async def test_a_tool_whose_pages_have_gone_cannot_be_called() -> None:
    bridge = a_bridge(1)
    tool = a_tool(pages_of(bridge))
    assert bridge.page_tools is not None
    bridge.page_tools.update([], [])
    assert failure(tool) == "PAGE_TOOL_GONE"
    call = ToolCall({"a": 1}, Limits(1.0, 2.0))
    assert tool.find_document(call) is None
    with pytest.raises(ChainError):
        tool.prepare(call)


async def test_a_client_s_own_tab_is_not_another_client_s() -> None:
    bridge = a_bridge(1, 2)
    tool = a_tool(pages_of(bridge))
    bridge.tabs.owners.add(2, "ann")
    assert chosen(tool, "ben") == 1
    assert failure(tool, "ben", tabId=2) == "TAB_NOT_YOURS"
    assert chosen(tool, "ann", tabId=2) == 2


async def test_of_several_browsers_none_is_guessed() -> None:
    alike = pages_of(a_bridge(1), a_bridge(1, number=1))
    assert failure(a_tool(alike)) == "SEVERAL_BROWSERS"
    assert chosen(a_tool(alike), tabId=numbers_of(1)[1]) == numbers_of(1)[1]
    focused = pages_of(a_bridge(1), a_bridge(1, number=1, focused=1))
    assert chosen(a_tool(focused)) == numbers_of(1)[1]


async def test_a_client_s_calls_stay_in_the_browser_that_it_used_last() -> None:
    pages = pages_of(a_bridge(1), a_bridge(1, number=1))
    tool = a_tool(pages)
    call = ToolCall({}, Limits())
    target, name, _ = tool.check({"a": 1, "tabId": numbers_of(1)[1]}, "ann")
    with anyio.CancelScope() as sending:
        sending.cancel()
        await pages.call(target, name, call)
    assert chosen(tool, "ann") == numbers_of(1)[1]
    assert failure(tool, "ben") == "SEVERAL_BROWSERS"


async def test_the_record_of_a_call_names_the_site_and_the_page_s_own_name_of_the_tool() -> None:
    tool = a_tool(pages_of(a_bridge(1)))
    at = Instant(wall=0.0, monotonic=0.0, timer=0.0)
    recorder = CallRecorder(call_id="c", name="page_shop_example_add", limits=Limits(), now=at)
    tool.prepare(ToolCall({"a": 1}, Limits(), recorder=recorder))
    record = recorder.succeed(1, at)
    assert (record.plugin, record.tool) == ("page--shop-example", "add")
