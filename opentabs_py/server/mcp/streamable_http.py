"""MCP servers over Streamable HTTP, as ASGI applications."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import chain
from typing import Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.server.mcp.answers import Rewriter, offer_slot
from opentabs_py.server.mcp.drops import offer_drop
from opentabs_py.server.mcp.request_ids import explain_invalid, explain_taken
from opentabs_py.server.mcp.workarounds import (
    header_mismatch,
    is_routed_by_session,
    without_resumption,
)

_Key = tuple[str, str]  # a session, and the id of a request in it


@asynccontextmanager
async def run_http_apps(
    servers: Mapping[str, Server[Any]], *, request_limit: int
) -> AsyncGenerator[Mapping[str, ASGIApp]]:
    """Serve MCP clients while the context is open; their sessions end with it.

    `guards.LocalOnly` checks Host and Origin, because the SDK only compares prefixes.

    Args:
        servers: The MCP server for each path, for example `/mcp`.
        request_limit: The longest request body, in bytes.
    """
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    async with AsyncExitStack() as stack:
        apps: dict[str, ASGIApp] = {}
        for path, server in servers.items():
            manager = StreamableHTTPSessionManager(
                server, security_settings=unchecked, max_request_body_size=request_limit
            )
            await stack.enter_async_context(manager.run())
            apps[path] = WholeRequests(manager, request_limit)
        yield apps


class WholeRequests:
    """Forwards requests once they have arrived completely, within a limit, and with a unique id.

    A request is refused while another request of its session with the same id is running: the
    SDK would send the answers of both to the second, and none to the first. In the initialize era
    a request goes on when its client's connection drops, so its id stays taken until it has ended.

    Args:
        manager: Receives the forwarded requests.
        limit: The longest request body, in bytes.
    """

    def __init__(self, manager: StreamableHTTPSessionManager, limit: int) -> None:
        self._manager = manager
        self._limit = limit
        self._in_flight: set[_Key] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 400 or 413."""
        if scope["method"] != "POST":
            await self._manager.handle_request(without_resumption(scope), receive, send)
            return
        try:
            body = await _read(receive, self._limit)
        except _TooLongError:
            why = f"The request is longer than {self._limit:,} bytes. Send less at a time."
            await _refuse(413, None, why)(scope, receive, send)
            return
        if body is None:
            return  # the client hung up before its request was complete
        headers = Headers(scope=scope)
        # The SDK itself checks requests of 2026-07-28, whose ids belong to no session.
        message = _parse(body) if is_routed_by_session(headers) else None
        session, request_id = headers.get(MCP_SESSION_ID_HEADER), _request_id(message)
        # The SDK treats 1 and "1" as the same id.
        key = None if session is None or request_id is None else (session, str(request_id))
        refusal = self._refusal(headers, message, request_id, key)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if key is not None:
            receive = _without_end(receive, offer_drop(scope).handle)
        replay = _replaying(body, receive)
        del body, message  # free them: a call may take minutes, and its body is read once
        await self._forward(scope, replay, send, key)

    def _refusal(
        self, headers: Headers, message: Any, request_id: int | str | None, key: _Key | None
    ) -> Response | None:
        """Return the answer to a request that must not reach the SDK."""
        if (invalid := explain_invalid(message)) is not None:
            return _refuse(400, None, invalid)
        if (mismatch := header_mismatch(headers, message)) is not None:
            return _refuse(400, request_id, mismatch, types.HEADER_MISMATCH)
        if request_id is not None and key in self._in_flight:
            return _refuse(400, request_id, explain_taken(request_id))
        return None

    async def _forward(self, scope: Scope, replay: Receive, send: Send, key: _Key | None) -> None:
        rewriter = Rewriter(offer_slot(scope))
        # A client may reuse the id once it has read the answer, so the answer is sent last, when
        # the SDK has forgotten the request as well.
        last: list[Iterable[Message]] = []

        async def rewrite(message: Message) -> None:
            messages = rewriter.feed(message)
            if rewriter.answered and key is not None:
                last.append(messages)
                return
            for each in messages:
                await send(each)

        with self._using(key):
            await self._manager.handle_request(scope, replay, rewrite)
        for each in chain.from_iterable(last):
            await send(each)

    @contextmanager
    def _using(self, key: _Key | None) -> Generator[None]:
        """Refuse other requests with this session and id, while the context is open."""
        if key is not None:
            self._in_flight.add(key)
        try:
            yield
        finally:
            if key is not None:
                self._in_flight.discard(key)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives a body that was read, and then what follows."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def _without_end(receive: Receive, on_gone: Callable[[], None]) -> Receive:
    """Return a function that receives the same, but not that the client has gone: it calls another.

    The SDK would return at once, and leave open when the request ends and frees its id. What it
    sends meanwhile is dropped.
    """

    async def until_gone() -> Message:
        message = await receive()
        if message["type"] == "http.disconnect":
            on_gone()
            await anyio.sleep_forever()  # the SDK cancels this when it has answered
        return message

    return until_gone


def _refuse(
    status: int, request_id: int | str | None, why: str, code: int = types.INVALID_REQUEST
) -> Response:
    error = {"code": code, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status_code=status)


class _TooLongError(Exception):
    pass


async def _read(receive: Receive, limit: int) -> bytes | None:
    """Return the body of a request; None if the client hung up before its end.

    Raises:
        _TooLongError: The body is longer than the limit.
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
    """Return a body parsed as JSON; None if it is not valid, which the SDK will report."""
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
