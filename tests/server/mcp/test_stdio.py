"""What a stdio client may send without end, and how prepared responses are assembled."""

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.shared.message import SessionMessage

from opentabs_py.server.mcp.answers import Prepared, TextInParts, find_slot
from opentabs_py.server.mcp.stdio import Slots
from tests.fakes import FakeBridge
from tests.served import INITIALIZE, INITIALIZED, Served
from tests.waiting import PATIENT, until_all_wait

MIB = 1024 * 1024
LIMIT = MIB
SERVER = f"""
import anyio
from opentabs_py.server.mcp.stdio import serve_stdio
from tests.served import Served
anyio.run(lambda: serve_stdio(Served().server, line_limit={LIMIT}))
"""
# A tool waits until another one is called.
WAITING_SERVER = f"""
import anyio
from opentabs_py import tool
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.mcp.stdio import serve_stdio
from tests.served import Served

async def main():
    released = anyio.Event()
    @tool
    async def wait() -> dict[str, bool]:
        await released.wait()
        return {{"waited": True}}
    @tool
    async def release() -> dict[str, bool]:
        released.set()
        return {{"released": True}}
    served = Served()
    served.registry.set_tools(PythonTools([wait, release], ToolHost(AlarmClock())).tools)
    await serve_stdio(served.server, line_limit={LIMIT})

anyio.run(main)
"""
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@pytest.fixture
def server() -> Generator[subprocess.Popen[bytes]]:
    with serving(SERVER) as process:
        yield process


@pytest.fixture
def waiting_server() -> Generator[subprocess.Popen[bytes]]:
    with serving(WAITING_SERVER) as process:
        yield process


