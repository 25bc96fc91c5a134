"""What a Python tool returns, through every way to call it."""

import asyncio
import json
import re
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from decimal import Decimal
from typing import Any, cast

import anyio
import pytest
from mcp import types

from opentabs_py import ToolError, tool
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.client import Client
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallTimeoutError, ToolFailedError
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.session import Server
from tests.python_tools.ways import MODES, Way
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def test_a_sync_tool_runs_in_a_thread_of_its_own_and_its_reports_come_in_order(
    way: Way,
) -> None:
    outcome = await way.call("export", {"query": "x"})
    assert outcome.progress == [(n, 3, f"page {n}") for n in (1, 2, 3)]
    assert outcome.result.structured_content == {"query": "x", "thread": "opentabs tool"}
    assert json.loads(outcome.text) == outcome.result.structured_content


async def test_an_async_tool_returns_a_dataclass_as_an_object(way: Way) -> None:
    outcome = await way.call("search", {"names": ["a", "b"]})
    assert outcome.result.structured_content == {"count": 2, "names": ["a", "b"]}
    assert outcome.messages == ["2 names"]


async def test_content_of_mcp_arrives_as_it_is(way: Way) -> None:
    image = types.ImageContent(data="AAAA", mime_type="image/png")
    assert (await way.call("picture")).result.content == [image]
    assert (await way.call("both")).result.content == [types.TextContent(text="A picture:"), image]


async def test_a_result_of_mcp_that_is_an_error_fails_the_call(way: Way) -> None:
    result = (await way.call("refuse_with_a_result")).result
    assert result.is_error
    detail = (result.meta or {})["opentabs/error"]
    assert (detail["code"], detail["message"]) == ("TOOL_ERROR", "The disk is full.\nFree 2 GB.")
    assert result.content[1:] == [types.ImageContent(data="AAAA", mime_type="image/png")]


async def test_a_partial_is_called_with_what_it_has_bound(way: Way) -> None:
    assert (await way.call("hello", {"name": "Ada"})).text == "Hello, Ada!"
    refused = await way.call("hello", {"name": "Ada", "greeting": "Bye"})
    assert refused.result.is_error
    assert "greeting" in refused.text


async def test_what_a_client_sends_for_an_injected_parameter_is_ignored(way: Way) -> None:
    outcome = await way.call("export", {"query": "x", "progress": "mine", "pages": 1})
    assert not outcome.result.is_error
    assert outcome.messages == ["page 1"]
    told = await way.call("callback_async", {"query": "x", "progress_callback": 7})
    assert told.text == "x"


async def test_arguments_that_break_the_schema_are_refused_with_where_and_why(way: Way) -> None:
    outcome = await way.call("search", {"names": ["a", 1]})
    assert outcome.result.is_error
    assert "code=INVALID_ARGUMENTS" in outcome.text
    assert 'at names[1]: 1 is not of type "string"' in outcome.text


async def test_a_tool_error_reaches_the_caller_with_all_its_fields(way: Way) -> None:
    outcome = await way.call("refuse")
    assert outcome.result.is_error
    line = "[ERROR code=AUTH category=auth retryable=true] Sign in first."
    assert outcome.text.splitlines()[0] == line


async def test_text_that_is_not_unicode_arrives_with_replacement_characters(way: Way) -> None:
    name = "old\ufffd.txt"
    outcome = await way.call("name_file")
    assert outcome.messages == [name]
    assert json.loads(outcome.text) == {"files": [name, {name: 1}]}
    assert (await way.call("name_in_stream")).messages == [name]
    refused = await way.call("refuse_file")
    assert refused.text.splitlines()[0] == (
        f"[ERROR code={name} retryable=false] There is no {name}."
    )


async def test_content_that_is_not_unicode_is_an_error_of_the_tool(way: Way) -> None:
    outcome = await way.call("name_file_in_content")
    assert "code=RESULT_NOT_SERIALIZABLE" in outcome.text


async def test_the_fields_of_a_tool_error_are_sent_as_text(way: Way) -> None:
    outcome = await way.call("refuse_with_other_types")
    assert outcome.text.splitlines()[0] == "[ERROR code=404 retryable=false] no such file"


async def test_a_tool_error_that_says_nothing_is_still_one_of_the_tool() -> None:
    nothing: Any = None

    def refuse() -> None:
        raise ToolError(nothing, code=nothing)

    result = await Server(tools=[refuse]).call_tool("refuse")
    text = result.content[0].model_dump()["text"]
    line = "[ERROR code=TOOL_ERROR retryable=false] The tool did not say why."
    assert text.splitlines()[0] == line


