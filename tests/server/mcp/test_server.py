"""What an MCP client sees: tools, results, errors and progress, in both eras of the protocol."""

import json
from itertools import pairwise

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import ErrorDetail, ToolFailedError
from opentabs_py.server.mcp.results import ERROR_META_KEY, to_error_result, to_result
from opentabs_py.server.mcp.server import create_mcp_server
from tests.fakes import FakeBridge, Json, a_manifest, a_tool, tool_calls_of
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """The eras: a stateless one without a handshake, and the one that begins with initialize."""
    return str(request.param)


CLIENT = {"name": "test", "version": "1"}
STRICT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def a_client(bridge: FakeBridge, mode: str, *tools: Json) -> Client:
    calls = tool_calls_of(bridge.pages)
    calls.registry.set_plugins([a_manifest(*(tools or [a_tool("send")]))])
    server = create_mcp_server(calls)
    return Client(server, mode="legacy" if mode == "legacy" else "auto")


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def test_tools_are_listed_with_title_description_and_schemas(mode: str) -> None:
    array = a_tool("read", output_schema={"type": "array"})
    async with a_client(FakeBridge(), mode, a_tool("send"), array) as client:
        read, send = (await client.list_tools()).tools
    assert (send.name, send.title, send.description) == ("chat_send", "Send", "Does send.")
    assert send.input_schema["type"] == "object"
    assert "tabId" in send.input_schema["properties"]
    assert send.output_schema == {"type": "object"}
    assert read.output_schema is None  # an array at the root would make a client refuse the list


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ({"a": [1, None]}, '{"a":[1,null]}', {"a": [1, None]}),
        ("plain text", "plain text", None),
        ([1, 2], "[1,2]", None),
        (None, "null", None),
        (1.5, "1.5", None),
    ],
)
async def test_a_value_is_sent_as_text_and_as_structure_when_it_is_an_object(
    mode: str, value: object, text: str, structured: Json | None
) -> None:
    tool = a_tool("send", output_schema={})
    async with a_client(FakeBridge(value=value), mode, tool) as client:
        result = await client.call_tool("chat_send", {})
    assert (text_of(result), result.structured_content) == (text, structured)
    assert not result.is_error


async def test_a_value_that_breaks_the_promise_of_an_object_is_an_error_and_is_not_lost(
    mode: str,
) -> None:
    tool = a_tool("send", output_schema={"type": "object"})
    async with a_client(FakeBridge(value=[5, 6]), mode, tool) as client:
        result = await client.call_tool("chat_send", {})
    error, value = result.content
    assert isinstance(error, types.TextContent)
    assert isinstance(value, types.TextContent)
    assert result.is_error
    assert "code=RESULT_BREAKS_SCHEMA" in error.text
    assert value.text == "[5,6]"


async def test_a_tools_error_has_its_fields_in_a_line_and_as_json(mode: str) -> None:
    detail = ErrorDetail("SLOW_DOWN", "Too fast.", "rate_limit", True, 1.5)
    async with a_client(FakeBridge(error=ToolFailedError(detail)), mode) as client:
        result = await client.call_tool("chat_send", {})
    assert result.is_error
    line, fence, *block, end = text_of(result).split("\n")
    assert line == (
        "[ERROR code=SLOW_DOWN category=rate_limit retryable=true retryAfterMs=1500] Too fast."
    )
    assert (fence, end) == ("```json", "```")
    fields = {
        "code": "SLOW_DOWN", "message": "Too fast.", "category": "rate_limit",
        "retryable": True, "retryAfterMs": 1500.0,
    }  # fmt: skip
    assert json.loads("\n".join(block)) == fields
    assert (result.meta or {})[ERROR_META_KEY] == fields


async def test_an_error_without_category_or_delay_does_not_speak_of_them(mode: str) -> None:
    error = ToolFailedError(ErrorDetail("INTERNAL_ERROR", "x is not y"))
    async with a_client(FakeBridge(error=error), mode) as client:
        text = text_of(await client.call_tool("chat_send", {}))
    assert text.startswith("[ERROR code=INTERNAL_ERROR retryable=false] x is not y\n")
    assert "category" not in text
    assert "retryAfterMs" not in text


async def test_an_unknown_tool_and_wrong_arguments_are_errors_an_agent_can_read(mode: str) -> None:
    async with a_client(FakeBridge(), mode, a_tool("send", input_schema=STRICT)) as client:
        unknown = await client.call_tool("chat_sent", {})
        invalid = await client.call_tool("chat_send", {"n": "one"})
    assert (unknown.is_error, invalid.is_error) == (True, True)
    assert text_of(unknown).startswith("[ERROR code=UNKNOWN_TOOL ")
    assert "did you mean 'chat_send'?" in text_of(unknown)
    assert text_of(invalid).startswith("[ERROR code=INVALID_ARGUMENTS category=validation ")
    assert 'at n: "one" is not of type "integer"' in text_of(invalid)


