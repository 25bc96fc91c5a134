"""What stands between the network and the MCP SDK, and what it lets through."""

import asyncio
import hmac
from typing import Any, Final

from mcp import types
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# What a client leaves unread is kept up to here, so that a stream of a session that it does not
# read holds up no other of that session; one that then reads nothing for a minute is cut off.
UNREAD_LIMIT: Final = 8 * 1024 * 1024  # bytes, of one connection
READ_WITHIN = 60.0  # s


class RequireToken:
    """Lets only requests with the bearer token (RFC 6750) to what is for MCP clients."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 401."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(given.encode(), self._wanted):
                refusal = JSONResponse(
                    {"error": "Send the server's token, as in `Authorization: Bearer TOKEN`."},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


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
        session = Headers(scope=scope).get(MCP_SESSION_ID_HEADER)
        if session is None or scope["method"] != "POST":
            await self._manager.handle_request(scope, receive, send)
            return
        first = await receive()
        request_id = _request_id(first.get("body", b""))
        # The SDK takes 1 and "1" for the same.
        key = session, str(request_id)
        if request_id is not None and key in self._in_flight:
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


class PatientProtocol(H11Protocol):
    """Keeps what a client has not read yet, within a bound, and cuts off one that stopped."""

    _cut: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let more be kept than asyncio would."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=UNREAD_LIMIT)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the extension's socket as it is."""
        self.transport.set_write_buffer_limits()  # the extension's frames wait for one another
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._cut = asyncio.get_running_loop().call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None
