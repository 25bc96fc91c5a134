"""The bridge, with a hand-written extension at the other end of its socket."""

import json
from collections.abc import Sequence

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.observer import CallObserver, ProgressObserver
from opentabs_py.core.chunks import WHOLE, split
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import CallTimeoutError, ChainError, ToolFailedError
from tests.bridge.bridged import CALL, RESULT, TARGET, Caller, call_and_answer
from tests.fakes import (
    OTHER_PAGE,
    PAGE,
    TAB,
    FakeSocket,
    a_bridge,
    a_document,
    about_call,
    greeted,
    running,
    tabs_changed,
)
from tests.python_tools.held_clock import HeldClock
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def test_a_call_is_dispatched_and_its_value_returned_and_acknowledged() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}
        settled = await socket.hear("tool.settled")
        (dispatch,) = [m for m in socket.heard if m.get("method") == "tool.dispatch"]
        assert settled["params"]["callIds"] == [dispatch["params"]["callId"]]
        assert dispatch["params"]["input"] == {"text": "hi"}
        assert (dispatch["params"]["plugin"], dispatch["params"]["tool"]) == ("chat", "send")
        assert "tool.announce" not in [message.get("method") for message in socket.heard]


async def test_calls_one_after_the_other_are_each_acknowledged() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        for _ in range(2):
            await call_and_answer(bridge, socket, CALL, RESULT)
            settled = await socket.hear("tool.settled")
            assert len(settled["params"]["callIds"]) == 1


async def test_a_call_that_is_sent_in_parts_is_announced_first() -> None:
    bridge = a_bridge()
    long = ToolCall({"text": "x" * WHOLE}, Limits())
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Caller(), bridge, long)
            announced = await socket.hear("tool.announce")
            parts = [await socket.hear_frame() for _ in range(5)]
            tasks.cancel_scope.cancel()
    assert all(frame.startswith(f"~{PAGE}") for frame in parts)
    dispatched = json.loads("".join(frame[42:] for frame in parts))
    params = dispatched["params"]
    assert announced["params"] == {"documentId": PAGE, "callId": params["callId"]}


async def test_the_error_of_a_tool_is_raised_with_its_fields() -> None:
    bridge = a_bridge()
    error = about_call("tool.error", "", seq=0, error={"code": "NOPE", "message": "No."})
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        with pytest.raises(ExceptionGroup) as caught:
            await call_and_answer(bridge, socket, CALL, error)
        (raised,) = caught.value.exceptions
        assert isinstance(raised, ToolFailedError)
        assert raised.detail.code == "NOPE"


class BrokenObserver(CallObserver):
    def on_reports(self, _reports: Sequence[ProgressReport], /) -> None:
        raise RuntimeError("broken")


async def test_an_observer_that_raises_ends_neither_the_call_nor_the_connection() -> None:
    bridge = a_bridge()
    call = ToolCall({}, Limits(), (BrokenObserver(),))
    said = [about_call("tool.progress", "", reports=[{"seq": 0}]), RESULT]
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        assert await call_and_answer(bridge, socket, call, *said) == {"sent": True}
        assert bridge.connected


async def test_every_report_arrives_in_order_before_the_value() -> None:
    bridge, reports = a_bridge(), list[ProgressReport]()
    call = ToolCall({}, Limits(), (ProgressObserver(reports.append),))
    said = [
        about_call("tool.progress", "", reports=[{"seq": 0, "progress": 1}, {"seq": 1}]),
        about_call("tool.progress", "", reports=[{"seq": 2, "message": "three"}]),
        about_call("tool.result", "", seq=3, value=None),
    ]
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        assert await call_and_answer(bridge, socket, call, *said) is None
    assert reports == [
        ProgressReport(0, 1.0), ProgressReport(1), ProgressReport(2, message="three"),
    ]  # fmt: skip


async def test_a_call_that_waits_for_a_link_relaunches_the_browser_that_has_exited() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.hang_up()  # the socket closes first
        caller = Caller()

        async def relaunch() -> None:
            bridge.handle_browser()
            again = await greeted(connect, a_document())
            tasks.start_soon(answer, again)

        async def answer(again: FakeSocket) -> None:
            dispatched = (await again.hear("tool.dispatch"))["params"]
            again.say(about_call("tool.result", dispatched["callId"], seq=0, value=1))

        async with anyio.create_task_group() as tasks:
            while bridge.connected:
                await bridge.changed().wait()
            tasks.start_soon(caller, bridge, CALL)
            await until_all_wait()
            bridge.handle_browser_gone()  # then Playwright says so
            bridge.relaunch_browser = relaunch
            assert await caller.outcome() == 1


