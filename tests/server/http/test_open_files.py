"""Connections that are kept and idle take files from nobody else."""

import resource
from collections.abc import Generator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import anyio
import pytest

from opentabs_py.server.http import slow_clients
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def ask(connection: HTTPConnection) -> int:
    def status() -> int:
        connection.request("GET", "/status")
        with connection.getresponse() as answer:
            answer.read()
            return answer.status

    return await anyio.to_thread.run_sync(status)


async def connect_and_ask(url: str, stack: ExitStack) -> HTTPConnection:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENT)
    stack.enter_context(closing(connection))
    assert await ask(connection) == 200
    return connection


@pytest.fixture
def few_files() -> Generator[None]:
    """Let this process have few open files, until it allows itself more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_files")
async def test_a_server_allows_itself_many_open_files() -> None:
    async with Served().over_http() as url:
        with ExitStack() as stack:
            for _ in range(200):
                await connect_and_ask(url, stack)


async def test_of_too_many_connections_the_longest_idle_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_clients, "most_connections", lambda: 20)
    async with Served().over_http() as url:
        with ExitStack() as stack:
            first, second = [await connect_and_ask(url, stack) for _ in range(2)]
            assert await ask(first) == 200
            others = [await connect_and_ask(url, stack) for _ in range(19)]
            assert await anyio.to_thread.run_sync(second.sock.recv, 1) == b""
            for each in (first, *others):
                assert await ask(each) == 200
