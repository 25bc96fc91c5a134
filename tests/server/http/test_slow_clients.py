"""A client that stops reading delays nobody, costs bounded memory, and is disconnected."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest

from opentabs_py.core.progress import Pace, ProgressReport
from opentabs_py.server.http import slow_clients
from tests.fakes import FakeBridge, Json
from tests.served import INITIALIZE, Served
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CALL: Json = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "chat_send"}}
MIB = 1024 * 1024


@asynccontextmanager
async def a_session(url: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """Begin a session of the initialize era; return a function that posts in it."""
    async with httpx2.AsyncClient(headers=ACCEPT, timeout=PATIENT) as http:
        response = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
        http.headers["mcp-session-id"] = response.headers["mcp-session-id"]
        yield http


async def post_and_read_nothing(url: str, session: httpx2.AsyncClient) -> socket.socket:
    """Make a call on its own connection, and never read the response."""
    params = {**CALL["params"], "_meta": {"progressToken": "unread"}}
    body = json.dumps({**CALL, "id": "unread", "params": params})
    host = urlsplit(url).netloc
    lines = [
        "POST /mcp HTTP/1.1",
        f"host: {host}",
        f"mcp-session-id: {session.headers['mcp-session-id']}",
        *(f"{name}: {value}" for name, value in ACCEPT.items()),
        f"content-length: {len(body)}",
    ]
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", int(host.rpartition(":")[2])))
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    return connection


def count_until_closed(connection: socket.socket) -> int:
    """Read the rest of a closed connection."""
    count = 0
    try:
        while chunk := connection.recv(MIB):
            count += len(chunk)
    except ConnectionResetError:
        pass
    return count


async def wait_for_call(served: Served) -> None:
    with anyio.fail_after(PATIENT):
        await served.bridge.called.wait()


async def test_a_stream_that_is_not_read_holds_up_no_other_of_its_session() -> None:
    reports = [ProgressReport(n, n, None, "x" * 4096) for n in range(1700)]  # 7 MiB
    served = Served(FakeBridge(value={}, reports=reports), pace=Pace(burst=len(reports)))
    async with served.over_http() as url, a_session(url) as session:
        with await post_and_read_nothing(url, session):
            await wait_for_call(served)
            await until_all_wait()
            for number in range(3):
                answer = await session.post(url, json={**CALL, "id": number})
                assert f'"id":{number},"result"' in answer.text


async def test_another_client_is_not_held_up_by_more_than_is_kept() -> None:
    served = Served(FakeBridge(value={"text": "x" * (24 * MIB)}))
    async with served.over_http() as url, a_session(url) as stuck, a_session(url) as other:
        with await post_and_read_nothing(url, stuck):
            await wait_for_call(served)
            answer = await other.post(url, json={**CALL, "id": 1})
    assert len(answer.content) > 24 * MIB


async def test_one_that_reads_nothing_for_too_long_is_disconnected_and_its_session_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut = anyio.Event()

    def note(protocol: slow_clients.PatientProtocol, error: Exception | None) -> None:
        lose(protocol, error)
        cut.set()

    lose = slow_clients.PatientProtocol.connection_lost
    monkeypatch.setattr(slow_clients.PatientProtocol, "connection_lost", note)
    monkeypatch.setattr(slow_clients, "READ_WITHIN", 0.2)
    served = Served(FakeBridge(value={"text": "x" * (24 * MIB)}))
    async with served.over_http() as url, a_session(url) as session:
        connection = await post_and_read_nothing(url, session)
        with connection:
            connection.settimeout(PATIENT)
            await wait_for_call(served)
            await until_all_wait()
            served.bridge.value = {}
            answer = await session.post(url, json={**CALL, "id": 1})
            assert '"id":1,"result"' in answer.text
            with anyio.fail_after(PATIENT):
                await cut.wait()
            assert await anyio.to_thread.run_sync(count_until_closed, connection) < 24 * MIB


async def test_of_many_that_read_nothing_the_first_are_disconnected_and_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slow_clients, "UNREAD_TOTAL", 60 * MIB)
    monkeypatch.setattr(slow_clients, "STUCK_AFTER", 0.05)
    served = Served(FakeBridge(value={"text": "x" * (12 * MIB)}))  # 24 MiB in a response
    async with served.over_http() as url, AsyncExitStack() as stack:
        stuck: list[socket.socket] = []
        session = await stack.enter_async_context(a_session(url))
        for _ in range(5):
            session = await stack.enter_async_context(a_session(url))
            served.bridge.called = anyio.Event()
            stuck.append(stack.enter_context(await post_and_read_nothing(url, session)))
            stuck[-1].settimeout(PATIENT)
            await wait_for_call(served)
            await until_all_wait()
        answer = await session.post(url, json={**CALL, "id": 1})
        assert len(answer.content) > 24 * MIB
        await logged(caplog, "Disconnected a client")
        assert await anyio.to_thread.run_sync(count_until_closed, stuck[0]) < 12 * MIB
        # The last one can still read its response.
        assert await anyio.to_thread.run_sync(count_to, 24 * MIB, stuck[-1]) >= 24 * MIB


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Wait until this text is logged."""
    with anyio.fail_after(PATIENT):
        while text not in caplog.text:  # noqa: ASYNC110 (no event)
            await anyio.sleep(0.01)


def count_to(least: int, connection: socket.socket) -> int:
    """Read this many bytes of a connection, or as many as there are."""
    count = 0
    while count < least and (part := connection.recv(MIB)):
        count += len(part)
    return count
