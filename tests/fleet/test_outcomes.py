"""The outcome of a call crosses from worker to endpoint completely."""

import math
from typing import Any

import pytest
from mcp import types
from pydantic_core import PydanticSerializationError

from opentabs_py.calling.tool import Output
from opentabs_py.core import failures
from opentabs_py.core.fleet.messages import Failed, McpContent, Returned, encode, read_for_endpoint
from opentabs_py.errors import (
    BrokenResultError,
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolError,
    ToolFailedError,
)
from opentabs_py.fleet.outcomes import error_of, failed, returned, value_of

DETAIL = ErrorDetail("CODE", "It failed.", "auth", retryable=True, retry_after=0.005, stack="at x")


def cross_value(value: Any) -> Any:
    message = read_for_endpoint(encode(returned(value)))
    assert isinstance(message, Returned)
    return value_of(message)


def cross(error: Exception) -> CallError:
    message = read_for_endpoint(encode(failed(error, "tool")))
    assert isinstance(message, Failed)
    return error_of(message)


@pytest.mark.parametrize("value", [None, {"a": [1, None]}, "text", 1.5])
def test_a_json_value_arrives_as_it_was(value: Any) -> None:
    assert cross_value(value) == value


def test_content_arrives_as_it_was() -> None:
    output = Output(
        (types.TextContent(text="hello"), types.ImageContent(data="QQ==", mime_type="image/png")),
        {"a": 1},
        {"m": 2},
    )
    assert cross_value(output) == output


def test_content_that_is_not_that_of_mcp_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^content\[0\]\.TextContent\.type: Input"):
        value_of(Returned(content=McpContent(content=[{"type": "nothing"}])))


@pytest.mark.parametrize(
    "error",
    [
        ToolFailedError(DETAIL),
        BrokenResultError(DETAIL, value={"a": None}),
        CallRefusedError(DETAIL),
        ChainError(DETAIL),
        CallTimeoutError(DETAIL, timer="idle"),
        CallTimeoutError(DETAIL, timer="ceiling"),
        CallError(DETAIL),
    ],
)
def test_an_error_arrives_with_its_kind_and_all_fields(error: CallError) -> None:
    error.partial = ["so far"]
    arrived = cross(error)
    assert type(arrived) is type(error)
    assert arrived.detail == error.detail
    assert arrived.partial == ["so far"]
    if isinstance(error, BrokenResultError):
        assert isinstance(arrived, BrokenResultError)
        assert arrived.value == {"a": None}
    if isinstance(error, CallTimeoutError):
        assert isinstance(arrived, CallTimeoutError)
        assert arrived.timer == error.timer


OUTPUT = Output((types.TextContent(text="hello"),), {"a": 1}, {"m": 2})


def test_content_that_a_tool_yielded_before_it_failed_arrives() -> None:
    error = ToolFailedError(DETAIL)
    error.partial = OUTPUT
    assert cross(error).partial == OUTPUT


def test_content_that_breaks_its_schema_arrives() -> None:
    arrived = cross(BrokenResultError(DETAIL, value=OUTPUT))
    assert isinstance(arrived, BrokenResultError)
    assert arrived.value == OUTPUT
    assert arrived.partial is None


def test_a_bug_says_nothing_of_itself() -> None:
    arrived = cross(RuntimeError("a secret"))
    assert arrived.detail == failures.internal("tool").detail


def test_a_value_that_json_cannot_represent_is_an_error_of_the_tool() -> None:
    with pytest.raises(PydanticSerializationError) as raised:
        encode(returned({"a": object()}))
    assert cross(raised.value).detail.code == "RESULT_NOT_SERIALIZABLE"
    assert cross_value({"a": math.inf}) == {"a": None}  # like `JSON.stringify`


@pytest.mark.parametrize(
    "detail",
    [
        ErrorDetail("CODE", "It failed.", category="x" * 300),
        ErrorDetail("CODE", "It failed.", retry_after=-1),
        ErrorDetail("CODE", "It failed.", retry_after=math.nan),
        ErrorDetail("CODE", None),  # type: ignore[arg-type]  # tools are not all type-checked
    ],
)
def test_an_error_that_cannot_be_sent_is_a_bug_of_its_tool(detail: ErrorDetail) -> None:
    assert cross(ToolFailedError(detail)).detail == failures.internal("tool").detail


def test_an_empty_category_is_none() -> None:
    assert cross(ToolFailedError(ErrorDetail("CODE", "It failed.", ""))).detail.category is None


@pytest.mark.parametrize("retry_after", [-1, math.inf, math.nan])
def test_a_tool_error_leaves_out_a_wait_that_is_none(retry_after: float) -> None:
    assert ToolError("Wait.", retry_after=retry_after).detail.retry_after is None
