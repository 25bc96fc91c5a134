"""Generators: what they yield is for the model, while they run and at the end."""

import json
import threading
import traceback
from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp.types import CallToolResult, ImageContent, TextContent

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.tool import Output
from opentabs_py.core.limits import Limits
from opentabs_py.errors import ToolError, ToolFailedError
from opentabs_py.python_tools.progress import Progress
from opentabs_py.python_tools.python_tool import PythonTool
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.session.session import Server
from tests.python_tools import samples, ways
from tests.python_tools.ways import Way
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
TEXT = TextContent(text="text")


async def test_yields_are_content_in_order_and_the_last_object_is_structured_too(way: Way) -> None:
    outcome = await way.call("yields_async", {"count": 2})
    assert outcome.texts == ["text 0", '{"n":0}', "text 1", '{"n":1}', "end"]
    assert outcome.result.structured_content == {"n": 1}
    assert outcome.progress == []


async def test_a_generator_can_yield_and_return_all_that_a_tool_can_return() -> None:
    image = ImageContent(data="eA==", mime_type="image/png")

    def draw() -> Generator[Any, None, Any]:
        yield [TEXT, "and", image]
        yield CallToolResult(content=[TEXT], structured_content={"n": 1}, _meta={"a": 1})
        return CallToolResult(content=[image], _meta={"b": 2})

    result = await Server(tools=[draw]).call_tool("draw")
    assert result.content == [TEXT, TextContent(text="and"), image, TEXT, image]
    assert result.structured_content == {"n": 1}
    assert result.meta == {"a": 1, "b": 2}


@pytest.mark.parametrize("ends", [False, True])
async def test_a_generator_fails_with_the_failed_result_that_it_yields_or_returns(
    ends: bool,
) -> None:
    failed = CallToolResult(content=[TextContent(text="Out of ink.")], is_error=True)
    closed: list[bool] = []

    def draw() -> Generator[Any, None, Any]:
        try:
            yield TEXT
            if not ends:
                yield failed
            return failed
        finally:
            closed.append(True)

    result = await Server(tools=[draw]).call_tool("draw")
    assert result.is_error
    assert "Out of ink." in result.content[0].model_dump()["text"]
    assert result.content[1:] == [TEXT]
    assert closed == [True]


async def test_a_sync_generator_runs_in_one_thread(way: Way) -> None:
    outcome = await way.call("yields_sync", {"count": 3})
    yielded = [json.loads(text) for text in outcome.texts]
    assert [each["n"] for each in yielded] == [0, 1, 2]
    assert len({each["thread"] for each in yielded}) == 1


async def test_an_exception_keeps_what_was_yielded_and_says_what_failed(way: Way) -> None:
    outcome = await way.call("yields_then_fails")
    error, *rest = outcome.texts
    assert outcome.result.is_error
    assert error.startswith("[ERROR code=GONE retryable=false] The third is missing.")
    assert rest == ["first", "second"]


async def test_the_limit_on_a_result_counts_all_that_is_yielded() -> None:
    image = ImageContent(data="A" * 900, mime_type="image/png")

    async def pictures() -> AsyncGenerator[Any]:
        yield image
        yield "x" * 900
        yield image

    tool = PythonTool(pictures, ToolHost(AlarmClock(), message_limit=2_500))
    with pytest.raises(ToolFailedError, match="the limit is 2,500") as caught:
        await tool.prepare(ToolCall({}, Limits()))()
    assert caught.value.detail.code == "RESULT_TOO_LARGE"
    assert caught.value.partial == Output((image, TextContent(text="x" * 900)))


async def test_a_timeout_keeps_what_was_yielded_and_closes_the_generator(way: Way) -> None:
    outcome = await way.call("yields_then_hangs", {"note": f"generator {way.name}"})
    error, *rest = outcome.texts
    assert "code=TIMEOUT_IDLE" in error
    assert rest == ["first"]
    assert (await way.call("was_closed", {"note": f"generator {way.name}"})).text == "true"


