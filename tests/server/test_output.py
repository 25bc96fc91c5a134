"""A value that violates its tool's output schema: logged, or an error with `strict_output`."""

import re

import pytest
from mcp import types
from mcp.client import Client

from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import BrokenResultError
from tests.fakes import FakeBridge, a_manifest, a_tool
from tests.served import Served

pytestmark = pytest.mark.anyio

PROMISE = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def serving(value: object, *, strict: bool) -> Served:
    served = Served(FakeBridge(value=value), strict=strict)
    served.registry.set_plugins([a_manifest(a_tool("send", output_schema=PROMISE))])
    return served


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.levelname == "WARNING"]


async def test_a_value_that_keeps_the_promise_passes_in_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for strict in (False, True):
        assert await serving({"n": 1}, strict=strict).tool_calls.call("chat_send", {}) == {"n": 1}
    assert warnings(caplog) == []


async def test_in_service_a_broken_promise_is_logged_once_for_each_tool_and_the_value_passes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = serving({"n": "one"}, strict=False)
    for _ in range(3):
        assert await served.tool_calls.call("chat_send", {}) == {"n": "one"}
    [warning] = warnings(caplog)
    assert 'at n: it is not of type "integer"' in warning
    served.registry.set_plugins([a_manifest(a_tool("send", output_schema=PROMISE))])
    await served.tool_calls.call("chat_send", {})
    assert len(warnings(caplog)) == 2, "a plugin that is built again is checked again"


async def test_only_a_tool_that_promises_an_object_has_to_return_one() -> None:
    served = Served(FakeBridge(value=[1]), strict=True)
    numbers = {"type": "array", "items": {"type": "integer"}}
    served.registry.set_plugins([a_manifest(a_tool("send", output_schema=numbers))])
    assert await served.tool_calls.call("chat_send", {}) == [1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null, not an object; is a return missing?"),
        ([1], "an array, not an object"),
        ("x", "a string, not an object"),
        (1.5, "a number, not an object"),
    ],
)
async def test_what_is_not_the_promised_object_is_called_as_in_json(
    value: object, text: str
) -> None:
    with pytest.raises(BrokenResultError, match=f"it is {re.escape(text)}"):
        await serving(value, strict=False).tool_calls.call("chat_send", {})


async def test_a_value_is_checked_by_the_schema_of_the_build_that_returned_it() -> None:
    served = serving({"n": 1}, strict=True)
    older = served.registry.find("chat_send")
    newer = {"type": "object", "properties": {"n": {"type": "string"}}}
    served.registry.set_plugins([a_manifest(a_tool("send", output_schema=newer))])
    assert await served.tool_calls.call(older, {}) == {"n": 1}
    with pytest.raises(BrokenResultError):
        await served.tool_calls.call("chat_send", {})


async def test_strict_output_fails_the_call_and_keeps_the_value() -> None:
    served = serving({"n": "one"}, strict=True)
    records: list[CallRecord] = []
    served.tool_calls.records.observe(records.append)
    with pytest.raises(
        BrokenResultError, match="does not match its output schema: at n: "
    ) as caught:
        await served.tool_calls.call("chat_send", {})
    assert caught.value.value == {"n": "one"}
    assert caught.value.detail.code == "RESULT_BREAKS_SCHEMA"
    assert [record.outcome for record in records] == ["failed"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_strictly_a_client_sees_the_violation_and_then_the_value(mode: str) -> None:
    served = serving({"n": "one"}, strict=True)
    async with Client(served.server, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    error, value = result.content
    assert isinstance(error, types.TextContent)
    assert isinstance(value, types.TextContent)
    assert result.is_error
    assert "code=RESULT_BREAKS_SCHEMA" in error.text
    assert value.text == '{"n":"one"}'