@pytest.mark.parametrize(
    ("retryable", "after", "sent"),
    [
        (True, Decimal("0.0015"), {"retryable": True, "retryAfterMs": 1.5}),
        (True, 1e306, {"retryable": True, "retryAfterMs": None}),
        (True, 10**400, {"retryable": True, "retryAfterMs": None}),
        ("no", None, {"retryable": True, "retryAfterMs": None}),
        (object(), 2, {"retryable": True, "retryAfterMs": 2000}),
    ],
    ids=["decimal", "large float", "large integer", "text", "object"],
)
async def test_the_advice_of_a_tool_error_is_sent_as_a_boolean_and_a_number(
    retryable: Any, after: Any, sent: dict[str, Any]
) -> None:
    def refuse() -> None:
        raise ToolError("Later.", retryable=retryable, retry_after=after)

    async with Server(tools=[refuse]) as server, Client(server.mcp_url) as client:
        result = await client.call_tool("refuse")
    fields = (result.meta or {})["opentabs/error"]
    assert {name: fields[name] for name in sent} == sent
    assert "retryable=true" in result.content[0].model_dump()["text"]


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("crash", "ValueError"),
        ("leave", "SystemExit"),
        ("give_up", "GivenUp"),
        ("interrupt", "KeyboardInterrupt"),
        ("close", "GeneratorExit"),
        ("close_async", "GeneratorExit"),
    ],
)
async def test_any_other_exception_reveals_only_its_type_to_the_caller(
    way: Way, tool: str, kind: str
) -> None:
    outcome = await way.call(tool)
    assert outcome.result.is_error
    assert f"{tool} failed: {kind}. See the server's log for details." in outcome.text
    assert "secret" not in str(outcome.result)


@pytest.mark.parametrize("tool", ["close_generator", "close_generator_async"])
async def test_a_generator_that_raises_generator_exit_has_failed(way: Way, tool: str) -> None:
    outcome = await way.call(tool)
    assert outcome.result.is_error
    assert f"{tool} failed: GeneratorExit." in outcome.texts[0]
    assert outcome.texts[1:] == ["before"]


async def test_a_tool_that_leaves_a_scope_open_ends_only_its_call(way: Way) -> None:
    for _ in range(2):
        assert (await way.call("leave_a_task_group_open")).text == "kept"
        outcome = await way.call("close_generator_in_scope")
        assert "code=RESULT_NOT_SERIALIZABLE" in outcome.texts[0]
        assert outcome.texts[1:] == ["before"]


async def test_a_scope_that_a_tool_leaves_open_is_logged_with_the_tools_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def leave() -> str:
        anyio.CancelScope().__enter__()
        return "kept"

    run = PythonTool(leave, ToolHost(AlarmClock())).prepare(ToolCall({}, Limits()))
    assert await run() == "kept"
    assert "The tool leave has left a cancel scope open" in caplog.text


async def test_the_error_of_a_tool_that_timed_out_says_where_it_waited(
    caplog: pytest.LogCaptureFixture,
) -> None:
    released = threading.Event()

    async def in_coroutine() -> None:
        await anyio.sleep_forever()

    async def in_async_generator() -> AsyncGenerator[int]:
        yield 1
        await anyio.sleep_forever()

    def in_thread() -> None:
        released.wait()

    def in_generator() -> Generator[int]:
        yield 1
        released.wait()

    clock = AlarmClock()
    for function in (in_coroutine, in_async_generator, in_thread, in_generator):
        run = PythonTool(function, ToolHost(clock)).prepare(ToolCall({}, Limits(idle=0.1)))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.run)
            with pytest.raises(CallTimeoutError) as caught:
                await run()
            tasks.cancel_scope.cancel()
        stack = (caught.value.detail.stack or "").splitlines()
        assert stack[0] == "It waited here:"
        assert f"The tool {function.__name__} timed out. {stack[0]}\n{stack[1]}\n" in caplog.text
        assert stack[1].endswith(f", in {function.__name__}")
        assert stack[2].strip() in ("await anyio.sleep_forever()", "released.wait()")
    released.set()
    for thread in threading.enumerate():
        if thread.name == "opentabs tool":
            await anyio.to_thread.run_sync(thread.join)


async def test_the_stack_of_a_tools_exception_begins_in_the_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def crash() -> None:
        raise ValueError

    with pytest.raises(ToolFailedError) as caught:
        await PythonTool(crash, ToolHost(AlarmClock())).prepare(ToolCall({}, Limits()))()
    for stack in (caught.value.detail.stack or "", caplog.text):
        assert re.search(r"\(most recent call last\):\n.*, in crash\n +raise ValueError\n", stack)


async def test_a_call_whose_coroutine_is_closed_is_not_taken_for_the_tools_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    has_begun = anyio.Event()

    async def wait() -> None:
        has_begun.set()
        await anyio.sleep_forever()

    run = PythonTool(wait, ToolHost(AlarmClock())).prepare(ToolCall({}, Limits()))
    call = cast("Coroutine[Any, Any, Any]", run())
    task = asyncio.create_task(call)
    await has_begun.wait()
    with suppress(RuntimeError, ValueError):  # of what is bound to the task
        call.close()
    task.cancel()
    with suppress(RuntimeError, asyncio.CancelledError):
        await task
    assert "wait failed" not in caplog.text