async def test_each_yield_reaches_the_handlers_before_the_next() -> None:
    order: list[str] = []

    async def narrated() -> AsyncGenerator[str]:
        for number in (1, 2):
            order.append(f"yield {number}")
            yield f"text {number}"
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()

    server = Server(tools=[narrated])
    server.on_tool_progress(lambda _tool, _call, data, kind: order.append(f"{kind}: {data}"))
    await server.call_tool("narrated")
    assert order == ["yield 1", "yield: text 1", "yield 2", "yield: text 2"]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_call_that_is_cancelled_closes_its_generator(is_async: bool) -> None:
    closed, began = threading.Event(), anyio.Event()

    async def forever_async() -> AsyncGenerator[int]:
        try:
            yield 1
            await anyio.sleep_forever()
        finally:
            closed.set()

    def forever_sync() -> Generator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    server = Server(tools=[forever_async if is_async else forever_sync])
    server.on_tool_progress(lambda *_: began.set())
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.call_tool, "forever_async" if is_async else "forever_sync")
            await began.wait()
            tasks.cancel_scope.cancel()
    assert closed.wait(PATIENT)


@pytest.mark.parametrize(
    "which", ["stdio 2026", "stdio initialize", "HTTP 2026", "HTTP initialize"]
)
async def test_a_client_that_gives_up_closes_the_generator(which: str, http: str) -> None:
    note = f"given up {which}"
    target: Any = ways.STDIO if which.startswith("stdio") else http
    async with ways.connected(which, target) as way:
        assert way.client is not None
        with anyio.CancelScope() as scope:
            await way.client.call_tool(
                "yields_then_waits", {"note": note}, progress_callback=lambda *_: scope.cancel()
            )
        with anyio.fail_after(PATIENT):
            while (await way.call("was_closed", {"note": note})).text != "true":
                await anyio.lowlevel.checkpoint()


async def test_a_value_that_is_not_serializable_fails_the_call_with_the_reason() -> None:
    async def gives_an_object() -> object:
        return object()

    def gives_nan() -> dict[str, float]:
        return {"a": float("nan")}

    server = Server(tools=[gives_an_object, gives_nan])
    failed = await server.call_tool("gives_an_object")
    assert failed.is_error
    assert "RESULT_NOT_SERIALIZABLE" in str(failed.content)
    assert (await server.call_tool("gives_nan")).structured_content == {"a": None}


async def test_a_generator_that_yields_what_json_cannot_say_is_closed_before_the_call_ends() -> (
    None
):
    closed: list[str] = []

    async def gives() -> AsyncGenerator[object]:
        try:
            yield "first"
            yield object()
        finally:
            await anyio.lowlevel.checkpoint()
            closed.append("closed")

    result = await Server(tools=[gives]).call_tool("gives")
    assert closed == ["closed"]
    assert "RESULT_NOT_SERIALIZABLE" in str(result.content[0])
    assert "Its earlier output follows." in str(result.content[0])
    assert "first" in str(result.content[1])


async def test_a_tool_that_fails_with_another_passes_on_what_that_one_yielded() -> None:
    async def export() -> AsyncGenerator[str]:
        yield "page 1"
        raise ToolError("the disk is full")

    async def export_all(progress: Progress) -> None:
        await progress.call("export")

    result = await Server(tools=[export, export_all]).call_tool("export_all")

    assert result.meta is not None
    assert result.meta["opentabs/error"]["message"] == "the disk is full"
    first, *others = result.content
    assert isinstance(first, TextContent)
    assert first.text.startswith("[ERROR code=TOOL_ERROR retryable=false] the disk is full\n")
    assert first.text.endswith("```\nIts earlier output follows.")
    assert others == [TextContent(text="page 1")]


class GoneError(ToolError):
    def __init__(self, what: str, *, since: int) -> None:
        super().__init__(f"{what} is gone.", "GONE")
        self.since = since


async def test_an_error_that_a_tool_raises_repeatedly_stays_as_it_was() -> None:
    gone = GoneError("It", since=2020)
    before = gone.detail

    async def export() -> AsyncGenerator[str]:
        yield "page 1"
        raise gone from ValueError("why")

    failures: list[GoneError] = []
    async with Server(tools=[export]) as server:
        for _ in range(2):
            with pytest.raises(GoneError) as caught:
                await server.call("export")
            failures.append(caught.value)

    assert [each.detail for each in failures] == [before] * 2
    assert (gone.detail, gone.partial) == (before, None)
    last = failures[-1]
    assert (str(last), last.since, repr(last.__cause__)) == (str(gone), 2020, "ValueError('why')")
    assert "export" in [each.name for each in traceback.extract_tb(last.__traceback__)]


def test_a_tool_stays_the_function_that_it_was() -> None:
    assert [each["n"] for each in samples.yields_sync(2)] == [0, 1]
    assert samples.hello(name="Ada") == "Hello, Ada!"
