"""What is said of tools whose calls have timed out, once they end, or if they do not."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import ModuleType

import anyio
import pytest

from opentabs_py.bridge import timed_out as timed_out_calls
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallTimeoutError
from opentabs_py.session.tools import stopped_tools
from opentabs_py.session.tools.stopped_tools import StoppedTools
from tests.bridge.bridged import Caller
from tests.fakes import FakeSocket, Json, a_bridge, a_document, about_call, greeted, running
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

FRAMES = "    at handle (adapter.js:1:2)"
READ = "    at handle (src/tools/send.ts:3:4)\n\n> 3 |  await sleep(9);"
QUICK = Limits(idle=0.01, ceiling=1.0)


async def read_stack(plugin: str, stack: str) -> str:
    return stack.replace(FRAMES, READ) if plugin == "chat" else stack


class TimedOutCalls:
    """Calls that time out, and what is said about them."""

    def __init__(self, socket: FakeSocket, stopped: StoppedTools, call: ToolCall) -> None:
        self.socket = socket
        self.stopped = stopped
        self.call = call
        self.reason = ""
        self.id = ""

    def say(self, **how: object) -> None:
        self.socket.say(about_call("tool.stopped", self.id, **how))

    async def text(self) -> str | None:
        return await self.stopped.wait(self.call.call_id, PATIENT)


@asynccontextmanager
async def timed_out() -> AsyncGenerator[TimedOutCalls]:
    """Let a call time out, and yield once its page has been asked to stop the tool."""
    bridge, caller, call = a_bridge(), Caller(), ToolCall({}, QUICK)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        stopped = StoppedTools(tasks, read_stack)
        stopped.watch(bridge.calls.timed_out)
        ended = TimedOutCalls(await greeted(connect, a_document()), stopped, call)
        tasks.start_soon(caller, bridge, call)
        cancel: Json = (await ended.socket.hear("tool.cancel"))["params"]
        with pytest.raises(CallTimeoutError):
            await caller.outcome()
        ended.id, ended.reason = cancel["callId"], cancel["reason"]
        yield ended
        tasks.cancel_scope.cancel()


async def test_the_place_where_a_tool_waited_is_read_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with timed_out() as ended:
        ended.say(started=True, stack=f"AbortError: {ended.reason}\n{FRAMES}")
        text = f"It waited here:\n{READ}"
        await ended.stopped.wait_logged()
        assert await ended.text() == text
    said = ("opentabs_py.plugin.chat", logging.WARNING, f"The tool send timed out. {text}")
    assert caplog.record_tuples.count(said) == 1


async def test_what_is_logged_is_explained_of_calls_that_timed_out_only() -> None:
    async with timed_out() as ended:
        assert await ended.stopped.wait_to_explain("another") == ""
        ended.say(started=True, stack=f"AbortError: {ended.reason}\n{FRAMES}")
        call_id = ended.call.call_id
        assert await ended.stopped.wait_to_explain(call_id) == f"It waited here:\n{READ}"
        await ended.stopped.wait_logged()
        assert await ended.stopped.wait_to_explain(call_id) == f"It waited here:\n{READ}"
    async with timed_out() as ended:
        said = await ended.stopped.wait_to_explain(ended.call.call_id)
        assert said.startswith("It has not stopped")


async def test_an_error_that_is_not_the_reason_is_shown() -> None:
    async with timed_out() as ended:
        ended.say(started=True, stack=f"Error: no element\n{FRAMES}")
        assert await ended.text() == f"It waited here:\nError: no element\n{READ}"


async def test_a_stack_without_a_place_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    for stack in ("", "AbortError: {reason}", "AbortError: {reason}\n\n"):
        async with timed_out() as ended:
            ended.say(started=True, stack=stack.format(reason=ended.reason))
            assert await ended.text() == ""
    assert "The tool send timed out" not in caplog.text


async def test_a_tool_that_returned_is_advised_to_stop() -> None:
    async with timed_out() as ended:
        ended.say(started=True)
        text = await ended.text()
        assert text is not None
        assert text.startswith("It returned ")
        assert text.endswith(" later. Let it stop when context.signal fires.")


async def test_an_end_that_comes_late_counts_as_one_after_the_timeout() -> None:
    error = {"code": "GONE", "message": "Gone.", "stack": f"Error: gone\n{FRAMES}"}
    for method, how, text in (
        ("tool.result", {"value": 1}, "It returned "),
        ("tool.error", {"error": error}, f"It waited here:\nError: gone\n{READ}"),
    ):
        async with timed_out() as ended:
            ended.socket.say(about_call("tool.progress", ended.id, reports=[]))
            ended.socket.say(about_call(method, ended.id, seq=0, **how))
            assert (await ended.text() or "").startswith(text)


async def test_a_tool_that_was_not_started_is_distinguished_from_one_that_hangs() -> None:
    async with timed_out() as ended:
        ended.say(started=False)
        assert await ended.text() == "It was not started, because isReady() had not answered."


async def test_a_tool_that_runs_on_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopped_tools, "STOPS_WITHIN", 0.0)
    async with timed_out() as ended:
        await ended.stopped.wait_logged()
        assert await ended.stopped.wait(ended.call.call_id, 0.0) is None
    assert "The tool send timed out. It has not stopped: " in caplog.text


@pytest.mark.parametrize("module", [stopped_tools, timed_out_calls])
async def test_only_the_latest_are_remembered(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 1)
    bridge, first, last = a_bridge(), ToolCall({}, QUICK), ToolCall({}, QUICK)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        stopped = StoppedTools(tasks, read_stack)
        stopped.watch(bridge.calls.timed_out)
        socket = await greeted(connect, a_document())
        ids = ["f" * 32]
        for call in (first, last):
            await Caller()(bridge, call)
            ids.append((await socket.hear("tool.cancel"))["params"]["callId"])
        for call_id in ids:
            socket.say(about_call("tool.stopped", call_id, started=False))
        assert await stopped.wait(last.call_id, PATIENT)
        assert await stopped.wait(first.call_id, 0.0) is None
        tasks.cancel_scope.cancel()
