"""The HTTP side: `/mcp` for clients, `/ws` for the extension, on one port of 127.0.0.1."""

import logging
import socket
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path

import anyio
import uvicorn
from anyio.abc import TaskStatus
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from opentabs_py.bridge.link import SocketClosedError
from opentabs_py.bridge.pages import Pages
from opentabs_py.core.protocol import CLOSE_WRONG_SECRET, SUBPROTOCOL
from opentabs_py.server import guards, slow_clients
from opentabs_py.server.guards import LocalOnly, RequireToken
from opentabs_py.server.log_limits import repeats_suppressed
from opentabs_py.server.slow_clients import PatientProtocol

logger = logging.getLogger(__name__)

KEPT_IDLE = 75  # s; agents think between two calls, and uvicorn's 5 s would close their connection
STOP_WITHIN = 0.5  # s; then open streams are closed


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
    endpoints: Mapping[str, ASGIApp],
    pages: Pages,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    more: Sequence[BaseRoute] = (),
    for_extension: str | None = None,
) -> Starlette:
    """Build the ASGI application.

    Args:
        endpoints: The applications that serve MCP clients, by path, for example `/mcp`.
        pages: Serve `/ws`.
        host: The address of the server, besides the usual local names.
        token: The token MCP clients must send; None admits every program on this machine.
        more: Routes that need no token.
        for_extension: The path below which pages of the extension may ask, too.
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

    # Only existing paths need the token: clients that probe for OAuth metadata get a 404.
    guarded = [] if token is None else [Middleware(RequireToken, token=token)]
    return Starlette(
        routes=[
            *(Route(path, endpoint, middleware=guarded) for path, endpoint in endpoints.items()),
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
    path = request.url.path
    if error.status_code == HTTPStatus.NOT_FOUND:
        why = f"There is nothing at {path}. MCP clients connect to /mcp."
    else:
        why = f"{path} does not serve {request.method}."
    return JSONResponse({"error": why}, status_code=error.status_code, headers=error.headers)


class _SocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket; uvicorn's fails to shut down while its client closes it."""

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except InvalidState:
            self.transport.close()


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = anyio.Event()
        self._is_stopping = anyio.Event()

    def begin_stop(self) -> None:
        """Stop at once, not at the next tick."""
        self.should_exit = True
        self._is_stopping.set()

    async def main_loop(self) -> None:
        """Tick once a second, for the `Date` header; uvicorn's own loop ticks ten times."""
        second = 0
        while not await self.on_tick(10 * second):
            second += 1
            with anyio.move_on_after(1):
                await self._is_stopping.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the program."""
        yield


# Anyone who can connect can trigger refusals without limit.
REFUSALS = (__name__, guards.__name__, slow_clients.__name__, "uvicorn.error")


@asynccontextmanager
async def serve_http(
    app: ASGIApp, listener: socket.socket, *, on_stop: Callable[[], None] = lambda: None
) -> AsyncGenerator[Callable[[], None]]:
    """Serve an application on a bound socket while the context is open.

    Args:
        app: The application.
        listener: The bound socket.
        on_stop: Called when stopping begins, so that the application ends its requests.

    Yields:
        A function that begins to stop the server, for callers with other things to stop in the
        meantime.
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,  # h11, because httptools fails a header conformance check
        ws=_SocketProtocol,
        ws_max_size=4 * 1024 * 1024,  # frames have at most 1 Mi characters
        ws_ping_interval=None,  # ping frames do not keep a service worker alive; ours do
        ws_per_message_deflate=False,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEPT_IDLE,
        timeout_graceful_shutdown=1,
    )
    server = _Uvicorn(config)
    failure: Exception | None = None
    # A cancellation must not abort uvicorn: it stops through `should_exit`, by a deadline.
    running = anyio.CancelScope(shield=True)

    async def serve() -> None:
        with running:
            await server.serve([listener])
        if running.cancelled_caught and server.started:
            # uvicorn was aborted before it ended the application's lifespan.
            with anyio.move_on_after(STOP_WITHIN, shield=True):
                await server.lifespan.shutdown()
        # Otherwise a client that connected at the last moment, or closes slowly, is still served.
        for connection in list(server.server_state.connections):
            connection.transport.abort()

    def stop() -> None:
        if not server.should_exit:
            server.begin_stop()
            on_stop()

    with repeats_suppressed(*REFUSALS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            try:
                await server.is_up.wait()
                yield stop
            except Exception as error:  # noqa: BLE001
                failure = error  # the caller's; raised below, because the task group would wrap it
            finally:
                stop()
                # uvicorn waits 0.1 s for connections to close, and then for open streams.
                running.deadline = anyio.current_time() + STOP_WITHIN
    if failure is not None:
        raise failure


async def serve_directory(
    directory: Path,
    listener: socket.socket,
    *,
    task_status: TaskStatus[Callable[[], None]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a directory's pages on a bound socket until cancelled, then close the socket.

    Args:
        directory: The directory.
        listener: The bound socket.
        task_status: Receives a function that begins to stop the server.
    """
    pages = Mount("/", StaticFiles(directory=directory, html=True))
    with listener:
        async with serve_http(Starlette(routes=[pages]), listener) as stop:
            task_status.started(stop)
            await anyio.sleep_forever()
