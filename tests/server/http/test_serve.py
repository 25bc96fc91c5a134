"""The lifetime of a web server: it ends what it has started, whenever it is stopped."""

from typing import Any

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Hanging:
    """An application that never responds.

    Attributes:
        asked: The lifespan messages of its server.
        came: A request has arrived.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.came = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and never respond."""
        if scope["type"] == "http":
            self.came.set()
            await anyio.sleep_forever()
        for step in ("startup", "shutdown"):
            self.asked.append((await receive())["type"])
            await send({"type": f"lifespan.{step}.complete"})


@pytest.mark.parametrize("requests", [0, 1])
async def test_the_lifespan_of_an_application_is_ended_though_a_request_outlives_its_server(
    requests: int,
) -> None:
    app = Hanging()
    with anyio.fail_after(PATIENT), bind("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with httpx2.AsyncClient() as client, anyio.create_task_group() as tasks:
            async with serve_http(app, listener):
                for _ in range(requests):
                    tasks.start_soon(client.get, url)
                    await app.came.wait()
            tasks.cancel_scope.cancel()

    assert app.asked == ["lifespan.startup", "lifespan.shutdown"]


async def test_a_connection_that_would_outlive_its_server_is_closed() -> None:
    app = Hanging()
    with anyio.fail_after(PATIENT), bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        async with serve_http(app, listener):
            client = await anyio.connect_tcp("127.0.0.1", port)
            await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await app.came.wait()
        async with client:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await client.receive()


async def test_an_error_of_the_servers_user_propagates_unchanged() -> None:
    with bind("127.0.0.1", 0) as listener, pytest.raises(ZeroDivisionError):
        async with serve_http(Hanging(), listener):
            raise ZeroDivisionError


async def test_the_date_of_a_response_follows_the_clock() -> None:
    with bind("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        async with serve_http(Starlette(), listener), httpx2.AsyncClient() as client:
            first = (await client.get(url)).headers["date"]
            with anyio.fail_after(PATIENT):
                while (await client.get(url)).headers["date"] == first:  # noqa: ASYNC110 (it ticks)
                    await anyio.sleep(0.1)


async def test_a_server_stops_while_a_socket_closes_that_its_client_does_not_read() -> None:
    is_closing = anyio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send, {"type": "websocket.send", "bytes": bytes(64 * 1024 * 1024)})
            await receive()
            tasks.cancel_scope.cancel()
        is_closing.set()

    with bind("127.0.0.1", 0) as listener:
        async with serve_http(app, listener):
            client = await anyio.connect_tcp("127.0.0.1", listener.getsockname()[1])
            async with client:
                await client.send(
                    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                    b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
                )
                with anyio.fail_after(PATIENT):
                    await client.receive(1)  # it is accepted
                await client.send(
                    b"\x88\x82\0\0\0\0\x03\xe8"  # a close frame, 1000
                )
                with anyio.fail_after(PATIENT):
                    await is_closing.wait()
