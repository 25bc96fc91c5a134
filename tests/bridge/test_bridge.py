"""The bridge, with a hand-written extension at the other end of its socket."""

import json
from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.link import MOST_SILENT
from opentabs_py.calling.observer import CallObserver, ProgressObserver, instant
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.chunks import WHOLE
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs import Target
from opentabs_py.core.trace.recorder import CallRecorder
from opentabs_py.errors import CallError, CallTimeoutError, ChainError, ToolFailedError
from tests.fakes import (
    OTHER_PAGE,
    PAGE,
    TAB,
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
from tests.python_tools.held_clock import HeldClock
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

TARGET = Target("chat", ("https://chat.example/*",))
CALL = ToolCall({"text": "hi"}, Limits())


class Caller:
    """A call in the background: its outcome is available once `done` is set."""

    def __init__(self) -> None:
        self.value: object = None
        self.error: Exception | None = None
        self.done = anyio.Event()

    async def __call__(self, bridge: Bridge, call: ToolCall) -> None:
        try:
            self.value = await bridge.call(TARGET, "send", call)
        except CallError as error:
            self.error = error
        self.done.set()

    async def outcome(self) -> object:
        with anyio.fail_after(5):
            await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.value


async def call_and_answer(
    bridge: Bridge, socket: FakeSocket, call: ToolCall, *said: Json
) -> object:
    """Make a call, send these messages about it, and return its value."""

    async def answer() -> None:
        params = (await socket.hear("tool.dispatch"))["params"]
        for message in said:
            params_said = {"documentId": params["documentId"], **message["params"]}
            params_said["callId"] = params["callId"]
            socket.say({**message, "params": params_said})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        with anyio.fail_after(5):
            return await bridge.call(TARGET, "send", call)
    raise AssertionError


RESULT = about_call("tool.result", "", seq=0, value={"sent": True})


# --- connecting ---


async def test_a_hello_is_answered_with_the_limits_and_followed_by_the_plugins() -> None:
    bridge = a_bridge()
    await bridge.sync_plugins([a_spec("chat")])
    async with running(bridge) as connect:
        socket = connect()
        socket.say(hello())
        answer = await socket.hear("result")
        assert answer["id"] == 1
        assert answer["result"]["messageLimit"] == 64 * 1024 * 1024
        sync = await socket.hear("plugins.sync")
        assert [plugin["name"] for plugin in sync["params"]["plugins"]] == ["chat"]
        assert bridge.connected


def a_spec(name: str) -> PluginSpec:
    return PluginSpec(
        name=name, version="1", matches=["https://chat.example/*"], exclude_matches=[],
        file=f"adapters/{name}.js", config={},
    )  # fmt: skip


async def test_a_new_list_of_plugins_is_waited_for_until_it_is_in_the_pages() -> None:
    bridge = a_bridge()
    order: list[str] = []
    async with running(bridge) as connect:
        socket = await greeted(connect)
        hello_sync = await socket.hear("plugins.sync")

        async def sync() -> None:
            await bridge.sync_plugins([a_spec("chat")])
            order.append("synced")

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sync)
                asked = await socket.hear("plugins.sync")
                assert [each["name"] for each in asked["params"]["plugins"]] == ["chat"]
                # The response about the older list says nothing about this one.
                problem = {"plugin": "chat", "tabId": 0, "message": "no"}
                result = {"injected": 0, "problems": [problem]}
                socket.say({"id": hello_sync["id"], "result": result})
                await until_all_wait()
                assert not bridge.plugin_problems
                order.append("answered")
                socket.say({"id": asked["id"], "result": {"injected": 1, "problems": []}})
    assert order == ["answered", "synced"]


async def test_a_new_list_of_plugins_does_not_wait_for_a_link_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.plugin_sync.SYNC_WITHIN", PATIENT)
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bridge.sync_plugins, [a_spec("chat")])
                await socket.hear("plugins.sync")
                socket.hang_up()
        assert bridge.plugins == ["chat"]
        assert not caplog.records
        again = await greeted(connect)
        asked = await again.hear("plugins.sync")
        assert [each["name"] for each in asked["params"]["plugins"]] == ["chat"]


