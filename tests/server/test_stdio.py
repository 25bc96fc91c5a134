"""What a stdio client may send endlessly, and how much of it is buffered."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.served import INITIALIZE, INITIALIZED

MIB = 1024 * 1024
LIMIT = MIB
SERVER = f"""
import anyio
from opentabs_py.server.stdio import serve_stdio
from tests.served import Served
anyio.run(lambda: serve_stdio(Served().server, line_limit={LIMIT}))
"""
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture
def server() -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        say(process, {"jsonrpc": "2.0", **INITIALIZE}, {"jsonrpc": "2.0", **INITIALIZED})
        assert hear(process)["id"] == 1
        yield process
        process.kill()


def say(process: subprocess.Popen[bytes], *messages: Any) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def peak(process: subprocess.Popen[bytes]) -> int:
    """Return its peak memory, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def test_a_line_without_an_end_is_dropped_as_it_comes_and_the_server_goes_on(
    server: subprocess.Popen[bytes],
) -> None:
    before = peak(server)
    assert server.stdin is not None
    for _ in range(200):
        server.stdin.write(b"x" * MIB)
    server.stdin.write(b"\n")
    say(server, LIST)

    refused, answer = hear(server), hear(server)

    assert refused["id"] is None
    assert refused["error"]["code"] == -32600
    assert "longer than 1,048,576 bytes" in refused["error"]["message"]
    assert [tool["name"] for tool in answer["result"]["tools"]] == ["chat_send"]
    assert peak(server) - before < 30 * MIB


@pytest.mark.parametrize("length", [LIMIT - 10, LIMIT + 10])
def test_a_line_at_the_limit_is_read_and_one_over_it_refused(
    server: subprocess.Popen[bytes], length: int
) -> None:
    request = {**LIST, "params": {"_meta": {"x": ""}}}
    request["params"]["_meta"]["x"] = "x" * (length - len(json.dumps(request)))  # type: ignore[index]
    say(server, request, {**LIST, "id": 3})
    assert [hear(server)["id"], hear(server)["id"]] == ([2, 3] if length < LIMIT else [None, 3])


@pytest.mark.parametrize("sent", [b"x" * (3 * MIB), b'{"half":'])
def test_a_line_that_is_broken_off_ends_the_server_without_a_traceback(
    server: subprocess.Popen[bytes], sent: bytes
) -> None:
    _, errors = server.communicate(sent, timeout=30)
    assert errors == b""
    assert server.returncode == 0
