"""What MCP clients speak to, loaded when the first one comes."""

import threading
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from opentabs_py.config import Settings
from opentabs_py.served import StreamSource
from opentabs_py.server.ending import Ending
from opentabs_py.server.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server import Server

PATH: Final = "/mcp"
GATEWAY_PATH: Final = "/mcp/gateway"


class McpSide:
    """MCP servers of one toolbox.

    Their SDK takes as long to load as Chromium to start, and a session that no client speaks to
    never needs it.

    Args:
        toolbox: What they serve.
        settings: How.
        version: Of the server, as clients are told it.
        streams: Those of tools written in Python.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        settings: Settings,
        *,
        version: str,
        streams: StreamSource | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._settings = settings
        self._version = version
        self._streams = streams
        self._loaded: Mapping[str, ASGIApp] = {}
        self._ending = Ending()
        self._running = anyio.CancelScope(shield=True)
        self._is_wanted, self._is_loaded = anyio.Event(), anyio.Event()

    @cached_property
    def server(self) -> "Server[Any]":
        """The MCP server, for transports besides HTTP."""
        return self._create(as_gateway=self._settings.gateway)

    @property
    def endpoints(self) -> Mapping[str, ASGIApp]:
        """What serves Streamable HTTP, by paths; while `run` does."""
        return {path: _Endpoint(self, path) for path in (PATH, GATEWAY_PATH)}

    async def run(self) -> None:
        """Load all that when it is asked for, and serve until closed, whatever is cancelled."""
        with self._running:
            await self._is_wanted.wait()
            await load()
            from opentabs_py.server.endpoints import run_endpoints  # noqa: PLC0415

            async with run_endpoints(
                {PATH: self.server, GATEWAY_PATH: self._create(as_gateway=True)},
                # A character may be written as six bytes. The toolbox refuses what is over the
                # limit.
                request_limit=6 * self._settings.message_limit + 1024 * 1024,
            ) as self._loaded:
                self._is_loaded.set()
                await anyio.sleep_forever()

    def stop(self) -> None:
        """Answer the calls that run with an error, and end the streams of changes."""
        self._ending.begin()

    def close(self) -> None:
        """Stop serving; requests that are not answered yet stay so."""
        self._running.cancel()

    async def get(self, path: str) -> ASGIApp:
        """Give what serves a path, once it is loaded."""
        self._is_wanted.set()
        await self._is_loaded.wait()
        return self._loaded[path]

    def _create(self, *, as_gateway: bool) -> "Server[Any]":
        from opentabs_py.server.mcp import create_mcp_server  # noqa: PLC0415

        return create_mcp_server(
            self._toolbox,
            version=self._version,
            as_gateway=as_gateway,
            pace=self._settings.pace,
            streams=self._streams,
            late_progress=self._settings.late_progress,
            ending=self._ending,
        )


def load_soon(*modules: str) -> None:
    """Begin to load what a client will need, in a thread, where it holds up nobody.

    Args:
        modules: What else to load, for a client in this process.
    """
    threading.Thread(target=_load, args=modules, daemon=True).start()


async def load() -> None:
    """Load it, or wait until it is loaded."""
    await anyio.to_thread.run_sync(_load, abandon_on_cancel=True)


def _load(*modules: str) -> None:
    for module in ("opentabs_py.server.mcp", *modules):
        import_module(module)


class _Endpoint:
    """Loads what it stands for. As an object, no function: for Starlette, that takes any method."""

    def __init__(self, side: McpSide, path: str) -> None:
        self._side = side
        self._path = path
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            self._app = await self._side.get(self._path)
        await self._app(scope, receive, send)
