"""The state of each connected client."""

import secrets
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.requests import Request

from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import shorten
from opentabs_py.server.mcp.forms import Forms
from opentabs_py.server.mcp.stream_sender import LateUpdates
from opentabs_py.server.mcp.workarounds import at_end_of_session, is_routed_by_session


class ClientConnection:
    """One client's connection.

    Attributes:
        log_level: The lowest log level that the client wants.
        is_kept: Whether a handler runs until the connection ends.
        late: The updates of streams whose calls have returned.
        subscribed: The URIs of the streams the client subscribed to.
        forms: Ask its user.
    """

    def __init__(self) -> None:
        self.late = LateUpdates()
        self.log_level: types.LoggingLevel = "info"
        self.is_kept = False
        self.subscribed: set[str] = set()
        self.forms = Forms()
        # With their types: 1 and "1" are different tokens.
        self._tokens: set[tuple[type, types.ProgressToken]] = set()

    @contextmanager
    def hold_token(self, token: types.ProgressToken | None) -> Generator[None]:
        """Reserve a progress token for this call while it runs.

        Raises:
            MCPError: Another call on this connection uses it.
        """
        if token is None:
            yield
            return
        key = type(token), token
        if key in self._tokens:
            shown = shorten(token) if isinstance(token, str) else token
            raise MCPError(
                types.INVALID_PARAMS,
                f"The progressToken {shown!r} belongs to a call that is still running; tokens must "
                "be unique across active requests (MCP specification, Progress). Use another one.",
            )
        self._tokens.add(key)
        try:
            yield
        finally:
            self._tokens.discard(key)


class ClientConnections:
    """The connections of one transport: one over stdio, one for each session over HTTP.

    Args:
        on_gone: Called with the key of each session that ends; must not block or raise.
    """

    def __init__(self, on_gone: Callable[[str], None] = lambda _key: None) -> None:
        self.on_gone = on_gone
        self._own = ClientConnection()
        self._key = secrets.token_hex(16)
        self._sessions: dict[str, ClientConnection] = {}

    def session_key(self, ctx: ServerRequestContext[Any]) -> SessionKey | None:
        """Return a stable key for a client's session, or None.

        Over HTTP, requests of 2026-07-28 have no session.
        """
        headers = find_http_headers(ctx)
        if headers is None:
            return self._key
        session = _find_session(headers)
        return None if session is None else _key_of(session)

    def close(self) -> None:
        """Handle the end of the transport."""
        self.on_gone(self._key)

    def of(self, ctx: ServerRequestContext[Any]) -> ClientConnection:
        """Return the connection that a request arrived on.

        Over HTTP, a request of 2026-07-28 has no session and gets its own connection.
        """
        headers = find_http_headers(ctx)
        if headers is None:
            return self._own
        session = _find_session(headers)
        if session is None:
            return ClientConnection()
        connection = self._sessions.get(session)
        if connection is None:
            connection = self._sessions[session] = ClientConnection()
            at_end_of_session(ctx, partial(self._end_session, session))
        return connection

    def _end_session(self, session: str) -> None:
        del self._sessions[session]
        self.on_gone(_key_of(session))


def _key_of(session: str) -> str:
    return f"session {session}"


def _find_session(headers: Headers) -> str | None:
    """Return a request's session; the SDK checks the header only where it has a meaning."""
    return headers.get(MCP_SESSION_ID_HEADER) if is_routed_by_session(headers) else None


def find_http_headers(ctx: ServerRequestContext[Any]) -> Headers | None:
    """Return the headers of the HTTP request that a message arrived in; None without one."""
    request: object = ctx.request
    return request.headers if isinstance(request, Request) else None


def lifespan(
    on_gone: Callable[[str], None],
) -> Callable[[Server[ClientConnections]], AbstractAsyncContextManager[ClientConnections]]:
    """Return a server's lifespan, entered once by each transport that serves it."""

    @asynccontextmanager
    async def connections(_server: Server[ClientConnections]) -> AsyncGenerator[ClientConnections]:
        known = ClientConnections(on_gone)
        try:
            yield known
        finally:
            known.close()

    return connections
