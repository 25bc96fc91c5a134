"""Two tools instead of all: what they find, and that calls through them are real calls."""

from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client

from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import DocumentState
from opentabs_py.errors import ErrorDetail, ToolFailedError
from opentabs_py.server.mcp.gateway import MOST_FOUND, input_schema
from opentabs_py.server.mcp.results import ERROR_META_KEY
from tests.fakes import FakeBridge, a_document, a_manifest, a_tool
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

CHAT_AND_MAIL = [a_manifest(a_tool("read"), name=name) for name in ("chat", "mail")]


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def ask(served: Served, mode: str, name: str, arguments: dict[str, Any]) -> Any:
    async with Client(served.gateway, mode=mode) as client:
        return await client.call_tool(name, arguments)


async def find(served: Served, **arguments: Any) -> dict[str, Any]:
    result = await ask(served, "auto", "opentabs_list_tools", arguments)
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


def text_of(result: types.CallToolResult) -> str:
    content = result.content[0]
    assert isinstance(content, types.TextContent)
    return content.text


async def test_two_tools_are_listed_whatever_the_plugins_have(mode: str) -> None:
    served = Served()
    served.serve(*(f"tool{number}" for number in range(200)))
    async with Client(served.gateway, mode=mode) as client:
        listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == ["opentabs_call", "opentabs_list_tools"]
    assert listed.next_cursor is None
    assert all(tool.input_schema["type"] == "object" for tool in listed.tools)


async def test_without_a_query_every_tool_is_found_with_a_line_about_it() -> None:
    served = Served()
    served.serve("send", "read", description="First line.\nMore.")
    assert await find(served) == {
        "tools": [
            {"name": "chat_read", "summary": "First line."},
            {"name": "chat_send", "summary": "First line."},
        ]
    }


@pytest.mark.parametrize("query", ["read", "READ something", "please read it"])
async def test_a_query_finds_by_any_of_its_words(query: str) -> None:
    served = Served()
    served.serve("send", "read")
    found = await find(served, query=query)
    assert [tool["name"] for tool in found["tools"]] == ["chat_read"]


async def test_the_best_match_comes_first() -> None:
    served = Served()
    served.serve("send", "read")
    found = await find(served, query="does send or read send")
    assert [tool["name"] for tool in found["tools"]] == ["chat_send", "chat_read"]


async def test_a_tool_that_came_later_is_found() -> None:
    served = Served()
    assert (await find(served, query="read"))["tools"] == []
    served.serve("send", "read")
    assert [tool["name"] for tool in (await find(served, query="read"))["tools"]] == ["chat_read"]


async def test_an_argument_that_is_null_counts_as_left_out() -> None:
    served = Served()
    served.serve("send")
    found = await find(served, query=None, plugin=None, ready=None, detail=None, names=None)
    assert found["tools"] == (await find(served))["tools"]


async def test_an_argument_that_is_empty_counts_as_left_out_too() -> None:
    served = Served()
    served.serve("send", "read")
    assert await find(served, query=" ", plugin="", names=[]) == await find(served)
    found = await find(served, query="read", plugin="", names=[])
    assert [tool["name"] for tool in found["tools"]] == ["chat_read"]


async def test_the_tools_of_one_plugin_are_found_alone() -> None:
    served = Served()
    served.registry.set_plugins(CHAT_AND_MAIL)
    found = await find(served, query="read", plugin="mail")
    assert [tool["name"] for tool in found["tools"]] == ["mail_read"]


async def test_tools_that_work_now_are_found_alone() -> None:
    served = Served()
    served.registry.set_plugins(CHAT_AND_MAIL)
    assert (await find(served, ready=True))["tools"] == []
    document = DocumentState.model_validate(a_document(plugin="mail"))
    served.bridge.tabs.update([document], 0.0)
    found = await find(served, ready=True)
    assert [tool["name"] for tool in found["tools"]] == ["mail_read"]


