"""Log messages about clients that are refused, or that leave in the middle of a request."""

import logging
import socket
from collections.abc import Generator
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from opentabs_py.server.http import log_limits
from opentabs_py.server.http.serve import REFUSALS
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_other_server() -> Generator[None]:
    """Ignore what is suppressed by servers of other tests, which may still run."""
    loggers = [logging.getLogger(name) for name in REFUSALS]
    filters = [logger.filters[:] for logger in loggers]
    for logger in loggers:
        logger.filters.clear()
    yield
    for logger, its_filters in zip(loggers, filters, strict=True):
        logger.filters[:] = its_filters


async def refuse_a_socket(url: str, origin: str) -> None:
    with pytest.raises(InvalidStatus):
        async with connect(
            url.replace("http:", "ws:").replace("/mcp", "/ws"),
            additional_headers={"Origin": origin},
        ):
            pass


async def test_refused_sockets_are_one_line_of_the_log_and_a_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Served().over_http() as url:
        for number in range(20):
            await refuse_a_socket(url, f"https://evil{number}.example")
        assert len(caplog.messages) == 1
    first = "Refused a WebSocket from https://evil0.example"
    assert caplog.messages == [first, f"Suppressed 19 more messages like this: {first}"]


async def test_the_number_is_logged_after_a_while_and_then_the_next_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_limits, "PERIOD", 0.0)
    async with Served().over_http() as url:
        await refuse_a_socket(url, "https://one.example")
        await refuse_a_socket(url, "https://two.example")
    assert caplog.messages == [
        "Refused a WebSocket from https://one.example",
        "Refused a WebSocket from https://two.example",
    ]


async def test_errors_and_what_no_loop_runs_for_are_never_held_back() -> None:
    held = log_limits.Repeats()
    error = logging.makeLogRecord({"levelno": logging.ERROR, "msg": "x"})
    assert held.filter(error)
    assert held.filter(error)
    warning = logging.makeLogRecord({"levelno": logging.WARNING, "msg": "x"})
    passed = [await anyio.to_thread.run_sync(held.filter, warning) for _ in range(2)]
    assert passed == [True, True]


async def test_requests_with_a_wrong_host_and_what_is_not_http_are_counted_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Served().over_http() as url:
        async with httpx2.AsyncClient(timeout=PATIENT) as client:
            for number in range(10):
                await client.get(url, headers={"Host": f"evil{number}.example"})
        for _ in range(10):
            await send(url, b"\x00 nonsense\r\n\r\n")
        assert len(caplog.messages) == 2, caplog.messages


async def test_requests_refused_for_their_host_and_for_their_origin_are_counted_apart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    foreign = [{"Host": "evil.example"}, {"Origin": "https://evil.example"}]
    async with Served().over_http() as url, httpx2.AsyncClient(timeout=PATIENT) as client:
        for headers in foreign * 2:
            await client.get(url, headers=headers)
    host, origin, *more = caplog.messages
    assert "The Host header" in host
    assert "The Origin header" in origin
    assert more == [f"Suppressed 1 more message like this: {each}" for each in (host, origin)]


@pytest.mark.parametrize("session", ["", "mcp-session-id: x\r\n"])
async def test_a_body_that_is_broken_off_is_not_logged(
    caplog: pytest.LogCaptureFixture, session: str
) -> None:
    accept = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    head = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n{session}{accept}"
    async with Served().over_http() as url:
        for _ in range(5):
            await send(url, f"{head}content-length: 100\r\n\r\n{{".encode())
        async with httpx2.AsyncClient(timeout=PATIENT) as client:
            assert (await client.get(url.replace("/mcp", "/status"))).status_code == 200
    assert [record.getMessage() for record in caplog.records] == []


async def send(url: str, data: bytes) -> None:
    """Send this, close the connection, and wait until the server has closed it too."""

    def exchange() -> None:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), PATIENT) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            while wire.recv(65536):
                pass

    await anyio.to_thread.run_sync(exchange)
