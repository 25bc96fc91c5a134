"""The instructions that clients receive name what is served when they connect."""

import pytest
from mcp.client import Client

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.tools.tool_calls import ToolCalls
from tests.fakes import FakeBridge, a_manifest, a_tool, tool_calls_of
from tests.served import Served

pytestmark = pytest.mark.anyio

IN_TABS = "inside the user's own browser tabs"
IN_SERVER = "These tools run in the server, not in a browser tab."
SOME_IN_SERVER = "Tools without a tabId run in the server and need no tab."


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def some_calls(*, python: bool, plugins: bool) -> ToolCalls:
    calls = tool_calls_of(FakeBridge().pages)
    if python:
        calls.registry.set_tools(PythonTools([double], ToolHost(AlarmClock())).tools)
    if plugins:
        calls.registry.set_plugins([a_manifest(a_tool("send"))])
    return calls


@pytest.mark.parametrize("as_gateway", [False, True])
@pytest.mark.parametrize(
    ("python", "plugins", "said"),
    [
        (True, False, {IN_SERVER}),
        (False, True, {IN_TABS}),
        (True, True, {IN_TABS, SOME_IN_SERVER}),
        (False, False, {IN_TABS}),
    ],
)
async def test_they_say_where_the_tools_run(
    python: bool, plugins: bool, said: set[str], as_gateway: bool
) -> None:
    calls = some_calls(python=python, plugins=plugins)
    server = create_mcp_server(calls, as_gateway=as_gateway)
    text = server.instructions or ""
    assert {each for each in (IN_TABS, IN_SERVER, SOME_IN_SERVER) if each in text} == said
    assert ("opentabs_call" in text) == as_gateway


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_connects_later_is_told_of_a_plugin_that_came_meanwhile(
    mode: str,
) -> None:
    served = Served()
    registry = served.registry
    registry.set_plugins([])
    registry.set_tools(PythonTools([double], ToolHost(AlarmClock())).tools)
    async with served.over_http() as url:
        async with Client(url, mode=mode) as client:
            assert client.instructions == IN_SERVER
        registry.set_plugins([a_manifest(a_tool("send"))])
        async with Client(url, mode=mode) as client:
            assert IN_TABS in (client.instructions or "")
