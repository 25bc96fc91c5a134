"""What the server knows of each connected client while it is connected."""

import secrets
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from weakref import WeakValueDictionary

from mcp import types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.exceptions import MCPError

from opentabs_py.server.frames import LateFrames


class Connection:
    """One client's connection, as long as a handler of it runs.

    Attributes:
        least: The least level of logs that the client wants.
        is_kept: Whether a handler runs until the connection ends.
        late: The frames of streams whose calls have returned.
        subscribed: The addresses of the streams that the client has subscribed to.
    """

    def __init__(self) -> None:
        self.late = LateFrames()
        self.least: types.LoggingLevel = "info"
        self.is_kept = False
        self.subscribed: set[str] = set()
        # With their types: 1 and "1" are two tokens.
        self._tokens: set[tuple[type, types.ProgressToken]] = set()

    @contextmanager
    def hold_token(self, token: types.ProgressToken | None) -> Generator[None]:
        """Keep a progress token from being used by a second call while this one runs.

        Raises:
            MCPError: Another call of this connection uses it.
        """
        if token is None:
            yield
            return
        key = type(token), token
        if key in self._tokens:
            raise MCPError(
                types.INVALID_PARAMS,
                f"The progressToken {token!r} belongs to a call that still runs: tokens must be "
                "unique across active requests (MCP specification, Progress). Send another.",
            )
        self._tokens.add(key)
        try:
            yield
        finally:
            self._tokens.discard(key)


class Connections:
    """The connections of one transport: one over stdio, one for each session over HTTP."""

    def __init__(self) -> None:
        self._own = Connection()
        self._key = secrets.token_hex(16)
        self._sessions: WeakValueDictionary[str, Connection] = WeakValueDictionary()

    def owner(self, ctx: ServerRequestContext[Any]) -> str | None:
        """Give what stands for a client's session, whatever requests of it run.

        Over HTTP, a request of 2026-07-28 is of none.
        """
        if ctx.request is None:
            return self._key
        session = ctx.request.headers.get(MCP_SESSION_ID_HEADER)
        return None if session is None else f"session {session}"

    def of(self, ctx: ServerRequestContext[Any]) -> Connection:
        """Give the connection that a request came by.

        Over HTTP, a request of 2026-07-28 has no session: it is a connection by itself.
        """
        if ctx.request is None:
            return self._own
        session = ctx.request.headers.get(MCP_SESSION_ID_HEADER)
        if session is None:
            return Connection()
        connection = self._sessions.get(session)
        if connection is None:
            connection = self._sessions[session] = Connection()
        return connection


@asynccontextmanager
async def connections(_server: Server[Connections]) -> AsyncGenerator[Connections]:
    """Make the lifespan of a server: entered once by each transport that serves it."""
    yield Connections()
