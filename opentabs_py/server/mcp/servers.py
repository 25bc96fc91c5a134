"""The MCP servers that clients talk to, loaded when the first client connects."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.streams import StreamSource
from opentabs_py.calling.tool import ListedTools
from opentabs_py.config.settings import Settings
from opentabs_py.core.limits import longest_body
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.server.mcp.sdk_loading import load_sdk
from opentabs_py.server.tools.tool_calls import ToolCalls

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from opentabs_py.server.mcp.long_results import LongResults

PATH: Final = "/mcp"
GATEWAY_PATH: Final = "/mcp/gateway"


class McpServers:
    """The MCP servers of one session.

    The MCP SDK takes as long to load as Chromium takes to start, and a session without MCP
    clients never needs it.

    Args:
        calls: The calls of the tools to serve.
        settings: The server's settings.
        streams: The streams of Python tools.
        listed: The tools that are listed; by default, all.
        on_client_gone: Called with the session of each client that goes; must not block or raise.
    """

    def __init__(
        self,
        calls: ToolCalls,
        settings: Settings,
        *,
        streams: StreamSource | None,
        listed: ListedTools | None,
        on_client_gone: Callable[[SessionKey], None],
    ) -> None:
        self._calls = calls
        self._settings = settings
        self._streams = streams
        self._listed = listed
        self._on_client_gone = on_client_gone
        self._long_results: LongResults | None = None  # of all servers together, when loaded
        self._loaded: Mapping[str, ASGIApp] = {}
        self._on_stop: Listeners[[]] = Listeners("the stop of the server")
        self._running = anyio.CancelScope(shield=True)
        self._is_wanted, self._is_loaded = anyio.Event(), anyio.Event()

    @cached_property
    def server(self) -> "Server[Any]":
        """The MCP server, for transports other than HTTP."""
        return self._create(as_gateway=self._settings.gateway)

    @property
    def http_apps(self) -> Mapping[str, ASGIApp]:
        """The applications for Streamable HTTP, by path; available while `run` is running."""
        return {path: _DeferredApp(self, path) for path in (PATH, GATEWAY_PATH)}

    async def run(self) -> None:
        """Load the servers on demand, and serve until closed, even if cancelled."""
        with self._running:
            await self._is_wanted.wait()
            await load_sdk()
            from opentabs_py.server.mcp.streamable_http import run_http_apps  # noqa: PLC0415

            async with run_http_apps(
                {PATH: self.server, GATEWAY_PATH: self._create(as_gateway=True)},
                request_limit=longest_body(self._settings.message_limit),
            ) as self._loaded:
                self._is_loaded.set()
                await anyio.sleep_forever()

    def stop(self) -> None:
        """End the clients' subscriptions."""
        self._on_stop.notify()

    def close(self) -> None:
        """Stop serving; pending requests remain unanswered."""
        self._running.cancel()

    async def get(self, path: str) -> ASGIApp:
        """Return the application for a path, once it is loaded."""
        self._is_wanted.set()
        await self._is_loaded.wait()
        return self._loaded[path]

    def _create(self, *, as_gateway: bool) -> "Server[Any]":
        from opentabs_py.server.mcp.long_results import LongResults  # noqa: PLC0415
        from opentabs_py.server.mcp.server import create_mcp_server  # noqa: PLC0415

        if self._settings.max_result is not None and self._long_results is None:
            self._long_results = LongResults(self._settings.max_result)
        return create_mcp_server(
            self._calls,
            as_gateway=as_gateway,
            pace=self._settings.pace,
            streams=self._streams,
            late_progress=self._settings.late_progress,
            on_stop=self._on_stop,
            output_schemas=self._settings.output_schemas,
            listed=self._listed,
            long_results=self._long_results,
            on_client_gone=self._on_client_gone,
        )


class _DeferredApp:
    """Loads the real application on demand. A class, because Starlette limits functions to GET."""

    def __init__(self, servers: McpServers, path: str) -> None:
        self._servers = servers
        self._path = path
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await self._servers.get(self._path)
        await self._app(scope, receive, send)
