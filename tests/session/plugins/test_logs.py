"""What plugins log in their pages, in the log of this process."""

import logging
import threading

import anyio
import pytest

from opentabs_py.core.protocol import LogParams
from opentabs_py.session.plugins.logs import PluginLogs
from tests.fakes import a_bridge, a_document, greeted, running
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

BUILT = f"chrome-extension://{'a' * 32}/adapters/chat-0a1b.js:1:2"
ENTRY = {"level": "warning", "message": "slow %s", "time": 0}
PARAMS = {"documentId": "d" * 32, "plugin": "chat", "dropped": 0}


def logged(*messages: str) -> LogParams:
    entries = [{**ENTRY, "message": each} for each in messages]
    return LogParams.model_validate({**PARAMS, "entries": entries}, by_alias=True)


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for name, _, text in caplog.record_tuples if name == "opentabs_py.plugin.chat"]


async def test_a_plugins_log_goes_to_a_logger_of_its_name(caplog: pytest.LogCaptureFixture) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        bridge.on_log = PluginLogs(tasks, str).handle
        socket = await greeted(connect, a_document())
        for dropped in (0, 9):
            params = {**PARAMS, "entries": [ENTRY], "dropped": dropped}
            socket.say({"method": "plugin.log", "params": params})
        socket.say({"method": "ping", "params": {"time": 0}})
        await socket.hear("pong")
    last = "chat: dropped 9 log records, which came too fast"
    assert lines_of(caplog) == ["chat: slow %s", "chat: slow %s", last]


async def test_what_is_not_seen_is_escaped_and_lines_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with anyio.create_task_group() as tasks:
        PluginLogs(tasks, str).handle(logged("failed\nError: \x1b[2J\r\u202e"))
    assert lines_of(caplog) == ["chat: failed\nError: \\u001b[2J\\u000d\\u202e"]


async def test_positions_in_the_adapter_are_those_in_the_source_and_the_order_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with anyio.create_task_group() as tasks:
        logs = PluginLogs(tasks, lambda text: text.replace(BUILT, "src/send.ts:3:4"))
        logs.handle(logged("before", f"at {BUILT}", "between"))
        logs.handle(logged(f"at {BUILT}", "after"))
        assert lines_of(caplog) == ["chat: before"]
    found = "chat: at src/send.ts:3:4"
    assert lines_of(caplog) == ["chat: before", found, "chat: between", found, "chat: after"]


async def test_what_waits_for_its_positions_is_logged_when_the_session_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    begun, ended = threading.Event(), threading.Event()

    def read_positions(text: str) -> str:
        begun.set()
        assert ended.wait(PATIENT)
        return text

    async with anyio.create_task_group() as tasks:
        PluginLogs(tasks, read_positions).handle(logged(f"at {BUILT}", "after"))
        assert await anyio.to_thread.run_sync(begun.wait, PATIENT)
        tasks.cancel_scope.cancel()
        ended.set()
    assert lines_of(caplog) == [f"chat: at {BUILT}", "chat: after"]