async def test_a_list_that_reloads_the_extension_is_waited_for_until_it_is_back_with_it() -> None:
    bridge = a_bridge()
    order: list[str] = []
    injected = {"injected": 1, "problems": []}

    async def sync() -> None:
        await bridge.sync_plugins([a_spec("chat")], reloads=True)
        order.append("synced")

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        tasks.start_soon(sync)
        asked = await socket.hear("plugins.sync")
        socket.say({"id": asked["id"], "result": injected})
        await until_all_wait()
        order.append("reloads")
        socket.hang_up()
        again = connect()
        said = hello()
        said["params"]["bootId"] = "another life"
        again.say(said)
        asked = await again.hear("plugins.sync")
        await until_all_wait()
        order.append("is back")
        again.say({"id": asked["id"], "result": injected})
    assert order == ["reloads", "is back", "synced"]


async def test_a_new_list_of_plugins_does_not_wait_for_ever_for_a_page_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.plugin_sync.SYNC_WITHIN", 0.01)
    bridge = a_bridge()
    async with running(bridge) as connect:
        await greeted(connect)
        with anyio.fail_after(5):
            await bridge.sync_plugins([a_spec("chat")])


async def test_an_extension_that_answers_no_ping_is_disconnected_with_what_it_did_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.link.KEEPALIVE", 0.01)
    bridge = a_bridge()
    async with running(bridge) as connect:
        (await greeted(connect)).is_stalled = True
        with anyio.fail_after(5):
            while bridge.connected:
                await bridge.changed().wait()


async def test_one_ping_without_an_answer_does_not_end_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.link.KEEPALIVE", 0.01)
    async with running(a_bridge()) as connect:
        socket = await greeted(connect)
        for _ in range(MOST_SILENT):
            await socket.hear("ping")


async def test_an_extension_that_answers_pings_stays_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.link.KEEPALIVE", 0.5)
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        for _ in range(MOST_SILENT + 2):
            ping = await socket.hear("ping")
            pong = {"time": 0, "pingTime": ping["params"]["time"]}
            socket.say({"method": "pong", "params": pong})
        assert bridge.connected


async def test_a_plugins_problem_is_logged_once_and_again_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge = a_bridge()

    async def sync(socket: FakeSocket, message: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge.sync_plugins, [a_spec("chat")])
            asked = await socket.hear("plugins.sync")
            problem = {"plugin": "chat", "tabId": 0, "message": message}
            socket.say({"id": asked["id"], "result": {"injected": 0, "problems": [problem]}})

    async with running(bridge) as connect:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        with anyio.fail_after(5):
            for message in ("no", "no", "not so"):
                await sync(socket, message)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["Plugin chat: no", "Plugin chat: not so"]


async def test_nothing_is_accepted_before_the_hello() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = connect()
        socket.say(tabs_changed(a_document()))
        refusal = await socket.hear("error")
        assert refusal["error"]["message"] == "send hello first"
        socket.say(hello())
        await socket.hear("result")
        assert bridge.tabs.serving("chat") == []


async def test_a_connection_that_says_no_hello_is_closed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.reception.HELLO_WITHIN", 0.01)
    async with running(a_bridge()) as connect:
        socket = connect()
        await socket.hear_the_end()
        assert socket.closed == (4003, "no hello within 0.01 s")


@pytest.mark.parametrize(
    "change", [{}, {"added": True}, {"browserId": None}, {"documents": [{"of": "another shape"}]}]
)
async def test_an_extension_of_another_version_is_closed_with_advice(change: Json) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = connect()
        said = hello(version=99)
        said["params"] |= change
        socket.say(said)
        await socket.hear_the_end()
        assert socket.closed is not None
        code, reason = socket.closed
        assert code == 4001
        assert "protocol 99, wanted 3" in reason
        assert "update the extension" in reason
        assert not bridge.connected


