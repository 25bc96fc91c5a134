"""A connection to an extension: pings, and messages that cannot be read."""

import anyio
import pytest

from opentabs_py.bridge.connection import MOST_SILENT, Connection
from opentabs_py.calling.clock import MS, wall_clock
from tests.bridge.bridged import CALL, RESULT, call_and_answer
from tests.fakes import FakeSocket, a_bridge, a_document, greeted, running
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def test_an_extension_that_answers_no_ping_is_disconnected_with_what_it_did_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.connection.KEEPALIVE", 0.01)
    bridge = a_bridge()
    async with running(bridge) as connect:
        (await greeted(connect)).is_stalled = True
        with anyio.fail_after(PATIENT):
            while bridge.connected:
                await bridge.changed().wait()


async def test_one_ping_without_an_answer_does_not_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.connection.KEEPALIVE", 0.01)
    async with running(a_bridge()) as connect:
        socket = await greeted(connect)
        for _ in range(MOST_SILENT):
            await socket.hear("ping")


async def test_an_extension_that_answers_pings_stays_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.connection.KEEPALIVE", 0.5)
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        for _ in range(MOST_SILENT + 2):
            ping = await socket.hear("ping")
            pong = {"time": 0, "pingTime": ping["params"]["time"]}
            socket.say({"method": "pong", "params": pong})
        assert bridge.connected


async def test_the_extensions_clock_is_known_again_after_the_machine_has_slept() -> None:
    socket = FakeSocket()
    connection = Connection(socket, message_limit=1024)
    # s; its clock stands still meanwhile, and afterwards no ping is as fast as the first.
    for behind, round_trip in ((0.0, 0.0), (3600.0, 1.0)):
        now = wall_clock()
        pong = {"time": (now - behind) * MS, "pingTime": (now - round_trip) * MS}
        socket.say({"method": "pong", "params": pong})
    socket.say({"method": "tool.lost", "params": {"callId": "c" * 32, "reason": "crashed"}})
    await connection.receive()
    socket.dispose()
    assert connection.clock_offset == pytest.approx(3600.0, abs=PATIENT)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nonsense", ""),
        ("", ""),
        ('{"jsonrpc":"2.0","method":"tool.dance","params":{}}', ""),
        ('{"jsonrpc":"2.0","method":"tool.lost","params":{"callId":"x","reason":"crashed"}}',
         "params.callId"),
        ("~too short", ""),
    ],
)  # fmt: skip
async def test_a_malformed_message_is_answered_with_its_path_and_the_connection_continues(
    text: str, path: str
) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.say(text)
        answer = await socket.hear("error")
        assert (answer["id"], answer["error"]["code"]) == (None, -32600)
        assert answer["error"]["data"] == {"path": path}
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


async def test_a_malformed_answer_to_a_request_does_not_end_the_connection() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        sync = await socket.hear("plugins.sync")
        socket.say({"id": sync["id"], "result": {"injected": "many"}})
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


async def test_a_ping_is_answered_with_its_time() -> None:
    async with running(a_bridge()) as connect:
        socket = await greeted(connect)
        socket.say({"method": "ping", "params": {"time": 12.5}})
        assert (await socket.hear("pong"))["params"]["pingTime"] == 12.5
