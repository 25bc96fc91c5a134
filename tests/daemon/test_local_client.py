"""How commands talk to a server, with a socket in the server's place."""

import socket
import threading
from collections.abc import Generator
from typing import Any

import pytest

from opentabs_py.daemon import local_client
from opentabs_py.daemon.local_client import LocalClient
from opentabs_py.errors import ChainError
from opentabs_py.version import __version__
from tests.daemon.servers import a_server

LIMIT = 0.1  # s
BEGINNING = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Generator[socket.socket]:
    """A socket that accepts no connections, like that of a stopped process."""
    monkeypatch.setattr(local_client, "ANSWER_WITHIN", LIMIT)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def client_of(listener: socket.socket, **more: Any) -> LocalClient:
    return LocalClient(a_server(local_port=listener.getsockname()[1], **more))


def test_a_call_to_a_server_that_does_not_begin_to_answer_fails(listener: socket.socket) -> None:
    do = "See `opentabs logs --name work`, or end it: `opentabs stop --name work`."  # any command's
    with pytest.raises(ChainError, match=rf"'work' .* did not answer: timed out\. {do}$"):
        next(client_of(listener).call({}))


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (__version__, r"See `opentabs logs --name work`, or end it"),
        ("0.0.9", r"It runs version 0\.0\.9, and .* Restart it: `opentabs restart --name work`\."),
    ],
)
def test_a_refusal_without_a_reason_is_its_status(
    listener: socket.socket, version: str, advice: str
) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\nInternal Server Error")

    server = threading.Thread(target=answer)
    server.start()
    try:
        with pytest.raises(ChainError, match=rf"refused the request: it answered 500\. {advice}"):
            client_of(listener, version=version).status()
    finally:
        server.join()


def test_a_call_may_be_silent_for_long_once_the_server_has_begun_to_answer(
    listener: socket.socket,
) -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            received = b""
            while not received.endswith(b"{}"):
                received += connection.recv(1 << 16)
            connection.sendall(BEGINNING)
            threading.Event().wait(3 * LIMIT)
            connection.sendall(b'{"say": "hello"}\n')

    server = threading.Thread(target=answer)
    server.start()
    try:
        assert [*client_of(listener).call({})] == [{"say": "hello"}]
    finally:
        server.join()
