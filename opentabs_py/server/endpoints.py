"""MCP servers over Streamable HTTP, as ASGI applications."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import types
from mcp.server import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecuritySettings,
)
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send


@asynccontextmanager
async def run_endpoints(
    servers: Mapping[str, Server[Any]], *, request_limit: int
) -> AsyncGenerator[Mapping[str, ASGIApp]]:
    """Serve MCP clients while the context is open, which leaves their sessions.

    Hosts and Origins are for `guards.LocalOnly` to check: the SDK matches them by their beginning.

    Args:
        servers: The MCP server of each path, as in `/mcp`.
        request_limit: The longest body of a request, in bytes.
    """
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    async with AsyncExitStack() as stack:
        endpoints: dict[str, ASGIApp] = {}
        for path, server in servers.items():
            manager = StreamableHTTPSessionManager(
                server, security_settings=unchecked, max_request_body_size=request_limit
            )
            await stack.enter_async_context(manager.run())
            endpoints[path] = RequestBodyLimitMiddleware(UniqueIds(manager), request_limit)
        yield endpoints


class UniqueIds:
    """Refuses a request whose id another request of its session bears that still runs.

    The SDK would give the answers of both to the second, and leave the first without one.

    Args:
        manager: Takes what passes. The body of a request has to come in one message.
    """

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager
        self._in_flight: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 400."""
        if scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
            return
        first = await receive()
        if first["type"] != "http.request" or first.get("more_body", False):
            return  # the client hung up before its request was whole
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        request_id = None if session is None else _request_id(first.get("body", b""))
        # The SDK takes 1 and "1" for the same.
        key = session or "", str(request_id)
        if key in self._in_flight:
            error = {
                "code": types.INVALID_REQUEST,
                "message": f"A request of this session with the id {request_id!r} still runs: ids "
                "must be unique within a session. Send another.",
            }
            body = {"jsonrpc": "2.0", "id": request_id, "error": error}
            await JSONResponse(body, status_code=400)(scope, receive, send)
            return
        told = False

        async def replay() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return first

        if request_id is None:
            await self._manager.handle_request(scope, replay, send)
            return
        self._in_flight.add(key)
        try:
            await self._manager.handle_request(scope, replay, send)
        finally:
            self._in_flight.discard(key)


def _request_id(body: bytes) -> int | str | None:
    """Give the id of a JSON-RPC request; None when it is a notification, a response, or neither."""
    try:
        message: Any = from_json(body)
    except ValueError:
        return None  # the SDK says what is wrong with it
    match message:
        case {"method": _, "id": int() | str() as request_id}:
            return request_id
        case _:
            return None
