"""A list of only those tools that work in an open tab."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from mcp.server import Server

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.core.tabs.listed_plugins import ListedPlugins
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.mcp.connections import ClientConnections
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.tools.local_tab_tools import LocalTabsList
from opentabs_py.server.tools.ready_tools import ReadyInPages, ReadyTools
from opentabs_py.server.tools.tool_calls import ToolCalls
from tests.clients import hearing
from tests.fakes import (
    FakeSocket,
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

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@tool
def chat() -> int:
    """Need no tab, despite the name of a plugin."""
    return 3


@dataclass
class Exposed:
    bridge: Bridge
    tool_calls: ToolCalls
    ready: ReadyTools
    extension: FakeSocket
    server: Server[ClientConnections]


@asynccontextmanager
async def exposed() -> AsyncGenerator[Exposed]:
    """Serve the tools of two plugins as they become ready, without a delay."""
    bridge = a_bridge()
    pages = pages_of(bridge)
    calls = tool_calls_of(pages, built_in=[LocalTabsList(pages)])
    registry = calls.registry
    manifests = [a_manifest(a_tool("send"), name=name) for name in ("chat", "mail")]
    registry.set_plugins(manifests)
    registry.set_tools(PythonTools([chat], ToolHost(AlarmClock())).tools)
    ready = ReadyTools(registry, ReadyInPages(pages), ListedPlugins(rest=0.0, apart=0.0))
    server = create_mcp_server(calls, listed=ready)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        extension = await greeted(connect)
        tasks.start_soon(ready.run)
        yield Exposed(bridge, calls, ready, extension, server)
        tasks.cancel_scope.cancel()


async def test_the_list_grows_and_shrinks_with_the_tabs_and_clients_are_notified(mode: str) -> None:
    async with exposed() as it, hearing(it.server, mode) as heard:
        assert await heard.tools() == ["chat", "tabs_list"]

        it.extension.say(tabs_changed(a_document(plugin="mail")))
        await heard.wait_for_change()
        assert await heard.tools() == ["chat", "mail_send", "tabs_list"]

        it.extension.say(tabs_changed())
        await heard.wait_for_change()
        assert await heard.tools() == ["chat", "tabs_list"]
        assert not heard.has_heard


async def test_a_change_of_the_plugins_is_a_change_of_the_list_too(mode: str) -> None:
    async with exposed() as it, hearing(it.server, mode) as heard:
        it.extension.say(tabs_changed(a_document(plugin="mail")))
        await heard.wait_for_change()
        it.tool_calls.registry.set_plugins([a_manifest(a_tool("read"), name="mail")])
        await heard.wait_for_change()
        assert await heard.tools() == ["chat", "mail_read", "tabs_list"]


async def test_a_tool_that_is_not_listed_has_its_own_error(mode: str) -> None:
    async with exposed() as it, hearing(it.server, mode) as heard:
        result = await heard.client.call_tool("mail_send", {})
    [content] = result.content
    assert content.type == "text"
    assert "TAB_NOT_FOUND" in content.text
    assert "Open https://mail.example/," in content.text


async def test_the_list_is_the_same_object_until_it_changes() -> None:
    async with exposed() as it:
        before = it.ready.tools
        assert it.ready.tools is before


async def test_clients_are_notified_that_the_list_follows_the_tabs() -> None:
    async with exposed() as it:
        assert "Only the tools that work in an open tab are listed" in (
            it.server.instructions or ""
        )
        everything = create_mcp_server(it.tool_calls)
        assert "are listed; the list" not in (everything.instructions or "")
