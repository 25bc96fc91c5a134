"""Running calls whose link is lost and restored, and their traces and logs."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.observer import CallObserver, instant
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.recorder import CallRecorder
from opentabs_py.errors import ChainError
from tests.bridge.bridged import CALL, RESULT, TARGET, Caller, call_and_answer
from tests.fakes import (
    OTHER_PAGE,
    TAB,
    Connect,
    FakeSocket,
    Json,
    a_bridge,
    a_document,
    about_call,
    greeted,
    hello,
    running,
    tabs_changed,
)
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def calling() -> AsyncGenerator[tuple[Connect, FakeSocket, Caller, str]]:
    """Make a call, and yield once its page has it."""
    bridge, caller = a_bridge(), Caller()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(caller, bridge, CALL)
        sent = await socket.hear("tool.dispatch")
        yield connect, socket, caller, sent["params"]["callId"]


async def test_a_result_that_was_not_acknowledged_is_accepted_after_a_reconnect() -> None:
    async with calling() as (connect, first, caller, call_id):
        first.hang_up()
        second = await greeted(connect, a_document(call_id))
        second.say(about_call("tool.result", call_id, seq=0, value="kept"))
        assert await caller.outcome() == "kept"
        assert (await second.hear("tool.settled"))["params"]["callIds"] == [call_id]
        assert not [m for m in second.heard if m.get("method") == "tool.dispatch"]


async def test_a_call_that_the_page_has_not_heard_of_is_sent_again_after_a_reconnect() -> None:
    async with calling() as (connect, first, caller, call_id):
        first.hang_up()
        second = await greeted(connect, a_document())
        assert (await second.hear("tool.dispatch"))["params"]["callId"] == call_id
        second.say(about_call("tool.result", call_id, seq=0, value="again"))
        assert await caller.outcome() == "again"


@pytest.mark.parametrize(
    ("news", "code"),
    [({"crashed": [TAB]}, "PAGE_CRASHED"), ({"fresh": True}, "EXTENSION_RELOADED")],
)
async def test_a_call_that_did_not_survive_ends_at_the_next_hello(news: Json, code: str) -> None:
    async with calling() as (connect, first, caller, _):
        first.hang_up()
        second = connect()
        said = hello()
        said["params"] |= news
        second.say(said)
        with pytest.raises(ChainError) as caught:
            await caller.outcome()
        assert caught.value.detail.code == code


async def test_a_call_whose_document_vanishes_ends_at_once() -> None:
    async with calling() as (_, socket, caller, _):
        socket.say(tabs_changed(a_document(documentId=OTHER_PAGE)))  # the tab has moved on
        with pytest.raises(ChainError, match="may have run"):
            await caller.outcome()


async def test_a_call_whose_tab_vanishes_ends_as_closed() -> None:
    async with calling() as (_, socket, caller, _):
        socket.say(tabs_changed(tabs=[]))
        with pytest.raises(ChainError) as caught:
            await caller.outcome()
        assert caught.value.detail.code == "TAB_CLOSED"


YEAR_2096 = 4e12  # ms, where the browser's clock stands


def a_recorder(bridge: Bridge) -> CallRecorder:
    now = instant(bridge.clock)
    return CallRecorder(call_id="0" * 32, name="chat_send", limits=Limits(), now=now)


async def test_a_recorded_call_gives_its_stamps_on_the_servers_clock() -> None:
    bridge = a_bridge()
    recorder = a_recorder(bridge)
    call = replace(CALL, recorder=recorder)
    begun = about_call("tool.stamps", "", stamps={"worker.down": YEAR_2096 + 3, "made.up": 4.0})
    del begun["params"]["documentId"]
    result = about_call("tool.result", "", seq=0, value=1, stamps={"runtime.up": YEAR_2096 + 5})
    async with running(bridge) as connect:
        socket = connect()
        said = hello(a_document())
        said["params"]["time"] = YEAR_2096
        socket.say(said)
        await socket.hear("result")

        async def answer() -> None:
            message = await socket.hear("tool.dispatch")
            assert message["params"]["trace"] is True
            call_id = message["params"]["callId"]
            for said in (begun, result):
                socket.say({**said, "params": {**said["params"], "callId": call_id}})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            with anyio.fail_after(PATIENT):
                await bridge.call(TARGET, "send", call)
    stamps = recorder.succeed(1, instant(bridge.clock)).stamps
    assert list(stamps) == [
        "server.accepted",
        "server.sent",
        "worker.down",
        "runtime.up",
        "server.received",
    ]
    assert stamps["runtime.up"] == pytest.approx(stamps["server.sent"], abs=3600)
    assert stamps["runtime.up"] - stamps["worker.down"] == pytest.approx(0.002, abs=1e-5)


async def test_a_pong_corrects_what_a_late_hello_said_of_the_browsers_clock() -> None:
    bridge = a_bridge()
    recorder = a_recorder(bridge)
    result = about_call("tool.result", "", seq=0, value=1, stamps={"runtime.up": YEAR_2096})
    async with running(bridge) as connect:
        socket = connect()
        said = hello(a_document())
        said["params"]["time"] = YEAR_2096 - 86_400_000  # a day before
        socket.say(said)
        ping = (await socket.hear("ping"))["params"]
        socket.say({"method": "pong", "params": {"time": YEAR_2096, "pingTime": ping["time"]}})
        await call_and_answer(bridge, socket, replace(CALL, recorder=recorder), result)
    stamps = recorder.succeed(1, instant(bridge.clock)).stamps
    assert stamps["runtime.up"] == pytest.approx(stamps["server.sent"], abs=3600)


async def test_an_answer_that_says_nothing_of_time_is_stamped_when_it_came() -> None:
    bridge = a_bridge()
    recorder = a_recorder(bridge)
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        await call_and_answer(bridge, socket, replace(CALL, recorder=recorder), RESULT)
    assert "server.received" in recorder.succeed(1, instant(bridge.clock)).stamps


async def test_a_recorded_call_knows_its_tab_and_how_many_reports_the_page_dropped() -> None:
    bridge = a_bridge()
    recorder = a_recorder(bridge)
    progress = about_call("tool.progress", "", reports=[{"seq": 9}])
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        call = replace(CALL, recorder=recorder)
        await call_and_answer(bridge, socket, call, progress, RESULT)
    record = recorder.succeed(1, instant(bridge.clock))
    assert (record.tab_id, record.url) == (TAB, "https://chat.example/")
    assert record.dropped == 9


async def test_dropped_reports_of_a_call_that_nobody_records_are_harmless() -> None:
    progress = about_call("tool.progress", "", reports=[{"seq": 9}])
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        answer = await call_and_answer(bridge, socket, CALL, progress, RESULT)
    assert answer == {"sent": True}


async def test_a_recorded_call_knows_that_the_service_worker_was_restarted_meanwhile() -> None:
    bridge, caller = a_bridge(), Caller()
    recorder = a_recorder(bridge)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(caller, bridge, replace(CALL, recorder=recorder))
        tasks.start_soon(Caller(), bridge, CALL)  # but nobody records
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        socket.hang_up()
        while bridge.connected:
            await bridge.changed().wait()
        again = connect()
        said = hello(a_document(call_id))
        said["params"]["bootId"] = "another life"
        again.say(said)
        await again.hear("tool.dispatch")  # of the other call
        again.say(about_call("tool.result", call_id, seq=0, value=1))
        assert await caller.outcome() == 1
        tasks.cancel_scope.cancel()
    record = recorder.succeed(1, instant(bridge.clock))
    assert [link.boot_id for link in record.links] == ["b", None, "another life"]
    assert record.service_worker_restarts == 1


async def test_a_plugins_log_goes_to_a_logger_of_its_name(caplog: pytest.LogCaptureFixture) -> None:
    async with running(a_bridge()) as connect:
        socket = await greeted(connect, a_document())
        entry = {"level": "warning", "message": "slow %s\n\r", "time": 0}
        params = {"documentId": "d" * 32, "plugin": "chat", "entries": [entry]}
        for dropped in (0, 9):
            socket.say({"method": "plugin.log", "params": {**params, "dropped": dropped}})
        socket.say({"method": "ping", "params": {"time": 0}})
        await socket.hear("pong")
    said = [text for name, _, text in caplog.record_tuples if name == "opentabs_py.plugin.chat"]
    last = "chat: dropped 9 log records, which came too fast"
    assert said == ["chat: slow %s\n\\u000d", "chat: slow %s\n\\u000d", last]


async def test_what_a_plugin_logs_names_its_source_to_the_log_and_to_its_callers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Logs(CallObserver):
        def on_log(self, entries: Sequence[LogEntry], /) -> None:
            logged.extend(entry.message for entry in entries)

    logged: list[str] = []
    bridge, caller = a_bridge(), Caller()
    built = f"chrome-extension://{'a' * 32}/adapters/chat-0a1b.js:1:2"
    bridge.read_positions = lambda text: text.replace(built, "src/send.ts:3:4")
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(caller, bridge, replace(CALL, observers=(Logs(),)))
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        entry = {"level": "error", "message": f"failed\n    at {built}", "time": 0}
        params = {"documentId": "d" * 32, "plugin": "chat", "entries": [entry], "dropped": 0}
        socket.say({"method": "plugin.log", "params": params})
        socket.say(about_call("tool.result", call_id, seq=0, value=1))
        assert await caller.outcome() == 1
    read = "failed\n    at src/send.ts:3:4"
    assert logged == [read]
    assert f"chat: {read}" in caplog.messages