async def test_a_call_relaunches_a_browser_that_has_exited_before_its_socket_closes() -> None:
    bridge = a_bridge()
    caller = Caller()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        await greeted(connect, a_document())

        async def answer(again: FakeSocket) -> None:
            dispatched = (await again.hear("tool.dispatch"))["params"]
            again.say(about_call("tool.result", dispatched["callId"], seq=0, value=1))

        async def relaunch() -> None:
            bridge.handle_browser()
            tasks.start_soon(answer, await greeted(connect, a_document()))

        bridge.handle_browser_gone()
        bridge.relaunch_browser = relaunch
        tasks.start_soon(caller, bridge, CALL)
        assert await caller.outcome() == 1


async def test_a_call_fails_at_once_once_the_browser_has_exited_even_if_its_socket_is_open() -> (
    None
):
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        bridge.handle_browser_gone()
        with pytest.raises(ChainError, match="not connected"), anyio.fail_after(PATIENT):
            await bridge.call(TARGET, "send", CALL)
        socket.hang_up()
        await until_all_wait()
        assert not bridge.connected


async def test_a_browser_that_exits_each_time_is_not_relaunched_for_ever() -> None:
    bridge = a_bridge()
    launches: list[int] = []

    async def relaunch() -> None:
        await anyio.lowlevel.checkpoint()
        launches.append(1)

    bridge.handle_browser_gone()
    bridge.relaunch_browser = relaunch
    with pytest.raises(ChainError), anyio.fail_after(PATIENT):
        await bridge.call(TARGET, "send", CALL)
    assert len(launches) == 2


async def test_an_extension_that_stops_reading_does_not_outlast_the_timers() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        await until_all_wait()  # nothing is being sent
        socket.is_stalled = True
        for _ in range(2):  # the second waits behind the first
            with pytest.raises(CallTimeoutError), anyio.fail_after(PATIENT):
                await bridge.call(TARGET, "send", ToolCall({}, Limits(idle=0.01)))


async def test_what_an_extension_did_not_read_is_sent_once_it_reads_again() -> None:
    clock, caller = HeldClock(), Caller()
    bridge = Bridge(secret="s" * 64, origin="chrome-extension://x", clock=clock)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        await until_all_wait()  # nothing is being sent
        socket.is_stalled = True
        tasks.start_soon(caller, bridge, CALL)
        await until_all_wait()
        socket.is_stalled = False
        clock.move(CALL.limits.idle)
        with pytest.raises(CallTimeoutError):
            await caller.outcome()
        await socket.hear("tool.cancel")


async def test_a_silent_call_times_out_and_its_page_is_notified() -> None:
    bridge = a_bridge()
    call = ToolCall({}, Limits(idle=0.01))
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        with pytest.raises(CallTimeoutError), anyio.fail_after(PATIENT):
            await bridge.call(TARGET, "send", call)
        assert "idle" in (await socket.hear("tool.cancel"))["params"]["reason"]


async def test_a_call_without_a_tab_asks_the_extension_once_and_fails_at_once() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        query = await socket.hear("tabs.query")
        socket.say({"id": query["id"], "result": {"tabIds": [TAB], "documents": []}})
        with pytest.raises(ChainError, match=r"Open https://chat\.example") as caught:
            await caller.outcome()
        assert caught.value.detail.code == "TAB_NOT_FOUND"


async def test_a_tab_that_the_extension_names_when_asked_is_used() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        query = await socket.hear("tabs.query")
        socket.say({"id": query["id"], "result": {"tabIds": [TAB], "documents": [a_document()]}})
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        socket.say(about_call("tool.result", call_id, seq=0, value=1))
        assert await caller.outcome() == 1


async def test_a_call_waits_for_a_document_that_is_getting_ready_and_then_runs() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document(readiness="pending"))
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        socket.say({"method": "ping", "params": {"time": 0}})
        await socket.hear("pong")
        assert not [m for m in socket.heard if m.get("method") == "tool.dispatch"]
        socket.say(tabs_changed(a_document()))
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        socket.say(about_call("tool.result", call_id, seq=0, value="ran"))
        assert await caller.outcome() == "ran"


async def test_a_cancellation_comes_in_time_until_the_call_is_sent_to_a_page() -> None:
    bridge, call = a_bridge(), ToolCall({}, Limits())
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document(readiness="pending"))
        tasks.start_soon(Caller(), bridge, call)
        await until_all_wait()
        while_waiting = call.cancellation.comes_in_time
        socket.say(tabs_changed(a_document()))
        await socket.hear("tool.dispatch")
        assert (while_waiting, call.cancellation.comes_in_time) == (True, False)
        tasks.cancel_scope.cancel()


