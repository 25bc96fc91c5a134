"""Over stdio, a result waits until the client has read the progress before it.

TypeScript clients lose progress that they read together with the call's result.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.bench.server import TOOL
from e2e.waiting import PATIENT

SERVER = [sys.executable, "-m", "e2e.bench.server", "ours", "stdio"]
REPORTS = 5
LONG = 0.3  # s; many times as long as a server that does not wait would take
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
CALL = {
    "name": TOOL,
    "arguments": {"reports": REPORTS},
    "_meta": {"progressToken": "token"},
}


def open_pipe() -> tuple[int, int]:
    """The two ends of a pipe, as most languages create it for a child process."""
    return os.pipe()


def open_socket_pair() -> tuple[int, int]:
    """The same, as Node creates it."""
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def read(wire: int) -> list[dict[str, Any]]:
    """Wait for a message, and read all that are there."""
    text = os.read(wire, 65536)
    while not text.endswith(b"\n"):
        text += os.read(wire, 65536)
    return [json.loads(line) for line in text.splitlines()]


@contextmanager
def calling(open_wire: Callable[[], tuple[int, int]]) -> Generator[int]:
    """Start a server and make a call; return the stream of its responses."""
    ours, theirs = open_wire()
    with subprocess.Popen(SERVER, stdin=subprocess.PIPE, stdout=theirs, text=True) as server:
        os.close(theirs)
        assert server.stdin is not None

        def send(**message: Any) -> None:
            assert server.stdin is not None
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()

        send(method="initialize", params=INITIALIZE, id=0)
        assert [message["id"] for message in read(ours)] == [0]
        send(method="notifications/initialized")
        send(method="tools/call", params=CALL, id=1)
        yield ours
        server.stdin.close()
        assert server.wait(PATIENT) == 0
    os.close(ours)


@pytest.mark.parametrize("open_wire", [open_pipe, open_socket_pair])
def test_a_result_is_not_written_before_the_progress_is_read(
    open_wire: Callable[[], tuple[int, int]],
) -> None:
    with calling(open_wire) as wire:
        heard: list[dict[str, Any]] = []
        while len(heard) < REPORTS:
            time.sleep(LONG)
            heard += read(wire)

        assert [message.get("id") for message in heard] == [None] * REPORTS
        assert [message["id"] for message in read(wire)] == [1]


def test_a_client_that_reads_nothing_for_long_still_gets_the_result() -> None:
    with calling(open_socket_pair) as wire:
        with socket.socket(fileno=os.dup(wire)) as unread:  # which can be looked at as it is
            for _ in range(int(PATIENT / LONG)):
                if b'"id":1' in unread.recv(65536, socket.MSG_PEEK):
                    break
                time.sleep(LONG)

        assert [message.get("id") for message in read(wire)] == [*[None] * REPORTS, 1]
