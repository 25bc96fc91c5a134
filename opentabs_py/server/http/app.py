"""The web application: `/mcp` for clients, `/ws` for the extension, and the console's pages."""

import logging
from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from opentabs_py.bridge.connection import SocketClosedError
from opentabs_py.bridge.pages import Pages
from opentabs_py.core.protocol import CLOSE_WRONG_SECRET, SUBPROTOCOL
from opentabs_py.server.http.guards import LocalOnly, OwnProgramsOnly, RequireToken
from opentabs_py.server.http.refusals import why_refused

logger = logging.getLogger(__name__)


class _BridgeSocket:
    """Adapts a Starlette WebSocket to the bridge's protocol."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive_text(self) -> str:
        message = await self._websocket.receive()
        if message["type"] != "websocket.receive":
            raise SocketClosedError
        # The protocol has no binary frames; they count as malformed messages.
        return message.get("text") or ""

    async def send_text(self, data: str) -> None:
        try:
            await self._websocket.send_text(data)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise SocketClosedError from error

    async def close(self, code: int, reason: str) -> None:
        try:
            await self._websocket.close(code, reason)
        except (WebSocketDisconnect, RuntimeError) as error:
            raise SocketClosedError from error


def create_app(
    mcp_apps: Mapping[str, ASGIApp],
    pages: Pages,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    more: Sequence[BaseRoute] = (),
    for_extension: str | None = None,
) -> Starlette:
    """Build the ASGI application.

    Args:
        mcp_apps: The applications that serve MCP clients, by path, for example `/mcp`.
        pages: Serve `/ws`.
        host: The address of the server, besides the usual local names.
        token: The token MCP clients must send; None admits the user's programs on this machine.
        more: Routes that need no token.
        for_extension: The path prefix that the extension's own pages may request, too.
    """

    async def serve_extension(websocket: WebSocket) -> None:
        if websocket.headers.get("origin") != pages.origin:
            logger.warning("Refused a WebSocket from %s", websocket.headers.get("origin"))
            await websocket.close()  # before accept: 403
            return
        serve = pages.admit(websocket.scope["subprotocols"])
        await websocket.accept(SUBPROTOCOL)
        if serve is None:
            logger.warning("Refused an extension with the wrong secret")
            await websocket.close(
                CLOSE_WRONG_SECRET, "wrong secret: load the folder that this server staged"
            )
            return
        await serve(_BridgeSocket(websocket))

    async def report_status(_request: Request) -> Response:
        problems = [f"{problem.plugin}: {problem.message}" for problem in pages.plugin_problems]
        plugins = {name: pages.tabs.status(name) for name in pages.plugins}
        status = {"extension": pages.connected, "plugins": plugins, "problems": problems}
        return JSONResponse(status)

    # Only existing paths are guarded: clients that probe for OAuth metadata get a 404.
    guarded = [
        Middleware(OwnProgramsOnly) if token is None else Middleware(RequireToken, token=token)
    ]
    return Starlette(
        routes=[
            *(Route(path, app, middleware=guarded) for path, app in mcp_apps.items()),
            WebSocketRoute("/ws", serve_extension),
            Route("/status", report_status, middleware=guarded),
            *more,
        ],
        middleware=[
            Middleware(
                LocalOnly,
                host=host,
                extension=None if for_extension is None else (pages.origin, for_extension),
            )
        ],
        exception_handlers={HTTPException: _refuse_in_json},
    )


async def _refuse_in_json(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    why = why_refused(request, error, instead="MCP clients connect to /mcp.")
    return JSONResponse({"error": why}, status_code=error.status_code, headers=error.headers)
