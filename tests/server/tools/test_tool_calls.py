"""Which tool is called, and what is refused before anything is sent to the browser."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest

from opentabs_py import tool
from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugins.manifest import PluginManifest, configure
from opentabs_py.core.tabs.selection import Target
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import BrokenResultError, CallRefusedError, ErrorDetail, ToolFailedError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls
from tests.fakes import FakeBridge, Json, a_manifest, a_tool, tool_calls_of
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 5},
        "to": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["text"],
    "additionalProperties": False,
}


def some_calls(
    *manifests: PluginManifest, message_limit: int = 1_000_000
) -> tuple[ToolCalls, FakeBridge]:
    bridge = FakeBridge(value={"sent": True})
    calls = tool_calls_of(bridge.pages, limits=Limits(1.0, 2.0), message_limit=message_limit)
    calls.registry.set_plugins(manifests or [a_manifest(a_tool("send", input_schema=SCHEMA))])
    return calls, bridge


async def refused(calls: ToolCalls, name: str, arguments: Mapping[str, Any]) -> CallRefusedError:
    with pytest.raises(CallRefusedError) as caught, anyio.fail_after(PATIENT):
        await calls.call(name, arguments)
    return caught.value


async def test_a_call_reaches_the_bridge_with_plugin_tool_arguments_and_limits() -> None:
    calls, bridge = some_calls()
    assert await calls.call("chat_send", {"text": "hi", "to": [1]}) == {"sent": True}
    (received,) = bridge.received
    assert received.target == Target("chat", ("https://chat.example/*",))
    assert received.tool == "send"
    assert received.call.arguments == {"text": "hi", "to": [1]}
    assert received.call.limits == Limits(1.0, 2.0)


async def test_limits_given_with_a_call_are_its_own() -> None:
    calls, bridge = some_calls()
    await calls.call("chat_send", {"text": "hi"}, limits=Limits(7.0, 8.0))
    assert bridge.received[0].call.limits == Limits(7.0, 8.0)


async def test_the_limits_of_a_tool_are_those_of_its_calls() -> None:
    @tool(idle=7, ceiling=8)
    def wait() -> None:
        """Wait."""

    calls, _ = some_calls()
    host = ToolHost(AlarmClock(), Limits(1.0, 2.0), 1000)
    calls.registry.set_tools(PythonTools([wait], host).tools)
    records: list[CallRecord] = []
    calls.records.observe(records.append)
    await calls.call("wait", {})
    assert records[0].limits == Limits(7.0, 8.0)


@pytest.mark.parametrize(("code", "level"), [("INTERNAL_ERROR", "WARNING"), ("NOPE", "DEBUG")])
async def test_the_stack_of_an_error_is_that_of_the_plugins_source_and_is_logged(
    code: str, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def read_stack(plugin: str, stack: str) -> str:
        await anyio.lowlevel.checkpoint()
        return stack.replace("adapter.js:1", f"{plugin}.ts:7\x1b")

    error = ToolFailedError(ErrorDetail(code, "No.", stack="at adapter.js:1"))
    bridge = FakeBridge(error=error)
    registry = ToolRegistry(bridge.pages, message_limit=1000)
    registry.set_plugins([a_manifest(a_tool("send"))])
    calls = ToolCalls(registry, bridge.pages, limits=Limits(1.0, 2.0), read_stack=read_stack)
    with pytest.raises(ToolFailedError) as caught, caplog.at_level("DEBUG"):
        await calls.call("chat_send", {})
    assert caught.value.detail.stack == "at chat.ts:7\x1b"
    [logged] = [each for each in caplog.records if each.name == "opentabs_py.plugin.chat"]
    assert (logged.levelname, logged.getMessage()) == (level, "chat_send threw at chat.ts:7\\u001b")


@pytest.mark.parametrize(
    ("is_nested", "reason"),
    [
        (False, "the client cancelled it"),
        (True, "the tool that called it no longer waits for it"),
    ],
)
async def test_a_tool_learns_who_no_longer_waits_for_it(is_nested: bool, reason: str) -> None:
    calls, bridge = some_calls()
    await calls.call("chat_send", {"text": "hi"}, origin=CallOrigin(is_nested=is_nested))
    assert bridge.received[0].call.cancellation.reason == reason


async def test_the_tab_id_is_removed_from_the_arguments() -> None:
    calls, bridge = some_calls()
    await calls.call("chat_send", {"text": "hi", "tabId": 7})
    (received,) = bridge.received
    assert (received.target.tab_id, received.call.arguments) == (7, {"text": "hi"})


async def test_an_invalid_tab_id_is_refused_and_named() -> None:
    calls, bridge = some_calls()
    error = await refused(calls, "chat_send", {"text": "hi", "tabId": "7"})
    assert error.detail.code == "INVALID_ARGUMENTS"
    assert "tabId" in str(error)
    assert bridge.received == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({}, 'at the top: "text" is a required property'),
        ({"text": "too long"}, 'at text: "too long" is longer than 5 characters'),
        ({"text": "hi", "to": [1, "2"]}, 'at to[1]: "2" is not of type "integer"'),
        ({"text": "hi", "cc": 1}, "at cc: there is no such argument; the tool takes text, to"),
        # From a program:
        ("hi", "at the top: its type is str; pass a dict of arguments by name"),
        ([("text", "hi")], "at the top: its type is list; pass a dict of arguments by name"),
        ({"text": "hi", 1: 2}, "at the top: the name 1 is not a string"),
    ],
)
async def test_arguments_that_break_the_schema_are_refused_with_path_and_rule(
    arguments: Any, what: str
) -> None:
    calls, bridge = some_calls()
    error = await refused(calls, "chat_send", arguments)
    assert error.detail.code == "INVALID_ARGUMENTS"
    assert what in str(error)
    assert bridge.received == []


async def test_of_many_violations_five_are_reported() -> None:
    calls, _ = some_calls()
    error = await refused(calls, "chat_send", {"text": "hi", "to": ["x"] * 50})
    assert str(error).count("is not of type") == 5


async def test_a_name_that_is_nearly_right_is_refused_with_those_it_may_mean() -> None:
    calls, _ = some_calls()
    error = await refused(calls, "chat_sent", {})
    assert error.detail.code == "UNKNOWN_TOOL"
    assert "did you mean 'chat_send'?" in str(error)


@pytest.mark.parametrize("name", ["my-chat__send_all", "my_chat__send_all"])
async def test_a_tool_is_called_by_its_plugin_and_two_underscores_too(name: str) -> None:
    calls, bridge = some_calls(a_manifest(a_tool("send_all"), name="my-chat"))
    assert await calls.call(name, {}) == {"sent": True}
    assert (bridge.received[0].target.plugin, bridge.received[0].tool) == ("my-chat", "send_all")
    assert [tool.listing.name for tool in calls.registry.tools] == ["my_chat_send_all"]


async def test_two_underscores_end_the_plugins_name_where_one_could_end_another() -> None:
    calls, bridge = some_calls(
        a_manifest(a_tool("b_c"), name="a"), a_manifest(a_tool("d"), name="a-b")
    )
    assert await calls.call("a__b_c", {}) == {"sent": True}
    assert (bridge.received[0].target.plugin, bridge.received[0].tool) == ("a", "b_c")
    error = await refused(calls, "a__b_d", {})
    assert "did you mean" in str(error)


async def test_a_tool_of_exactly_that_name_is_called_before_a_plugins_and_said_to_be(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(name="chat__send")
    def send() -> str:
        """Send."""
        return "by Python"

    calls, bridge = some_calls()
    calls.registry.set_tools(PythonTools([send], ToolHost(AlarmClock())).tools)
    assert await calls.call("chat__send", {}) == "by Python"
    assert bridge.received == []
    assert "call the plugin chat's tool as chat_send" in caplog.text
    assert await calls.call("chat_send", {"text": "hi"}) == {"sent": True}


async def test_a_call_by_the_other_name_is_recorded_and_checked_by_the_listed_one() -> None:
    calls, bridge = some_calls()
    records: list[CallRecord] = []
    calls.records.observe(records.append)
    calls.output.strict = True
    bridge.value = {}
    await calls.call("chat__send", {"text": "hi"})
    bridge.value = "no object"
    with pytest.raises(BrokenResultError):
        await calls.call("chat__send", {"text": "hi"})
    assert [record.name for record in records] == ["chat_send", "chat_send"]
    assert calls.registry.input_schema("chat__send") == calls.registry.input_schema("chat_send")


def with_instances(**urls: str) -> PluginManifest:
    manifest = a_manifest(a_tool("send", input_schema=SCHEMA))
    return configure(replace(manifest, config_schema={"site": {"type": "url"}}), {"site": {**urls}})


async def test_the_instance_is_removed_from_the_arguments_and_selects_the_pages() -> None:
    calls, bridge = some_calls(with_instances(work="https://w.example", home="https://h.example"))
    await calls.call("chat_send", {"text": "hi", "instance": "home"})
    (received,) = bridge.received
    assert received.call.arguments == {"text": "hi"}
    assert received.target.patterns == ("https://h.example/*",)
    assert received.target.instance is not None
    assert received.target.instance.has("https://h.example/x")
    assert calls.registry.tools[0].listing.input_schema["required"] == ["text", "instance"]


@pytest.mark.parametrize("given", [{}, {"instance": "hom"}])
async def test_a_call_must_name_an_instance_where_there_are_several(given: Json) -> None:
    calls, bridge = some_calls(with_instances(work="https://w.example", home="https://h.example"))
    error = await refused(calls, "chat_send", {"text": "hi", **given})
    assert error.detail.code == "INVALID_ARGUMENTS"
    assert "pass one of 'work', 'home'" in str(error)
    assert bridge.received == []


async def test_a_single_instance_is_not_asked_for() -> None:
    calls, bridge = some_calls(with_instances(work="https://w.example"))
    await calls.call("chat_send", {"text": "hi"})
    assert bridge.received[0].target.instance is None
    assert "instance" not in calls.registry.tools[0].listing.input_schema["properties"]


async def test_arguments_over_the_limit_are_refused_and_those_at_it_accepted() -> None:
    size = len('{"text":"hi"}')
    calls, bridge = some_calls(message_limit=size)
    assert await calls.call("chat_send", {"text": "hi"}) == {"sent": True}
    error = await refused(calls, "chat_send", {"text": "hi!"})
    assert error.detail.code == "INPUT_TOO_LARGE"
    assert f"are {size + 1} characters of JSON; the limit is {size}" in str(error)
    assert len(bridge.received) == 1


async def test_the_limit_counts_characters_whatever_bytes_they_take() -> None:
    calls, _bridge = some_calls(message_limit=len('{"text":"日本"}'))
    assert await calls.call("chat_send", {"text": "日本"}) == {"sent": True}
    error = await refused(calls, "chat_send", {"text": "日本語"})
    assert error.detail.code == "INPUT_TOO_LARGE"


async def test_what_the_bridge_reports_reaches_the_caller() -> None:
    calls, bridge = some_calls()
    observer = CallObserver()
    await calls.call("chat_send", {"text": "hi"}, observers=[observer])
    assert bridge.received[0].call.observers == (observer,)


async def test_arguments_that_would_take_too_long_to_check_are_refused_and_the_next_call_runs() -> (
    None
):
    # Each level of the value doubles the checks: 2^60 at the last one.
    inner = {"properties": {"in": {"$ref": "#/$defs/node"}}}
    schema = {
        "type": "object",
        "properties": {"in": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"anyOf": [inner, inner]}},
    }
    calls, bridge = some_calls(a_manifest(a_tool("send", input_schema=schema)))
    value: Any = None
    for _ in range(60):
        value = {"in": value}
    error = await refused(calls, "chat_send", value)
    assert "too large or too deeply nested to validate" in str(error)
    assert bridge.received == []
    assert await calls.call("chat_send", {"in": None}) == {"sent": True}


async def test_a_result_that_would_take_too_long_to_check_is_delivered_unchecked() -> None:
    defs = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(14)}
    rows = {"type": "array", "items": {"$ref": "#/$defs/a0"}}
    schema = {
        "type": "object",
        "properties": {"rows": rows},
        "$defs": {**defs, "a14": {"type": "integer"}},
    }
    calls, bridge = some_calls(a_manifest(a_tool("send", output_schema=schema)))
    bridge.value = {"rows": [1] * 100_000}
    assert await calls.call("chat_send", {}) == bridge.value
    calls.output.strict = True
    with pytest.raises(BrokenResultError, match="too large or too deeply nested to validate"):
        await calls.call("chat_send", {})
