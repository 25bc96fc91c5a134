"""Clients that send half a request: they are disconnected in time, and block nobody else."""

import logging
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect

from opentabs_py.server.http import slow_clients
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

HALF = b"GET /status HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "
WHOLE = b"GET /status HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
HEAD = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n"


@contextmanager
def connected(url: str, sent: bytes = b"") -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), PATIENT) as connection:
        connection.sendall(sent)
        yield connection


async def read_to_end(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""

    def read() -> bytes:
        got = b""
        try:
            while part := connection.recv(65536):
                got += part
        except ConnectionResetError:
            pass
        return got

    with anyio.fail_after(PATIENT):
        return await anyio.to_thread.run_sync(read, abandon_on_cancel=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADERS_WITHIN", "BODY_WITHIN", "READ_FIRST"):
        monkeypatch.setattr(slow_clients, name, 0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("sent", [b"", HALF, HEAD])
async def test_a_connection_whose_request_does_not_come_is_closed(
    sent: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its own, because a server that other tests have left running suppresses what is repeated.
    monkeypatch.setattr(slow_clients, "logger", logging.getLogger(__name__))
    caplog.set_level("INFO", __name__)
    async with Served().over_http() as url:
        with connected(url, sent) as connection:
            assert await read_to_end(connection) == b""
    assert ("did not arrive" in caplog.text) == (sent != b"")


@pytest.mark.usefixtures("impatient")
async def test_the_second_request_of_a_connection_has_its_time_too() -> None:
    async with Served().over_http() as url:
        with connected(url, WHOLE) as connection:
            answer = await anyio.to_thread.run_sync(connection.recv, 65536)
            assert answer.startswith(b"HTTP/1.1 200")
            connection.sendall(HALF)
            assert b"200" not in await read_to_end(connection)


@pytest.mark.usefixtures("impatient")
async def test_a_body_that_keeps_coming_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "BODY_RATE", 1)  # a second for each byte
    async with Served().over_http() as url:
        with connected(url, HEAD + b"{" + b" " * 998) as steady:
            for _ in range(3):
                with connected(url, HALF) as silent:
                    await read_to_end(silent)  # its time is up, and so would the other's be
            steady.sendall(b"}")
            answer = await anyio.to_thread.run_sync(steady.recv, 65536)
            assert answer.startswith(b"HTTP/1.1 4")  # it is not MCP


async def test_clients_that_all_connect_before_any_of_them_sends_are_all_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_clients, "NEW_FOR", PATIENT)
    async with Served().over_http() as url:
        with ExitStack() as stack:
            clients = [stack.enter_context(connected(url)) for _ in range(300)]
            async with httpx2.AsyncClient(timeout=PATIENT) as client:
                await client.get(url.replace("/mcp", "/status"))  # now all are accepted
            for each in clients:
                each.sendall(WHOLE)
                answer = await anyio.to_thread.run_sync(each.recv, 65536)
                assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("limits", [{"MOST_NEW": 20}, {"MOST_HALF_SENT": 20, "NEW_FOR": 0.0}])
async def test_of_too_many_half_requests_the_oldest_is_closed_and_others_are_answered(
    limits: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in limits.items():
        monkeypatch.setattr(slow_clients, name, limit)
    async with Served().over_http() as url:
        with ExitStack() as stack:
            halves = [stack.enter_context(connected(url, HALF)) for _ in range(60)]
            async with httpx2.AsyncClient(timeout=PATIENT) as client:
                status = url.replace("/mcp", "/status")
                assert (await client.get(status)).status_code == 200
            assert await read_to_end(halves[0]) == b""
            halves[-1].sendall(b"fast\r\n\r\n")
            answer = await anyio.to_thread.run_sync(halves[-1].recv, 65536)
            assert answer.startswith(b"HTTP/1.1 200")


async def test_of_half_requests_that_take_too_much_memory_the_oldest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_clients, "_SMALL", 10_000)
    monkeypatch.setattr(slow_clients, "HALF_SENT_TOTAL", 70_000)
    head, part = HEAD.replace(b"1000", b"80000"), b" " * 40_000
    async with Served().over_http() as url:
        with connected(url, head + part) as oldest, connected(url, head + part) as newest:
            assert await read_to_end(oldest) == b""
            newest.sendall(part)  # alone, it may be longer
            answer = await anyio.to_thread.run_sync(newest.recv, 65536)
            assert answer.startswith(b"HTTP/1.1 4")  # it is not MCP


@pytest.mark.usefixtures("impatient")
async def test_an_extension_that_says_nothing_for_long_keeps_its_socket() -> None:
    async with (
        Served().over_http() as url,
        connect(
            url.replace("http:", "ws:").replace("/mcp", "/ws"),
            subprotocols=["opentabs", f"opentabs.secret.{'s' * 64}"],  # type: ignore[list-item]
            additional_headers={"Origin": "chrome-extension://x"},
        ) as extension,
    ):
        with connected(url) as idle:
            await read_to_end(idle)  # closed: its time is up twice
        with connected(url) as idle:
            await read_to_end(idle)
        await extension.send("nonsense")
        assert "error" in str(await extension.recv())


@pytest.mark.usefixtures("impatient")
async def test_a_call_that_takes_longer_than_a_request_may_is_answered() -> None:
    served = Served()
    async with served.over_http() as url:
        with connected(url, WHOLE[:-2] + b"connection: close\r\n\r\n") as connection:
            assert (await read_to_end(connection)).startswith(b"HTTP/1.1 200")
