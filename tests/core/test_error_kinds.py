"""A message describes an error completely, so that it can be raised again."""

from typing import get_args

import pytest

from opentabs_py.core.error_kinds import ErrorKind, Side, from_json, kind_of, rebuild, side_of
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

DETAIL = ErrorDetail("SLOW_DOWN", "Too fast.", "rate_limit", True, 1.5, "at run")


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_an_error_of_each_kind_is_rebuilt_with_all_its_fields(kind: ErrorKind) -> None:
    error = rebuild(kind, DETAIL, value={"a": 1})
    assert kind_of(error) == kind
    assert error.detail == DETAIL
    assert not isinstance(error, BrokenResultError) or error.value == {"a": 1}


def test_an_error_that_a_python_tool_raised_is_the_tools() -> None:
    assert kind_of(ToolError("Sign in first.")) == "tool"


@pytest.mark.parametrize("after", [None, 0.0])
def test_a_rebuilt_error_waits_as_long_as_the_original(after: float | None) -> None:
    detail = ErrorDetail("SLOW_DOWN", "Too fast.", retry_after=after)
    assert rebuild("tool", detail).detail == detail


def test_an_empty_category_of_a_message_is_none() -> None:
    assert rebuild("tool", ErrorDetail("X", "x", category="")).detail.category is None


@pytest.mark.parametrize(
    ("kind", "side"),
    [
        ("tool", "tool"),
        ("broken", "tool"),
        ("refused", "caller"),
        ("chain", "chain"),
        ("idle", "chain"),
        ("ceiling", "chain"),
        ("other", "chain"),
    ],
)
def test_each_kind_of_error_is_of_one_side(kind: ErrorKind, side: Side) -> None:
    assert side_of(rebuild(kind, DETAIL)) == side


@pytest.mark.parametrize(
    ("side", "code", "expected"),
    [
        ("tool", "TIMEOUT_IDLE", ToolFailedError),
        ("caller", "TIMEOUT_IDLE", CallRefusedError),
        ("chain", "TAB_CLOSED", ChainError),
        ("chain", "TIMEOUT_IDLE", CallTimeoutError),
        ("chain", "TIMEOUT_CEILING", CallTimeoutError),
    ],
)
def test_a_client_rebuilds_an_error_from_side_and_code(
    side: Side, code: str, expected: type[CallError]
) -> None:
    detail = ErrorDetail(code, "It failed.", "timeout", True, 1.5)
    error = from_json(detail.to_json(), side)
    assert type(error) is expected
    assert error.detail == detail


@pytest.mark.parametrize("timer", ["idle", "ceiling"])
def test_a_client_knows_which_timer_ended_a_call(timer: str) -> None:
    error = from_json(ErrorDetail(f"TIMEOUT_{timer.upper()}", "Timed out.").to_json(), "chain")
    assert kind_of(error) == timer
