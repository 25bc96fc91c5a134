"""Serve an application over HTTP, on a socket that is bound already."""

import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import uvicorn
from anyio.abc import TaskStatus
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from opentabs_py.server.http import app as own_app
from opentabs_py.server.http import guards, open_files, slow_clients
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.log_limits import repeats_suppressed
from opentabs_py.server.http.slow_clients import PatientProtocol

KEPT_IDLE = 75  # s; agents think between two calls, and uvicorn's 5 s would close their connection
STOP_WITHIN = 0.5  # s; then open streams are closed


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
REFUSALS = (own_app.__name__, guards.__name__, slow_clients.__name__, "uvicorn.error")


@asynccontextmanager
async def serve_locally(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve an application on a free port of this machine; yield its URL."""
    listener = bind("127.0.0.1", 0)
    async with serve_http(app, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


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
    open_files.allow_many()
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