async def test_a_call_waits_for_a_tab_that_is_loading_and_then_runs() -> None:
    bridge, caller = a_bridge(), Caller()
    loading = tabs_changed()
    loading["params"]["loading"] = [
        {"tabId": TAB, "url": "https://chat.example/", "plugins": ["chat"]}
    ]
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        socket.say(loading)
        await until_all_wait()
        tasks.start_soon(caller, bridge, CALL)
        await until_all_wait()
        socket.say(tabs_changed(a_document()))
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        assert "tabs.query" not in [message.get("method") for message in socket.heard]
        socket.say(about_call("tool.result", call_id, seq=0, value="ran"))
        assert await caller.outcome() == "ran"


async def test_without_an_extension_a_call_fails_at_once() -> None:
    with pytest.raises(ChainError) as caught, anyio.fail_after(PATIENT):
        await a_bridge().call(TARGET, "send", CALL)
    assert caught.value.detail.code == "EXTENSION_NOT_CONNECTED"


@pytest.mark.parametrize("reason", ["the client cancelled it", "cancelled by the user"])
async def test_cancelling_the_coroutine_stops_the_tool(reason: str) -> None:
    bridge, call = a_bridge(), ToolCall({}, Limits())
    if reason != "the client cancelled it":  # which is the default
        call.cancellation.reason = reason
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge.call, TARGET, "send", call)
            dispatched = await socket.hear("tool.dispatch")
            tasks.cancel_scope.cancel()
        cancel = await socket.hear("tool.cancel")
        assert cancel["params"]["callId"] == dispatched["params"]["callId"]
        assert cancel["params"]["reason"] == reason
        assert bridge.calls.dispatch.pending == 0


async def test_a_call_that_arrives_after_its_page_has_left_is_made_in_the_next_document() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        sync = await socket.hear("plugins.sync")
        socket.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        lost = {"callId": call_id, "reason": "not_delivered"}
        socket.say({"method": "tool.lost", "params": lost})
        query = await socket.hear("tabs.query")
        there = [a_document(documentId=OTHER_PAGE)]
        socket.say({"id": query["id"], "result": {"tabIds": [TAB], "documents": there}})
        again = (await socket.hear("tool.dispatch"))["params"]
        assert again["documentId"] == OTHER_PAGE
        socket.say(about_call("tool.result", again["callId"], seq=0, value=1))
        assert await caller.outcome() == 1


async def test_the_ceiling_of_a_call_counts_from_the_first_page_that_it_was_sent_to() -> None:
    clock, caller = HeldClock(), Caller()
    bridge = Bridge(secret="s" * 64, origin="chrome-extension://x", clock=clock)
    limits = Limits(idle=10, ceiling=10)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        sync = await socket.hear("plugins.sync")
        socket.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        tasks.start_soon(caller, bridge, ToolCall({}, limits))
        first = (await socket.hear("tool.dispatch"))["params"]
        clock.move(6)
        lost = {"callId": first["callId"], "reason": "not_delivered"}
        socket.say({"method": "tool.lost", "params": lost})
        query = await socket.hear("tabs.query")
        there = [a_document(documentId=OTHER_PAGE)]
        socket.say({"id": query["id"], "result": {"tabIds": [TAB], "documents": there}})
        await socket.hear("tool.dispatch")
        clock.move(4)
        with pytest.raises(CallTimeoutError, match="ceiling"):
            await caller.outcome()


async def test_what_has_arrived_of_a_long_result_is_dropped_when_its_page_goes() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        result = about_call("tool.result", "c" * 32, seq=0, value="x" * 2_000_000)
        *parts, last = split(json.dumps({"jsonrpc": "2.0", **result}), PAGE, 1)
        for part in parts:
            socket.say(part)
        socket.say(tabs_changed(a_document(documentId=OTHER_PAGE)))
        socket.say(last)
        await socket.hear("error")  # the last part alone is not a message


async def test_a_limit_of_results_does_not_refuse_reports() -> None:
    bridge = a_bridge()
    bridge.message_limit = 1024
    report = {"progress": 1, "message": "x" * 4096}
    reports = [{"seq": seq, **report} for seq in range(30)]
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        progress = about_call("tool.progress", "", reports=reports)
        await call_and_answer(
            bridge, socket, CALL, progress, {**RESULT, "params": {**RESULT["params"], "seq": 30}}
        )
        assert (await socket.hear("tool.settled"))["params"]["callIds"]
        assert [m["params"]["seq"] for m in socket.heard if m.get("method") == "tool.ack"] == [29]


@pytest.mark.parametrize("goes", [True, False])
async def test_removing_the_extension_says_whether_it_went(
    goes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not goes:
        monkeypatch.setattr("opentabs_py.bridge.bridge.REMOVED_WITHIN", 0.01)
    bridge = a_bridge()
    went: list[bool] = []

    async def remove() -> None:
        went.append(await bridge.remove_extension("the server stops"))

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        tasks.start_soon(remove)
        asked = await socket.hear("extension.remove")
        assert asked["params"]["reason"] == "the server stops"
        if goes:
            socket.hang_up()
    assert went == [goes]