async def test_a_search_says_as_much_of_each_tool_as_is_asked_for() -> None:
    served = Served()
    properties = {
        "text": {"type": "string", "description": "What to say."},
        "to": {"enum": ["all", "one"]},
        "more": True,
    }
    schema = {"type": "object", "properties": properties, "required": ["text"]}
    served.serve("send", input_schema=schema, summary="Sends it")
    [line] = (await find(served, query="send"))["tools"]
    assert line == {"name": "chat_send", "summary": "Sends it"}
    [some] = (await find(served, query="send", detail="arguments"))["tools"]
    arguments = {"text": "string; What to say.", "to?": "one of all, one", "more?": ""}
    assert some == {**line, "arguments": arguments}
    [full] = (await find(served, query="send", detail="full"))["tools"]
    assert full["inputSchema"]["properties"].keys() == {"text", "to", "more", "tabId"}


async def test_both_tools_are_loaded_at_once_by_a_client_that_defers_others(mode: str) -> None:
    async with Client(Served().gateway, mode=mode) as client:
        listed = await client.list_tools()
    assert [tool.meta for tool in listed.tools] == [{"anthropic/alwaysLoad": True}] * 2


async def test_of_too_many_the_first_are_listed_with_the_number_of_others() -> None:
    served = Served()
    served.serve(*(f"tool{number}" for number in range(MOST_FOUND + 7)))
    found = await find(served)
    assert len(found["tools"]) == MOST_FOUND
    assert found["more"].startswith("7 more match; refine")


async def test_as_many_as_can_be_listed_are_listed_without_a_number_of_others() -> None:
    served = Served()
    served.serve(*(f"tool{number}" for number in range(MOST_FOUND)))
    found = await find(served)
    assert len(found["tools"]) == MOST_FOUND
    assert "more" not in found


async def test_what_a_tool_does_not_declare_is_not_in_its_description() -> None:
    served = Served()
    served.serve("send", output_schema=None)
    [tool] = (await find(served, names=["chat_send"]))["tools"]
    assert tool.keys() == {"name", "title", "description", "inputSchema"}


def test_each_of_the_two_tools_has_its_own_input_schema_and_no_other_name_has_one() -> None:
    call, find = (input_schema(name) for name in ("opentabs_call", "opentabs_list_tools"))
    assert call is not None
    assert find is not None
    assert "arguments" in call["properties"]
    assert "query" in find["properties"]
    assert input_schema("chat_send") is None


async def test_by_name_a_tool_is_described_in_full() -> None:
    served = Served()
    served.serve("send", annotations={"readOnlyHint": False})
    [tool] = (await find(served, names=["chat_send"]))["tools"]
    assert tool["inputSchema"]["properties"].keys() == {"tabId"}
    assert tool["outputSchema"] == {"type": "object"}
    assert tool["annotations"] == {"readOnlyHint": False}
    assert tool["description"] == "Does send."


async def test_a_tool_that_is_turned_off_is_not_described_by_name_either() -> None:
    served = Served()
    served.serve("send", "read")
    served.registry.gate.set_rules({"default": "auto", "chat.send": "off"})
    for name in ("chat_send", "chat__send"):
        result = await ask(served, "auto", "opentabs_list_tools", {"names": [name]})
        assert result.is_error
        assert "chat_send is turned off, because" in text_of(result)
    assert [tool["name"] for tool in (await find(served))["tools"]] == ["chat_read"]


async def test_a_call_is_made_and_its_result_passes_as_it_is(mode: str) -> None:
    served = Served(FakeBridge(value={"id": 7}))
    call = {"name": "chat_send", "arguments": {"tabId": 3}}
    result = await ask(served, mode, "opentabs_call", call)
    assert result.structured_content == {"id": 7}
    [made] = served.bridge.received
    assert (made.tool, made.target.tab_id) == ("send", 3)