async def test_a_connection_that_is_refused_ends_once_the_reason_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.link.CLOSE_WITHIN", PATIENT)
    socket = FakeSocket()
    socket.say(hello(version=99))
    with anyio.fail_after(5):
        await a_bridge().serve(socket)
    socket.dispose()
    assert socket.closed is not None


async def test_a_newer_connection_replaces_the_older_one_with_a_reason() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = await greeted(connect, a_document())
        await older.hear_the_end()
        assert older.closed == (4002, "replaced by a newer connection")
        value = await call_and_answer(bridge, newer, CALL, RESULT)
        assert value == {"sent": True}


async def test_messages_of_a_replaced_connection_are_ignored() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = connect()
        newer.say(hello(a_document()))
        older.say(tabs_changed())
        older.say(tabs_changed())
        await newer.hear("result")
        await older.hear_the_end()
        assert [document.tab_id for document in bridge.tabs.serving("chat")] == [TAB]


async def test_the_end_of_a_replaced_connection_leaves_the_newer_one_up() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = await greeted(connect, a_document())
        await older.hear_the_end()
        older.hang_up()
        assert await call_and_answer(bridge, newer, CALL, RESULT) == {"sent": True}


async def test_a_second_hello_of_another_version_is_refused_and_the_connection_continues() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.say(hello(version=99))
        refusal = await socket.hear("error")
        assert "already sent" in refusal["error"]["message"]
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


async def test_a_second_hello_is_refused_and_the_connection_continues() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.say(hello())
        refusal = await socket.hear("error")
        assert (refusal["id"], "already sent" in refusal["error"]["message"]) == (1, True)
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


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


async def test_waiting_for_the_extension_ends_when_it_has_all_plugins() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        sync = await socket.hear("plugins.sync")
        problem = {"plugin": "chat", "tabId": TAB, "message": "no"}
        socket.say({"id": sync["id"], "result": {"injected": 0, "problems": [problem]}})
        with anyio.fail_after(5):
            await bridge.wait_connected()
        assert [problem.plugin for problem in bridge.plugin_problems] == ["chat"]


@pytest.mark.parametrize(
    ("offered", "accepted"),
    [
        (["opentabs", "opentabs.secret." + "s" * 64], True),
        (["opentabs", "opentabs.secret." + "s" * 63], False),
        (["opentabs", "opentabs.secret."], False),
        (["opentabs"], False),
        (["s" * 64], False),
        (["opentabs.secret.ünsafe"], False),
        ([], False),
    ],
)
def test_only_a_connection_with_the_secret_is_accepted(offered: list[str], accepted: bool) -> None:
    assert (a_bridge().admit(offered) is not None) is accepted


# --- calls ---


async def test_a_call_is_dispatched_and_its_value_returned_and_acknowledged() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}
        receipt = await socket.hear("tool.settled")
        (dispatch,) = [m for m in socket.heard if m.get("method") == "tool.dispatch"]
        assert receipt["params"]["callIds"] == [dispatch["params"]["callId"]]
        assert dispatch["params"]["input"] == {"text": "hi"}
        assert (dispatch["params"]["plugin"], dispatch["params"]["tool"]) == ("chat", "send")
        assert "tool.announce" not in [message.get("method") for message in socket.heard]


async def test_calls_one_after_the_other_are_each_acknowledged() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        for _ in range(2):
            await call_and_answer(bridge, socket, CALL, RESULT)
            receipt = await socket.hear("tool.settled")
            assert len(receipt["params"]["callIds"]) == 1


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
            bridge.bring_browser = relaunch
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
        bridge.bring_browser = relaunch
        tasks.start_soon(caller, bridge, CALL)
        assert await caller.outcome() == 1


