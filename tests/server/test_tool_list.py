"""What `tools/list` answers: sorted, described, in pages that no change of the list breaks."""

import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from opentabs_py.server.tool_list import PAGE_SIZE, Pages
from tests.fakes import a_tool
from tests.served import Served

pytestmark = pytest.mark.anyio

LONG = "x" * (PAGE_SIZE // 3)  # with the rest of a tool, two of these fit into a page


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def pages(listing: Pages) -> list[list[str]]:
    found: list[list[str]] = []
    cursor = None
    while True:
        page = listing.page(cursor)
        found.append([tool.name.removeprefix("chat_") for tool in page.tools])
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_tools_that_fit_are_one_page_sorted_by_name() -> None:
    served = Served()
    served.serve("send", "read", "archive")
    assert pages(Pages(served.registry)) == [["archive", "read", "send"]]


def test_tools_that_do_not_fit_are_split_and_each_is_listed_once() -> None:
    served = Served()
    served.serve("e", "d", "c", "b", "a", description=LONG)
    assert pages(Pages(served.registry)) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_tool_larger_than_a_page_has_one_of_its_own() -> None:
    served = Served()
    served.serve("a", "b", description="x" * PAGE_SIZE)
    assert pages(Pages(served.registry)) == [["a"], ["b"]]


def test_no_tools_are_one_empty_page() -> None:
    served = Served()
    served.serve()
    assert pages(Pages(served.registry)) == [[]]


def test_a_list_that_changes_between_two_pages_repeats_nothing_and_skips_nothing() -> None:
    served = Served()
    served.serve("b", "d", "f", description=LONG)
    listing = Pages(served.registry)
    first = listing.page(None)
    assert [tool.name for tool in first.tools] == ["chat_b", "chat_d"]

    served.serve("a", "b", "e", "f", description=LONG)  # what the cursor names is gone

    rest = listing.page(first.next_cursor)
    assert [tool.name for tool in rest.tools] == ["chat_e", "chat_f"]


async def test_a_client_that_follows_the_cursors_gets_all_tools(mode: str) -> None:
    served = Served()
    served.serve("a", "b", "c", description=LONG)
    async with served.over_http() as url, Client(url, mode=mode) as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
    assert [tool.name for tool in first.tools + second.tools] == ["chat_a", "chat_b", "chat_c"]
    assert second.next_cursor is None


async def test_a_cursor_that_was_never_issued_is_an_error_that_says_so(mode: str) -> None:
    async with Client(Served().server, mode=mode) as client:
        with pytest.raises(MCPError, match="'7' is unknown") as caught:
            await client.list_tools(cursor="7")
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
    made: list[str | None] = []
    original = Pages.page

    def count(pages: Pages, cursor: str | None) -> types.ListToolsResult:
        made.append(cursor)
        return original(pages, cursor)

    monkeypatch.setattr(Pages, "page", count)
    async with served.over_http() as url, Client(url, mode=mode) as client:
        await client.list_tools()
        await client.call_tool("chat_send", {"tabId": 3})
        await client.call_tool("chat_send", {"tabId": 3})
    assert len(made) == 1


def test_the_pages_are_made_once_for_each_list() -> None:
    served = Served()
    listing = Pages(served.registry)
    [before] = listing.page(None).tools
    assert listing.page(None).tools[0] is before
    served.registry.set_plugins([])
    assert listing.page(None).tools == []
    assert a_tool("send")["name"] == "send"