async def test_a_tool_is_found_and_called_by_its_plugin_and_two_underscores_too(mode: str) -> None:
    served = Served(FakeBridge(value={"id": 7}))
    [tool] = (await find(served, names=["chat__send"]))["tools"]
    assert tool["name"] == "chat_send"
    result = await ask(served, mode, "opentabs_call", {"name": "chat__send"})
    assert result.structured_content == {"id": 7}
    result = await ask(served, mode, "chat__send", {})
    assert "Call 'chat__send' through opentabs_call" in text_of(result)


async def test_a_tools_error_passes_with_its_fields(mode: str) -> None:
    served = Served(FakeBridge(error=ToolFailedError(ErrorDetail("SLOW_DOWN", "Too fast."))))
    result = await ask(served, mode, "opentabs_call", {"name": "chat_send"})
    assert result.is_error
    assert (result.meta or {})[ERROR_META_KEY]["code"] == "SLOW_DOWN"


async def test_progress_passes_through(mode: str) -> None:
    reports = [ProgressReport(n, n + 1.0, 3.0, f"Page {n + 1}") for n in range(3)]
    served = Served(FakeBridge(value={}, reports=reports))
    heard: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with Client(served.gateway, mode=mode) as client:
        arguments = {"name": "chat_send"}
        await client.call_tool("opentabs_call", arguments, progress_callback=note)
    assert heard == [(1.0, 3.0, "Page 1"), (2.0, 3.0, "Page 2"), (3.0, 3.0, "Page 3")]


async def test_cancellation_passes_through(mode: str) -> None:
    served = Served()
    served.bridge.hangs = True
    async with Client(served.gateway, mode=mode) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "opentabs_call", {"name": "chat_send"})
            with anyio.fail_after(PATIENT):
                while not served.bridge.received:
                    await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(PATIENT):
            await served.bridge.cancelled.wait()


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("opentabs_call", {"name": "chat_sent"}, "did you mean 'chat_send'?"),
        ("opentabs_call", {}, 'at the top: "name" is a required property'),
        ("opentabs_call", {"name": "chat_send", "extra": 1}, "at extra: there is no such argument"),
        (
            "opentabs_call",
            {"name": "chat_send", "arguments": []},
            'at arguments: [] is not of type "object"',
        ),
        ("opentabs_list_tools", {"names": ["chat_sent"]}, "did you mean 'chat_send'?"),
        ("opentabs_list_tools", {"query": 7}, "at query: a string or null was expected"),
        ("opentabs_list_tools", {"plugin": "chatt"}, "no plugin 'chatt'; did you mean 'chat'?"),
        ("opentabs_list_tools", {"plugin": "x"}, "no plugin 'x'; there are: chat."),
        ("chat_send", {}, "Call 'chat_send' through opentabs_call"),
        ("opentabs_cal", {}, "did you mean 'opentabs_list_tools' or 'opentabs_call'?"),
    ],
)
async def test_what_cannot_be_done_is_an_error_that_says_what_to_do(
    name: str, arguments: dict[str, Any], what: str
) -> None:
    result = await ask(Served(), "auto", name, arguments)
    assert result.is_error
    assert what in text_of(result)


async def test_of_many_or_long_wrong_arguments_the_first_are_named_shortened() -> None:
    served = Served()
    arguments = {f"{n}{'x' * 1000}": n for n in range(1000)}
    text = text_of(await ask(served, "auto", "opentabs_list_tools", arguments))
    assert text.partition("```")[0].count("no such argument") == 5
    assert len(text) < 4000


async def test_both_are_served_over_http_side_by_side(mode: str) -> None:
    served = Served()
    async with (
        served.over_http() as url,
        Client(url, mode=mode) as all_tools,
        Client(f"{url}/gateway", mode=mode) as two,
    ):
        assert [tool.name for tool in (await all_tools.list_tools()).tools] == ["chat_send"]
        assert len((await two.list_tools()).tools) == 2
        await two.call_tool("opentabs_call", {"name": "chat_send"})
    assert len(served.bridge.received) == 1