@contextmanager
def serving(program: str) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", program],
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
    """Return the peak memory, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


def test_a_line_without_an_end_is_dropped_as_it_comes_and_the_server_continues(
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
    _, errors = server.communicate(sent, timeout=PATIENT)
    assert errors == b""
    assert server.returncode == 0


CUT = b'{"text": "Zed \\ud83d"}'  # as JavaScript writes a text that ends within a character
DEEP = b'{"deep": ' + b"[" * 300 + b"]" * 300 + b"}"


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": %s}' % CUT, 7, -32700),
        (
            b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": %s}' % DEEP,
            "a",
            -32700,
        ),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 9}', 7, -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": 9}', None, -32600),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None, -32700),
        (b'{"jsonrpc": "2.0", "id": "\xed\xa0\x80", "method": "ping"}', None, -32700),
        (b"garbage", None, -32700),
        (b"[]", None, -32600),
        (b"null", None, -32600),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_under_its_id(
    server: subprocess.Popen[bytes], line: bytes, number: int | str | None, code: int
) -> None:
    assert server.stdin is not None
    server.stdin.write(line + b"\n")
    say(server, LIST)

    refused, answer = hear(server), hear(server)

    assert (refused["id"], refused["error"]["code"]) == (number, code)
    assert refused["error"]["message"].startswith("Cannot read the request: ")
    assert answer["id"] == LIST["id"]


def test_a_request_with_the_id_of_one_that_runs_is_refused_and_the_other_is_answered(
    waiting_server: subprocess.Popen[bytes],
) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "release"}}
    wait = {**call, "params": {"name": "wait"}}
    say(waiting_server, wait, LIST, {**LIST, "method": 9}, {**call, "id": 3})

    taken, invalid, *ended = [hear(waiting_server) for _ in range(4)]

    assert (taken["id"], taken["error"]["code"]) == (2, -32600)
    assert "with the id 2 is still running" in taken["error"]["message"]
    assert (invalid["id"], invalid["error"]["code"]) == (2, -32600)
    results = {each["id"]: each["result"]["structuredContent"] for each in ended}
    assert results == {2: {"waited": True}, 3: {"released": True}}


@pytest.mark.parametrize("line", [b'{"id": 1, "result": %s}' % CUT, b'{"method": 9}'])
def test_what_expects_no_answer_and_cannot_be_read_is_logged(
    server: subprocess.Popen[bytes], line: bytes
) -> None:
    assert server.stdin is not None
    server.stdin.write(line + b"\n")
    say(server, LIST)
    assert hear(server)["id"] == LIST["id"]
    _, errors = server.communicate(timeout=PATIENT)
    assert b"not valid" in errors


@pytest.mark.parametrize("request_id", [None, True, 1.5, 2.0, [], {}])
def test_a_request_whose_id_is_not_valid_is_refused(
    server: subprocess.Popen[bytes], request_id: Any
) -> None:
    say(server, {**LIST, "id": request_id}, {"id": None, **INITIALIZED, "jsonrpc": "2.0"}, LIST)

    refused, answer = hear(server), hear(server)

    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert "must be a string or an integer" in refused["error"]["message"]
    assert answer["id"] == LIST["id"]


def ask(slots: Slots, number: int | str) -> Prepared | None:
    """Receive a request; return where its handler may put a part of the response."""
    request = types.JSONRPCRequest(jsonrpc="2.0", id=number, method="tools/list")
    metadata = slots.receive(request).metadata
    return find_slot(getattr(metadata, "request_context", None))


def answer(slots: Slots, number: int | str, **result: Any) -> Any:
    message = types.JSONRPCResponse(jsonrpc="2.0", id=number, result=result)
    return json.loads(b"".join(slots.send(message)))["result"]


def prepare(slot: Prepared | None, *tools: str) -> None:
    assert slot is not None
    slot.fill(b'"tools":[]', TextInParts(b'"tools":' + json.dumps(tools).encode()))


def test_a_prepared_part_is_put_into_the_answer_of_its_own_request() -> None:
    slots = Slots()
    first, second = ask(slots, 1), ask(slots, "1")
    prepare(first, "of the first")
    prepare(second, "of the second")
    assert answer(slots, "1", tools=[]) == {"tools": ["of the second"]}
    assert answer(slots, 1, tools=[]) == {"tools": ["of the first"]}
    assert len(slots) == 0


@pytest.mark.parametrize(("size", "is_whole"), [(10, True), (3 * MIB, False)])
def test_only_a_long_answer_is_written_in_pieces(size: int, is_whole: bool) -> None:
    slots = Slots()
    prepare(ask(slots, 1), "x" * size)
    message = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": []})
    pieces = list(slots.send(message))
    assert (len(pieces) == 1) == is_whole
    assert json.loads(b"".join(pieces))["result"] == {"tools": ["x" * size]}


def test_an_answer_for_which_nothing_was_prepared_stays_as_it_is() -> None:
    slots = Slots()
    ask(slots, 1)
    assert answer(slots, 1, tools=[]) == {"tools": []}
    assert len(slots) == 0


def test_an_id_is_taken_until_its_request_is_answered() -> None:
    slots = Slots()
    ask(slots, 1)
    assert (1 in slots, "1" in slots) == (True, False)
    answer(slots, 1)
    assert 1 not in slots


def test_what_was_prepared_for_a_request_that_fails_is_forgotten() -> None:
    slots = Slots()
    prepare(ask(slots, 1), "prepared")
    error = types.ErrorData(code=1, message="")
    line = b"".join(slots.send(types.JSONRPCError(jsonrpc="2.0", id=1, error=error)))
    assert b"prepared" not in line
    assert len(slots) == 0


@pytest.mark.anyio
async def test_what_was_prepared_for_a_request_that_is_cancelled_is_forgotten() -> None:
    bridge = FakeBridge()
    bridge.hangs = True
    server = Served(bridge).server
    slots = Slots()
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](9)

    async def say(message: Any) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message})
        await to_server.send(slots.receive(types.jsonrpc_message_adapter.validate_json(text)))

    async def serve() -> None:
        await server.run(from_client, to_client, server.create_initialization_options())

    async with anyio.create_task_group() as tasks, from_server, to_server:
        tasks.start_soon(serve)
        await say(INITIALIZE)
        list(slots.send((await from_server.receive()).message))
        assert len(slots) == 0
        await say(INITIALIZED)
        await say({"id": 2, "method": "tools/call", "params": {"name": "chat_send"}})
        await bridge.called.wait()
        assert len(slots) == 1
        await say({"method": "notifications/cancelled", "params": {"requestId": 2}})
        await until_all_wait()
        assert len(slots) == 0
        tasks.cancel_scope.cancel()
