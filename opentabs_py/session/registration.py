"""Register a session as a running server, so that other commands find and use it."""

import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from opentabs_py import __version__
from opentabs_py.daemon.state import Claim, ServerState, own_variables
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.local_interface import LocalInterface
from opentabs_py.session.session import OpenTabs


@asynccontextmanager
async def registered(
    session: OpenTabs, claim: Claim, *, stop: Callable[[], None]
) -> AsyncGenerator[None]:
    """Serve a session's local interface while the context is open, and say where it is.

    Args:
        session: The session, which has started.
        claim: The name under which it is found.
        stop: Begins to stop the server.
    """
    session.internals.console.server_name = claim.name
    listener = bind("127.0.0.1", 0)
    local_token = secrets.token_hex(32)
    app = LocalInterface(session, session.settings.pace, stop).app(local_token)
    token, command = session.settings.token, claim.command
    # Its calls end with those of all clients, before the session is left.
    async with serve_http(app, listener, on_stop=session.internals.tool_calls.running.stop):
        claim.publish(
            ServerState(
                name=claim.name,
                pid=os.getpid(),
                version=__version__,
                started=time.time(),
                mcp_url=session.mcp_url,
                mcp_token=None if token is None else token.get_secret_value(),
                local_port=listener.getsockname()[1],
                local_token=local_token,
                arguments=tuple(command.arguments),
                directory=str(command.directory),
                log=None if command.log is None else str(command.log),
                environment=own_variables(),
            )
        )
        yield
