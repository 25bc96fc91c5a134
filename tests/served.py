"""Servers over a bridge without a browser, and a client that sends only what the test says."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import types
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from starlette.types import ASGIApp, Message

from opentabs_py.core.progress import Pace
from opentabs_py.server.http.app import create_app
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.mcp.streamable_http import run_http_apps
from tests.fakes import FakeBridge, Json, a_manifest, a_tool, tool_calls_of
from tests.waiting import PATIENT


def initialize(
    *, revision: str = "2025-11-25", name: str = "t", capabilities: Json | None = None
) -> Json:
    params = {
        "protocolVersion": revision,
        "capabilities": capabilities or {},
        "clientInfo": {"name": name, "version": "1"},
    }
    return {"id": 1, "method": "initialize", "params": params}


INITIALIZE = initialize()
INITIALIZED: Json = {"method": "notifications/initialized"}


class Served:
    """A registry, and the two MCP servers on top of it."""

    def __init__(
        self, bridge: FakeBridge | None = None, *, pace: Pace | None = None, strict: bool = False
    ) -> None:
        self.bridge = bridge or FakeBridge(value={})
        self.tool_calls = tool_calls_of(self.bridge.pages, strict_output=strict)
        self.registry = self.tool_calls.registry
        self.serve("send")
        self.server = create_mcp_server(self.tool_calls, pace=pace)
        self.gateway = create_mcp_server(self.tool_calls, as_gateway=True, pace=pace)

    def serve(self, *tools: str, **more: object) -> None:
        self.registry.set_plugins([a_manifest(*(a_tool(tool, **more) for tool in tools))])

    @asynccontextmanager
    async def over_http(self) -> AsyncGenerator[str]:
        servers = {"/mcp": self.server, "/mcp/gateway": self.gateway}
        with bind("127.0.0.1", 0) as listener:
            async with (
                run_http_apps(servers, request_limit=100_000) as apps,
                serve_http(create_app(apps, self.bridge.pages), listener),
            ):
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


class Poster:
    """A client that reads each part of a response before the server continues."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._session: list[tuple[bytes, bytes]] = []

    async def post(
        self,
        message: Json,
        on_part: Callable[[bytes], Awaitable[None]] | None = None,
        drop: anyio.Event | None = None,
    ) -> int:
        """Send a request; return the status.

        Args:
            message: The request.
            on_part: Called with each part of the response.
            drop: The connection drops when this is set.
        """
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sent: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        status = 0

        async def receive() -> Message:
            if sent:
                return sent.pop()
            await (anyio.sleep_forever() if drop is None else drop.wait())
            return {"type": "http.disconnect"}

        async def send(part: Message) -> None:
            nonlocal status
            if part["type"] == "http.response.start":
                status = part["status"]
                given = [each for each in part["headers"] if each[0] == b"mcp-session-id"]
                self._session = given or self._session
            elif on_part is not None:
                await on_part(part["body"])

        headers = [
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            *self._session,
        ]
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": "/mcp", "headers": headers,
            "query_string": b"",
        }  # fmt: skip
        with anyio.fail_after(PATIENT):
            await self._app(scope, receive, send)
        return status


class RawClient:
    """A client of the initialize era that sends and reads only on request."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader, self._writer = reader, writer

    async def say(self, message: Json) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message})
        with anyio.fail_after(PATIENT):
            await self._writer.send(
                SessionMessage(types.jsonrpc_message_adapter.validate_json(text))
            )

    async def read(self) -> Json:
        with anyio.fail_after(PATIENT):
            message = await self._reader.receive()
        assert isinstance(message, SessionMessage)
        return message.message.model_dump(exclude_unset=True)


@asynccontextmanager
async def raw_client(
    server: Server[Any], *, revision: str = "2025-11-25", name: str = "t"
) -> AsyncGenerator[RawClient]:
    async with (
        create_client_server_memory_streams() as (streams, ends),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *ends, server.create_initialization_options())
        client = RawClient(*streams)
        await client.say(initialize(revision=revision, name=name))
        assert (await client.read())["id"] == 1
        yield client
        tasks.cancel_scope.cancel()