async def test_an_internal_error_does_not_reveal_its_details_to_the_client(mode: str) -> None:
    async with a_client(FakeBridge(error=RuntimeError("the secret")), mode) as client:
        result = await client.call_tool("chat_send", {})
    assert result.is_error
    assert "secret" not in str(result)
    assert text_of(result).startswith("[ERROR code=INTERNAL_ERROR ")


# --- progress ---


Came = list[tuple[float, float | None, str | None]]


async def progress_of(mode: str, bridge: FakeBridge, *, last: str) -> Came:
    """Call with a progress token; return the reports, in any order, up to the report `last`."""
    came: Came = []
    is_over = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        came.append((progress, total, message))
        if message == last:
            is_over.set()

    async with a_client(bridge, mode) as client:
        with anyio.fail_after(PATIENT):
            await client.call_tool("chat_send", {}, progress_callback=note)
            await is_over.wait()
            await client.call_tool("chat_send", {})  # everything else was sent before this
    return sorted(came)


async def test_reports_reach_a_client_that_asked_for_them_as_they_were_made(mode: str) -> None:
    reports = [ProgressReport(n, n + 1.0, 3.0, f"page {n + 1}") for n in range(3)]
    came = await progress_of(mode, FakeBridge(value={}, reports=reports), last="page 3")
    assert came == [(1.0, 3.0, "page 1"), (2.0, 3.0, "page 2"), (3.0, 3.0, "page 3")]


async def test_of_a_flood_of_reports_a_few_are_sent_and_the_last_among_them(mode: str) -> None:
    reports = [ProgressReport(n, float(n // 7), None, f"report {n}") for n in range(500)]
    came = await progress_of(mode, FakeBridge(value={}, reports=reports), last="report 499")
    values = [progress for progress, _, _ in came]
    assert len(set(values)) == len(values)
    assert len(came) < 50


async def test_reports_without_a_value_are_counted(mode: str) -> None:
    reports = [ProgressReport(n, message=f"{n}") for n in range(3)]
    came = await progress_of(mode, FakeBridge(value={}, reports=reports), last="2")
    assert came == [(1.0, None, "0"), (2.0, None, "1"), (3.0, None, "2")]


async def test_the_reports_of_a_call_that_fails_are_sent_too(mode: str) -> None:
    error = ToolFailedError(ErrorDetail("NOPE", "No."))
    bridge = FakeBridge(error=error, reports=[ProgressReport(0, 1.0, None, "half")])
    assert await progress_of(mode, bridge, last="half") == [(1.0, None, "half")]


async def test_a_client_that_cancels_its_call_cancels_the_tool(mode: str) -> None:
    bridge = FakeBridge()
    bridge.hangs = True
    async with a_client(bridge, mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "chat_send", {})
            with anyio.fail_after(PATIENT):
                while not bridge.received:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(PATIENT):
            await bridge.cancelled.wait()


# --- on the wire ---


async def heard_on_the_wire(bridge: FakeBridge, meta: Json) -> list[Json]:
    """Send initialize, a call and a ping; return everything the server sends, in order."""
    calls = tool_calls_of(bridge.pages)
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    server = create_mcp_server(calls)
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
    call = {"name": "chat_send", "arguments": {}, "_meta": meta}
    said: list[Json] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
        {"id": 3, "method": "ping"},
    ]
    heard: list[Json] = []
    async with (
        create_client_server_memory_streams() as ((listen, say), ends),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *ends, server.create_initialization_options())
        with anyio.fail_after(PATIENT):
            for message in said:
                text = json.dumps({"jsonrpc": "2.0", **message})
                await say.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(text)))
                while message.get("id") not in [None, *(each.get("id") for each in heard)]:
                    answer = await listen.receive()
                    assert isinstance(answer, SessionMessage)
                    heard.append(answer.message.model_dump(by_alias=True))
        tasks.cancel_scope.cancel()
    return heard


async def test_progress_increases_strictly_and_none_follows_the_result() -> None:
    reports = [ProgressReport(n, float(n % 3)) for n in range(10)]
    heard = await heard_on_the_wire(FakeBridge(value={}, reports=reports), {"progressToken": "t"})
    order = [each.get("id") or each["params"]["progressToken"] for each in heard]
    assert order == [1, *["t"] * 10, 2, 3]
    values = [each["params"]["progress"] for each in heard if "method" in each]
    assert all(before < after for before, after in pairwise(values))


async def test_without_a_token_a_client_is_sent_no_progress() -> None:
    bridge = FakeBridge(value={}, reports=[ProgressReport(0, 1.0)])
    heard = await heard_on_the_wire(bridge, {})
    assert [each.get("id") for each in heard] == [1, 2, 3]


# --- the text of results ---


def test_a_message_beyond_ascii_stays_readable() -> None:
    assert (
        text_of(to_error_result(ToolFailedError(ErrorDetail("X", "Größe ≠ 5")))).count("Größe ≠ 5")
        == 2
    )
    assert text_of(to_result({"ä": 1})) == '{"ä":1}'
