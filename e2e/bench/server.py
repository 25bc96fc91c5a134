"""A server for the bench, with one Python tool: `python -m e2e.bench.server ours|bare stdio|http`.

`ours` is this package's MCP server, whose tool uses only the first hop: the bridge's replacement
answers at once. `bare` is the SDK's low-level server with the same tool. Over HTTP, it prints its
address.
"""

import sys
from contextlib import AsyncExitStack
from typing import Any, cast

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from starlette.types import ASGIApp

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import SystemClock
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs.selection import Target
from opentabs_py.server.http.app import create_app
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.mcp.results import to_result
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.mcp.stdio import serve_stdio
from opentabs_py.server.mcp.streamable_http import run_http_apps
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls

TOOL = "bench_echo"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"reports": {"type": "integer"}}}
MIB = 1024 * 1024


class AtOnce:
    """Replaces the bridge: reports as requested, and returns the arguments."""

    clock = SystemClock()

    async def call(self, _target: Target, _tool: str, call: ToolCall) -> Any:
        total = call.arguments["reports"]
        call.notify_progress([ProgressReport(n, n + 1, total) for n in range(total)])
        return call.arguments


def create_ours() -> Server[Any]:
    tool = ManifestTool("echo", "Echo", "Give it back", None, "wrench", None, SCHEMA, None, None)
    plugin = PluginManifest("bench", "1", "Bench", "Bench", (), (), None, {}, (tool,), None)
    pages = cast("Pages", AtOnce())
    registry = ToolRegistry(pages, message_limit=MIB)
    registry.set_plugins([plugin])
    calls = ToolCalls(registry, pages, limits=Limits(idle=30, ceiling=300))
    return create_mcp_server(calls)


def create_bare() -> Server[Any]:
    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name=TOOL, input_schema=SCHEMA)])

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        total = (params.arguments or {})["reports"]
        for n in range(total):
            await ctx.session.report_progress(n + 1, total)
        return to_result(params.arguments)

    return Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve(kind: str, transport: str) -> None:
    server = create_ours() if kind == "ours" else create_bare()
    if transport == "http":
        listener = bind("127.0.0.1", 0)
        bridge = Bridge(secret="", origin="")
        pages = Pages([bridge], clock=bridge.clock)
        async with AsyncExitStack() as stack:
            app: ASGIApp = server.streamable_http_app()
            if kind == "ours":
                apps = run_http_apps({"/mcp": server}, request_limit=MIB)
                app = create_app(await stack.enter_async_context(apps), pages)
            await stack.enter_async_context(serve_http(app, listener))
            print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
            await anyio.sleep_forever()
    elif kind == "ours":
        await serve_stdio(server, line_limit=200 * MIB)
    else:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    uvloop = {"use_uvloop": sys.platform != "win32"}
    _, asked_kind, asked_transport = sys.argv
    anyio.run(serve, asked_kind, asked_transport, backend_options=uvloop)
