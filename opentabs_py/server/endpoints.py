"""MCP servers over Streamable HTTP, as ASGI applications."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from mcp import types
from mcp.server import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.server.workarounds import header_mismatch, is_routed_by_session

# The event of a JSON-RPC response, as the SDK writes it, or of an error in place of a stream. A
# request to the client has an id too, and a method after it.
_ANSWER: Final = re.compile(
    rb'(?:event: message\r\ndata: )?\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*+"|null),'
    rb'"(?:result|error)":'
)


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
            endpoints[path] = WholeRequests(manager, request_limit)
        yield endpoints


class WholeRequests:
    """Passes requests on once they are here whole, within a limit, with an id of their own.

    A request whose id another one of its session bears that still runs is refused: the SDK would
    give the answers of both to the second, and leave the first without one.

    Args:
        manager: Takes what passes.
        limit: The longest body of a request, in bytes.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, limit: int) -> None:
        self._manager = manager
        self._limit = limit
        self._in_flight: set[tuple[str, str]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 400 or 413."""
        if scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
            return
        try:
            body = await _read(receive, self._limit)
        except _TooLongError:
            why = f"The request is longer than {self._limit:,} bytes. Send less at once."
            await _refuse(413, None, why)(scope, receive, send)
            return
        if body is None:
            return  # the client hung up before its request was whole
        headers = Headers(scope=scope)
        # One of 2026-07-28 the SDK checks by itself, and its id is of no session.
        message = _parse(body) if is_routed_by_session(headers) else None
        session, request_id = headers.get(MCP_SESSION_ID_HEADER), _request_id(message)
        # The SDK takes 1 and "1" for the same.
        key = None if session is None or request_id is None else (session, str(request_id))
        if (mismatch := header_mismatch(headers, message)) is not None:
            refusal = _refuse(400, request_id, mismatch, types.HEADER_MISMATCH)
            await refusal(scope, receive, send)
            return
        if key in self._in_flight:
            why = (
                f"A request of this session with the id {request_id!r} still runs: ids must be "
                "unique within a session. Send another."
            )
            await _refuse(400, request_id, why)(scope, receive, send)
            return
        left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        del body, message  # a call may take minutes, and its body is read once

        async def replay() -> Message:
            return left.pop() if left else await receive()

        if key is None:
            await self._manager.handle_request(scope, replay, send)
            return
        # A client may use the id again once it has read the answer. So that is sent last of all:
        # when the SDK, too, has forgotten the request.
        last: list[Message] = []

        async def send_all_but_the_answer(message: Message) -> None:
            if last or _ANSWER.match(message.get("body", b"")):
                last.append(message)
            else:
                await send(message)

        self._in_flight.add(key)
        try:
            await self._manager.handle_request(scope, replay, send_all_but_the_answer)
        finally:
            self._in_flight.discard(key)
        for message in last:
            await send(message)


def _refuse(
    status: int, request_id: int | str | None, why: str, code: int = types.INVALID_REQUEST
) -> Response:
    error = {"code": code, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status_code=status)


class _TooLongError(Exception):
    pass


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Return the body of a request; None when the client hung up before its end.

    Raises:
        _TooLongError: It is longer than the limit.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _TooLongError
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _parse(body: bytes) -> Any:
    """Return a body as JSON; None where it is none, as the SDK will say."""
    try:
        return from_json(body)
    except ValueError:
        return None


def _request_id(message: Any) -> int | str | None:
    """Return the id of a JSON-RPC request; None if it is a notification, a response, or neither."""
    match message:
        case {"method": _, "id": int() | str() as request_id}:
            return request_id
        case _:
            return None