async def test_a_coroutine_that_raises_keyboard_interrupt_does_not_end_the_server(
    stdio_2026: Way,
) -> None:
    for _ in range(2):
        outcome = await stdio_2026.call("interrupt_async")
        assert "interrupt_async failed: KeyboardInterrupt." in outcome.text


async def test_a_tool_that_awaits_what_was_cancelled_fails_and_its_caller_goes_on() -> None:
    async def waits() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    result = await Server(tools=[waits]).call_tool("waits")
    assert result.is_error
    assert "waits failed: CancelledError." in result.content[0].model_dump()["text"]


async def cancel_itself(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await anyio.sleep_forever()


async def cancel_itself_later(task: asyncio.Task[Any]) -> None:
    asyncio.get_running_loop().call_soon(task.cancel)
    await anyio.sleep_forever()


async def cancel_itself_at_last(task: asyncio.Task[Any]) -> str:
    task.cancel()
    return "it returned"


@pytest.mark.parametrize(
    ("cancel", "text"),
    [
        (cancel_itself, "cancel failed: CancelledError."),
        (cancel_itself_later, "cancel failed: CancelledError."),
        (cancel_itself_at_last, "it returned"),
    ],
)
@pytest.mark.parametrize("mode", MODES.values())
async def test_a_tool_that_cancels_its_own_task_ends_only_its_call(
    cancel: Callable[[asyncio.Task[Any]], Awaitable[str]], text: str, mode: str
) -> None:
    other = anyio.Event()

    @tool(name="cancel")
    async def cancels() -> str:
        task = asyncio.current_task()
        assert task is not None
        return await cancel(task)

    async def wait() -> str:
        await other.wait()
        return "still there"

    async with (
        Server(tools=[cancels, wait]) as server,
        Client(server.mcp_url, mode=mode) as client,
        anyio.create_task_group() as tasks,
    ):

        async def call_other() -> None:
            result = await client.call_tool("wait")
            assert result.content[0].model_dump()["text"] == "still there"

        tasks.start_soon(call_other)
        with anyio.fail_after(PATIENT):
            for _ in range(2):
                result = await client.call_tool("cancel")
                assert text in result.content[0].model_dump()["text"]
            other.set()


async def test_a_caller_in_the_process_can_cancel_its_task() -> None:
    async def wait() -> None:
        await anyio.sleep_forever()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await Server(tools=[wait]).call_tool("wait")


async def test_a_caller_in_the_process_can_cancel_its_task_when_the_tool_has_just_ended() -> None:
    async def end() -> None:
        asyncio.get_running_loop().call_soon(task.cancel)

    run = PythonTool(end, ToolHost(AlarmClock())).prepare(ToolCall({}, Limits()))
    task = asyncio.create_task(cast("Coroutine[Any, Any, Any]", run()))
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_ctrl_c_during_a_coroutine_is_not_taken_for_the_tools_failure() -> None:
    async def spin() -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        call = ToolCall({}, Limits())
        with pytest.raises(KeyboardInterrupt):
            await PythonTool(spin, ToolHost(AlarmClock())).prepare(call)()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("tool", "messages"),
    [("nest", ["before", "page 1", "page 2"]), ("nest_in_thread", ["page 1"])],
)
async def test_the_reports_of_a_tool_that_a_tool_calls_are_its_own_too(
    way: Way, tool: str, messages: list[str]
) -> None:
    outcome = await way.call(tool)
    assert outcome.messages == messages
    assert json.loads(outcome.text)["query"] == "inner"


@pytest.mark.parametrize(
    ("tool", "arguments", "which"),
    [("hangs", {}, "idle"), ("hangs_in_thread", {"note": "h"}, "ceiling")],
)
async def test_its_own_timers_end_a_tool_and_the_error_says_which_did(
    way: Way, tool: str, arguments: dict[str, str], which: str
) -> None:
    outcome = await way.call(tool, arguments)
    assert outcome.result.is_error
    assert f"code=TIMEOUT_{which.upper()}" in outcome.text
    assert "0.3 s" in outcome.text
    assert "page" not in outcome.text
    assert f"(@tool({which}=...))" in outcome.text


async def test_a_thread_that_outlives_its_call_notices_that_the_call_has_ended(way: Way) -> None:
    note = f"thread {way.name}"
    await way.call("hangs_in_thread", {"note": note})
    with anyio.fail_after(PATIENT):
        while (await way.call("was_closed", {"note": note})).text != "true":
            await anyio.lowlevel.checkpoint()
