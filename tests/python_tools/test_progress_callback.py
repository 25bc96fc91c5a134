"""The injected progress callback: for the application, and never for the model."""

import asyncio
from contextvars import Context
from typing import Any

import anyio
import pytest
from mcp.client import Client

from opentabs_py.session.session import Server
from tests.python_tools import samples
from tests.python_tools.ways import Way
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
Seen = list[tuple[str, str, Any]]


def a_server(*tools: Any) -> Server:
    return Server(tools=tools)


async def test_its_arguments_appear_in_no_result(way: Way) -> None:
    outcome = await way.call("callback_async", {"query": "the answer"})
    assert outcome.text == "the answer"
    assert outcome.result.structured_content is None
    assert "Step" not in str(outcome.result)


async def test_a_client_that_asked_for_progress_receives_the_message_or_the_status(
    way: Way,
) -> None:
    assert (await way.call("callback_async", {"query": "x"})).messages == ["Step 1", "done"]


async def test_a_sync_tool_calls_it_from_its_thread_without_awaiting(way: Way) -> None:
    assert (await way.call("callback_sync", {"query": "x"})).messages == ["Step 1"]


def test_its_calls_in_a_thread_arrive_in_a_program_of_asyncio_too() -> None:
    async def main() -> list[tuple[float, float | None, str | None]]:
        seen: list[tuple[float, float | None, str | None]] = []

        async def see(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        async with a_server(samples.callback_sync) as server, Client(server.mcp_url) as client:
            await client.call_tool("callback_sync", {"query": "x"}, progress_callback=see)
        return seen

    # AnyIO's plugin for pytest may have told this context which event loop runs.
    assert Context().run(asyncio.run, main()) == [(1, None, "Step 1")]


async def test_yields_are_for_the_model_and_the_callback_is_for_the_ui(way: Way) -> None:
    outcome = await way.call("both_channels")
    assert outcome.texts == ['{"found":1}', '{"found":2}']
    assert outcome.messages == ["step 1", "step 2"]


async def test_it_is_in_no_declaration_and_in_no_required_parameters() -> None:
    async with a_server(samples.callback_async, samples.callback_sync, samples.export) as server:
        schemas = {tool.name: tool.input_schema for tool in server.tools}
    assert schemas["callback_async"]["properties"].keys() == {"query"}
    assert schemas["callback_sync"]["properties"].keys() == {"query"}
    assert schemas["export"]["properties"].keys() == {"query", "pages"}
    assert schemas["export"]["required"] == ["query"]


async def test_a_handler_receives_any_value_unchanged_and_in_order_with_the_yields() -> None:
    server = a_server(samples.callback_async, samples.both_channels)
    seen: Seen = []

    async def handler(tool_name: str, function_call_id: str, data: Any) -> None:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        seen.append((tool_name, function_call_id, data))

    server.on_tool_progress = handler
    await server.call_tool("callback_async", {"query": "x"}, call_id="c1")
    await server.call_tool("both_channels", call_id="c2")
    assert seen == [
        ("callback_async", "c1", {"status": "running", "message": "Step 1"}),
        ("callback_async", "c1", ["any", "value"]),
        ("callback_async", "c1", {"status": "done"}),
        ("both_channels", "c2", {"message": "step 1"}),
        ("both_channels", "c2", {"found": 1}),
        ("both_channels", "c2", {"message": "step 2"}),
        ("both_channels", "c2", {"found": 2}),
    ]


async def test_a_handler_receives_the_fields_that_it_accepts_by_name() -> None:
    server = a_server(samples.export, samples.both_channels)
    seen: list[dict[str, Any]] = []
    kinds: list[tuple[int, str]] = []

    @server.on_tool_progress
    def everything(_tool: str, _call: str, _data: Any, **extra: Any) -> None:
        seen.append(extra)

    @server.on_tool_progress
    async def some(_tool: str, _call: str, _data: Any, seq: int, *, kind: str) -> None:
        kinds.append((seq, kind))

    await server.call_tool("export", {"query": "x", "pages": 1})
    await server.call_tool("both_channels")
    assert seen[0] == {
        "seq": 0, "message": "page 1", "progress": 1.0, "total": 1.0, "kind": "report",
    }  # fmt: skip
    assert kinds == [(0, "report"), (0, "callback"), (1, "yield"), (2, "callback"), (3, "yield")]


async def test_two_calls_of_one_tool_at_once_never_mix() -> None:
    server = a_server(samples.export)
    seen: dict[str, list[Any]] = {"a": [], "b": []}
    server.on_tool_progress(lambda _tool, call, data: seen[call].append(data["message"]))
    async with anyio.create_task_group() as tasks:
        for call_id in seen:
            arguments = {"query": call_id, "pages": 200}

            async def call(call_id: str = call_id, arguments: Any = arguments) -> None:
                await server.call_tool("export", arguments, call_id=call_id)

            tasks.start_soon(call)
    assert seen == {call_id: [f"page {n}" for n in range(1, 201)] for call_id in ("a", "b")}


async def test_nothing_is_reported_of_a_run_that_has_ended() -> None:
    kept: list[Any] = []

    async def leaves_its_callback(progress_callback: Any = None) -> str:
        kept.append(progress_callback)
        await progress_callback("during")
        return "done"

    server = a_server(leaves_its_callback)
    seen: list[Any] = []
    server.on_tool_progress(lambda _tool, _call, data: seen.append(data))
    await server.call_tool("leaves_its_callback")
    await kept[0]("after")
    await server.call_tool("leaves_its_callback")
    assert seen == ["during", "during"]


async def test_it_can_be_awaited_in_a_task_which_can_be_cancelled() -> None:
    async def works(progress_callback: Any) -> None:
        await asyncio.create_task(progress_callback("in a task"))
        await asyncio.wait_for(progress_callback("with a timeout"), PATIENT)
        task = asyncio.create_task(progress_callback("cancelled"))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    server = a_server(works)
    seen: list[Any] = []
    server.on_tool_progress(lambda _tool, _call, data: seen.append(data))
    assert not (await server.call_tool("works")).is_error
    assert seen == ["in a task", "with a timeout", "cancelled"]


async def test_without_a_handler_the_callback_does_nothing() -> None:
    result = await a_server(samples.callback_async).call_tool("callback_async", {"query": "x"})
    assert not result.is_error


async def test_a_handler_that_raises_or_hangs_delays_neither_the_tool_nor_other_handlers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = a_server(samples.export)
    seen: list[str] = []
    hangs = anyio.Event()

    @server.on_tool_progress
    async def hanging(*_: Any) -> None:
        await hangs.wait()

    @server.on_tool_progress
    async def raising(*_: Any) -> None:
        raise ValueError("broken")

    server.on_tool_progress(lambda _tool, _call, data: seen.append(data["message"]))
    with anyio.fail_after(PATIENT):
        result = await server.call_tool("export", {"query": "x"})
    assert not result.is_error
    assert seen == ["page 1", "page 2", "page 3"]
    assert [record.message for record in caplog.records].count(
        f"The progress handler {raising.__qualname__!r} failed"
    ) == 1
    hangs.set()


async def test_a_handler_that_fails_again_after_it_succeeded_is_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = a_server(samples.export)

    @server.on_tool_progress
    def handler(_tool: str, _call: str, data: Any) -> None:
        if data["message"] != "page 2":
            raise ValueError(data["message"])

    await server.call_tool("export", {"query": "x"})

    errors = [record.exc_info[1] for record in caplog.records if record.exc_info is not None]
    assert [str(error) for error in errors] == ["page 1", "page 3"]


async def test_an_assigned_handler_replaces_the_previous_one() -> None:
    server = a_server(samples.export)
    seen: list[str] = []
    server.on_tool_progress = lambda *_: seen.append("first")
    server.on_tool_progress = lambda *_: seen.append("second")
    await server.call_tool("export", {"query": "x", "pages": 1})
    server.on_tool_progress = None
    await server.call_tool("export", {"query": "x", "pages": 1})
    assert seen == ["second"]
