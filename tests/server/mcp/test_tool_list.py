"""The result of `tools/list`: sorted, described, in pages that survive changes of the list."""

import json
from math import nan
from types import SimpleNamespace
from typing import cast

import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types.methods import serialize_server_result
from mcp.types.version import KNOWN_PROTOCOL_VERSIONS

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import ListedTools
from opentabs_py.server.mcp.tool_list import PAGE_META_KEY, Page, ToolList
from tests.served import Served

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asking(size: object) -> types.PaginatedRequestParams:
    return types.PaginatedRequestParams.model_validate({"_meta": {PAGE_META_KEY: size}})


def names(result: types.ListToolsResult) -> list[str]:
    return [tool.name.removeprefix("chat_") for tool in result.tools]


def pages(listing: ToolList, size: object = None) -> list[list[str]]:
    params = asking(size)
    found: list[list[str]] = []
    while True:
        page = listing.page(params).to_result()
        found.append(names(page))
        if page.next_cursor is None:
            return found
        params = types.PaginatedRequestParams(cursor=page.next_cursor)


def test_all_tools_are_one_page_sorted_by_name() -> None:
    served = Served()
    served.serve("send", "read", "archive", description="x" * 1_000_000)
    assert pages(ToolList(served.registry)) == [["archive", "read", "send"]]


def test_the_list_is_json_whatever_number_a_schema_has() -> None:
    listing = Listing("send", "chat", "Send", "", {"type": "object", "default": nan})
    served = cast("ListedTools", SimpleNamespace(tools=[SimpleNamespace(listing=listing)]))
    [tool] = ToolList(served).page(None).tools
    assert b'"default":null' in tool


def test_a_client_that_asks_for_smaller_pages_gets_them_to_the_end() -> None:
    served = Served()
    served.serve("e", "d", "c", "b", "a")
    assert pages(ToolList(served.registry), 2) == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("size", [None, 0, -1, "2", 2.0, 10**9, 3, True])
def test_any_other_size_is_one_page(size: object) -> None:
    served = Served()
    served.serve("a", "b", "c")
    assert pages(ToolList(served.registry), size) == [["a", "b", "c"]]


def test_no_tools_are_one_empty_page() -> None:
    served = Served()
    served.serve()
    assert pages(ToolList(served.registry)) == [[]]


def test_a_list_that_changes_between_two_pages_repeats_nothing_and_skips_nothing() -> None:
    served = Served()
    served.serve("b", "d", "f")
    listing = ToolList(served.registry)
    first = listing.page(asking(2))
    assert names(first.to_result()) == ["b", "d"]

    served.serve("a", "b", "e", "f")  # the tool that the cursor names is gone

    rest = listing.page(types.PaginatedRequestParams(cursor=first.next_cursor))
    assert names(rest.to_result()) == ["e", "f"]


@pytest.mark.parametrize("version", KNOWN_PROTOCOL_VERSIONS)
def test_each_tool_is_the_json_that_the_sdk_would_write(version: str) -> None:
    served = Served()
    schema = {"type": "object", "properties": {"a": {"default": None}}, "$defs": {"x": {}}}
    hints = {"readOnlyHint": True, "title": "Send it"}
    served.serve("send", output_schema=schema, annotations=hints)
    page = ToolList(served.registry).page(None)
    result = page.to_result().model_dump(by_alias=True, mode="json", exclude_none=True)
    surface = serialize_server_result("tools/list", version, result)
    assert json.loads(page.to_json()) == surface["tools"]


async def test_a_list_far_over_the_longest_event_reaches_a_client_whole(mode: str) -> None:
    served = Served()
    served.serve("a", "b", "c", description="\u00e9" * 1_000_000)
    async with served.over_http() as url, Client(url, mode=mode) as client:
        found = await client.list_tools()
    assert names(found) == ["a", "b", "c"]
    assert found.tools[2].description == "\u00e9" * 1_000_000


async def test_a_client_over_http_gets_the_list_that_one_in_memory_gets(mode: str) -> None:
    served = Served()
    served.serve("a", "b", output_schema={"type": "object"}, annotations={"readOnlyHint": True})
    async with Client(served.server, mode=mode) as client:
        expected = await client.list_tools()
    async with served.over_http() as url, Client(url, mode=mode) as client:
        assert await client.list_tools() == expected


def test_output_schemas_can_be_left_out() -> None:
    served = Served()
    served.serve("send", output_schema={"type": "object"})
    [tool] = ToolList(served.registry, output_schemas=False).page(None).to_result().tools
    assert tool.output_schema is None


async def test_a_cursor_that_was_never_issued_is_an_error_that_says_so(mode: str) -> None:
    async with Client(Served().server, mode=mode) as client:
        with pytest.raises(MCPError, match="'7' is unknown") as caught:
            await client.list_tools(cursor="7")
        with pytest.raises(MCPError, match=f"'{'7' * 119}…' is unknown"):
            await client.list_tools(cursor="7" * 1000)
    assert caught.value.error.code == -32602


async def test_hints_of_a_plugin_are_served_and_a_change_of_them_is_notified(mode: str) -> None:
    served = Served()
    told: list[None] = []
    served.registry.subscribe(lambda: told.append(None))
    served.serve("send", annotations={"readOnlyHint": True, "title": "Send it", "unknown": 1})
    async with Client(served.server, mode=mode) as client:
        [tool] = (await client.list_tools()).tools
    assert tool.annotations is not None
    assert tool.annotations.model_dump(by_alias=True, exclude_none=True) == {
        "readOnlyHint": True,
        "title": "Send it",
    }
    assert len(told) == 1


async def test_a_tool_without_hints_has_none(mode: str) -> None:
    async with Client(Served().server, mode=mode) as client:
        [tool] = (await client.list_tools()).tools
    assert tool.annotations is None


async def test_a_call_makes_no_list(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served()
    made: list[object] = []
    original = ToolList.page

    def count(tools: ToolList, params: types.PaginatedRequestParams | None) -> Page:
        made.append(params)
        return original(tools, params)

    monkeypatch.setattr(ToolList, "page", count)
    async with served.over_http() as url, Client(url, mode=mode) as client:
        await client.list_tools()
        await client.call_tool("chat_send", {"tabId": 3})
        await client.call_tool("chat_send", {"tabId": 3})
    assert len(made) == 1


def test_the_tools_are_serialized_once_for_each_list() -> None:
    served = Served()
    listing = ToolList(served.registry)
    [before] = listing.page(None).tools
    assert listing.page(None).tools[0] is before
    served.registry.set_plugins([])
    assert listing.page(None).tools == []
