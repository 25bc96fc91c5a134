"""`tabs_list` is served beside page tools, and needs no page."""

import anyio
import pytest
from mcp.client import Client

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallRefusedError, ChainError, ConfigError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.mcp.server import INSTRUCTIONS, create_mcp_server
from opentabs_py.server.tools.local_tab_tools import LocalTabsList
from opentabs_py.server.tools.tool_calls import ToolCalls
from tests.fakes import (
    FakeBridge,
    a_bridge,
    a_document,
    a_manifest,
    a_tool,
    greeted,
    pages_of,
    running,
    tabs_changed,
    tool_calls_of,
)
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


@tool
def add() -> int:
    """Add."""
    return 3


def some_calls(bridge: Bridge) -> ToolCalls:
    pages = pages_of(bridge)
    return tool_calls_of(pages, built_in=[LocalTabsList(pages)])


def names(calls: ToolCalls) -> list[str]:
    return [each.listing.name for each in calls.registry.tools]


def a_call(**arguments: object) -> ToolCall:
    return ToolCall(arguments, Limits())


def of_python(*functions: object) -> PythonTools:
    return PythonTools(functions, ToolHost(AlarmClock()))


async def test_it_is_listed_as_long_as_there_are_page_tools() -> None:
    calls = some_calls(FakeBridge())
    calls.registry.set_tools(of_python(add).tools)
    assert names(calls) == ["add"]
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    assert names(calls) == ["add", "chat_send", "tabs_list"]
    calls.registry.set_plugins([])
    assert names(calls) == ["add"]


async def test_it_lists_the_tabs_as_they_were_last_reported() -> None:
    bridge = a_bridge()
    calls = some_calls(bridge)
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    async with running(bridge) as connect:
        extension = await greeted(connect, a_document(title="Inbox"))
        [tab] = (await calls.call("tabs_list", {}))["tabs"]
        assert (tab["tabId"], tab["title"]) == (7, "Inbox")

        changed = bridge.changed()
        extension.say(tabs_changed())
        with anyio.fail_after(PATIENT):
            await changed.wait()
        assert await calls.call("tabs_list", {}) == {"tabs": []}


async def test_an_extension_that_reconnects_is_waited_for() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        extension = await greeted(connect, a_document())
        gone = bridge.changed()
        extension.hang_up()
        found: list[int] = []

        async def ask() -> None:
            answer = await LocalTabsList(pages_of(bridge)).prepare(a_call())()
            found.extend(tab["tabId"] for tab in answer["tabs"])

        with anyio.fail_after(PATIENT):
            await gone.wait()
            tasks.start_soon(ask)
            await until_all_wait()
            assert not found
            await greeted(connect, a_document())
            while not found:
                await anyio.lowlevel.checkpoint()
    assert found == [7]


async def test_without_an_extension_it_says_so_and_without_a_browser_there_are_no_tabs() -> None:
    bridge = FakeBridge()
    with pytest.raises(ChainError, match="extension is not connected"):
        await LocalTabsList(pages_of(bridge)).prepare(a_call())()
    bridge.handle_browser_gone()
    assert await LocalTabsList(pages_of(bridge)).prepare(a_call())() == {"tabs": []}


async def test_it_accepts_no_arguments() -> None:
    with pytest.raises(CallRefusedError, match="no such argument; the tool takes no arguments"):
        await LocalTabsList(FakeBridge().pages).prepare(a_call(tabId=7))()


async def test_no_python_tool_may_have_its_name() -> None:
    @tool(name="tabs_list")
    def mine() -> int:
        """Mine."""
        return 1

    with pytest.raises(ConfigError, match="Two tools are named tabs_list: one from opentabs"):
        some_calls(FakeBridge()).registry.set_tools(of_python(mine).tools)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_see_hints_a_schema_and_how_tab_ids_refer_to_it(mode: str) -> None:
    calls = some_calls(FakeBridge())
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    server = create_mcp_server(calls)
    async with Client(server, mode=mode) as client:
        send, listing = (await client.list_tools()).tools
        assert client.instructions == INSTRUCTIONS  # it does not count as a Python tool
    assert listing.name == "tabs_list"
    assert listing.annotations is not None
    assert listing.annotations.read_only_hint
    assert listing.output_schema is not None
    assert "from tabs_list" in send.input_schema["properties"]["tabId"]["description"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_gateway_finds_and_calls_it(mode: str) -> None:
    bridge = FakeBridge()
    bridge.handle_browser_gone()
    calls = some_calls(bridge)
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    server = create_mcp_server(calls, as_gateway=True)
    async with Client(server, mode=mode) as client:
        asked = {"query": "which tabs are open", "ready": True}
        found = await client.call_tool("opentabs_list_tools", asked)
        called = await client.call_tool("opentabs_call", {"name": "tabs_list"})
    assert found.structured_content is not None
    assert [each["name"] for each in found.structured_content["tools"]] == ["tabs_list"]
    assert called.structured_content == {"tabs": []}