async def test_a_call_fails_at_once_once_the_browser_has_exited_even_if_its_socket_is_open() -> (
    None
):
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        bridge.handle_browser_gone()
        with pytest.raises(ChainError, match="not connected"), anyio.fail_after(5):
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
    bridge.bring_browser = relaunch
    with pytest.raises(ChainError), anyio.fail_after(5):
        await bridge.call(TARGET, "send", CALL)
    assert len(launches) == 2


async def test_an_extension_that_stops_reading_does_not_outlast_the_timers() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        await until_all_wait()  # nothing is being sent
        socket.is_stalled = True
        for _ in range(2):  # the second waits behind the first
            with pytest.raises(CallTimeoutError), anyio.fail_after(5):
                await bridge.call(TARGET, "send", ToolCall({}, Limits(idle=0.01)))


async def test_what_an_extension_did_not_read_is_sent_once_it_reads_again() -> None:
    clock, caller = HeldClock(), Caller()
    bridge = Bridge(secret="s" * 64, origin="chrome-extension://x", version="1", clock=clock)
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
        with pytest.raises(CallTimeoutError), anyio.fail_after(5):
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
    with pytest.raises(ChainError) as caught, anyio.fail_after(5):
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


# --- the link is lost and restored ---


async def test_a_result_that_was_not_acknowledged_is_accepted_after_a_reconnect() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        first = await greeted(connect, a_document())
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        call_id = (await first.hear("tool.dispatch"))["params"]["callId"]
        first.hang_up()
        second = await greeted(connect, a_document(call_id))
        second.say(about_call("tool.result", call_id, seq=0, value="kept"))
        assert await caller.outcome() == "kept"
        assert (await second.hear("tool.settled"))["params"]["callIds"] == [call_id]
        assert not [m for m in second.heard if m.get("method") == "tool.dispatch"]


async def test_a_call_that_the_page_has_not_heard_of_is_sent_again_after_a_reconnect() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        first = await greeted(connect, a_document())
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        call_id = (await first.hear("tool.dispatch"))["params"]["callId"]
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
    bridge, caller = a_bridge(), Caller()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        first = await greeted(connect, a_document())
        tasks.start_soon(caller, bridge, CALL)
        await first.hear("tool.dispatch")
        first.hang_up()
        second = connect()
        said = hello()
        said["params"] |= news
        second.say(said)
        with pytest.raises(ChainError) as caught:
            await caller.outcome()
        assert caught.value.detail.code == code


async def test_a_call_whose_document_vanishes_ends_at_once() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        await socket.hear("tool.dispatch")
        socket.say(tabs_changed(a_document(documentId=OTHER_PAGE)))  # the tab has moved on
        with pytest.raises(ChainError, match="may have run"):
            await caller.outcome()


async def test_a_call_whose_tab_vanishes_ends_as_closed() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        caller = Caller()
        tasks.start_soon(caller, bridge, CALL)
        await socket.hear("tool.dispatch")
        socket.say(tabs_changed(tabs=[]))
        with pytest.raises(ChainError) as caught:
            await caller.outcome()
        assert caught.value.detail.code == "TAB_CLOSED"


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


# --- traces and logs ---


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
            with anyio.fail_after(5):
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
    assert record.worker_restarts == 1


async def test_a_plugins_log_goes_to_a_logger_of_its_name(caplog: pytest.LogCaptureFixture) -> None:
    async with running(a_bridge()) as connect:
        socket = await greeted(connect, a_document())
        entry = {"level": "warning", "message": "slow %s", "time": 0}
        params = {"documentId": "d" * 32, "plugin": "chat", "entries": [entry]}
        for dropped in (0, 9):
            socket.say({"method": "plugin.log", "params": {**params, "dropped": dropped}})
        socket.say({"method": "ping", "params": {"time": 0}})
        await socket.hear("pong")
    said = [text for name, _, text in caplog.record_tuples if name == "opentabs_py.plugin.chat"]
    last = "chat: dropped 9 log records, which came too fast"
    assert said == ["chat: slow %s", "chat: slow %s", last]
