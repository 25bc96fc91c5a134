"""Expectations of a call, and whether they are met."""

import re
from typing import Any, Literal

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from opentabs_py.calling.running import CallLog
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import (
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
)
from opentabs_py.testing.expectations import verdicts
from opentabs_py.testing.expectations.values import shortened
from opentabs_py.testing.expectations.verdicts import CallSnapshot

NOT_FOUND = ErrorDetail("NOT_FOUND", "There is no channel 'x'.", category="not_found")
RUNNING = CallSnapshot("chat_read", ended=False)


def ended(value: Any = None, **more: Any) -> CallSnapshot:
    return CallSnapshot("chat_read", ended=True, value=value, **more)


def reports(*values: float | None) -> list[ProgressReport]:
    return [ProgressReport(seq, value, 3) for seq, value in enumerate(values)]


def timed_out(which: Literal["idle", "ceiling"]) -> CallSnapshot:
    return ended(error=CallTimeoutError(ErrorDetail("TIMEOUT", "Too long."), timer=which))


@pytest.mark.parametrize(
    ("seen", "outcome"),
    [
        (RUNNING, "running"),
        (ended(1), "succeeded"),
        (ended(cancelled=True), "cancelled"),
        (ended(error=CallError(ErrorDetail("CANCELLED", "By the user."))), "cancelled"),
        (ended(error=ToolFailedError(ErrorDetail("CANCELLED", "By the tool."))), "failed"),
        (ended(error=ToolFailedError(NOT_FOUND)), "failed"),
        (ended(error=CallRefusedError(NOT_FOUND)), "refused"),
        (ended(error=ChainError(NOT_FOUND)), "failed"),
        (ended(error=ChainError(ErrorDetail("X", "x", category="lost"))), "lost"),
        (ended(error=RuntimeError("a bug of ours")), "failed"),
        (timed_out("idle"), "timed_out"),
    ],
)
def test_a_call_ends_in_one_way(seen: CallSnapshot, outcome: str) -> None:
    assert seen.outcome == outcome
    assert verdicts.ending(seen).startswith(
        "still running" if seen is RUNNING else outcome.replace("_", " ")
    )


def test_nothing_is_decided_of_the_end_of_a_call_that_runs() -> None:
    judged = [
        verdicts.succeeded(RUNNING),
        verdicts.failed(RUNNING, code=None, category=None, retryable=None, message=None),
        verdicts.timed_out(RUNNING, None),
        verdicts.cancelled(RUNNING),
        verdicts.matches_schema(RUNNING),
        verdicts.returned(RUNNING, 1),
        verdicts.logged(RUNNING, None, None),
    ]

    assert [each.holds for each in judged] == [None] * len(judged)


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({}, True),
        ({"code": "NOT_FOUND"}, True),
        ({"code": "AUTH_ERROR"}, False),
        ({"category": "not_found", "retryable": False}, True),
        ({"category": "auth"}, False),
        ({"retryable": True}, False),
        ({"message": "no chan"}, True),
        ({"message": re.compile("NO CHAN", re.IGNORECASE)}, True),
        ({"message": "nobody"}, False),
        ({"code": "NOT_FOUND", "message": "nobody"}, False),
    ],
)
def test_a_failure_is_judged_by_the_fields_that_are_given(
    fields: dict[str, Any], holds: bool
) -> None:
    every = {"code": None, "category": None, "retryable": None, "message": None, **fields}

    assert verdicts.failed(ended(error=ToolFailedError(NOT_FOUND)), **every).holds is holds
    assert verdicts.failed(ended(1), **every).holds is False


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        ({}, True),
        ({"message": "^No progressToken"}, True),
        ({"message": "nobody"}, False),
        ({"code": "NOT_FOUND"}, False),
        ({"category": "not_found"}, False),
        ({"retryable": False}, False),
    ],
)
def test_an_error_without_fields_is_a_failure_with_a_message_only(
    fields: dict[str, Any], holds: bool
) -> None:
    every = {"code": None, "category": None, "retryable": None, "message": None, **fields}
    seen = ended(error=MCPError(INVALID_PARAMS, "No progressToken, NOT_FOUND"))

    verdict = verdicts.failed(seen, **every)

    assert verdict.holds is holds
    assert "No progressToken" in verdict.got


def test_a_call_runs_until_it_has_ended() -> None:
    runs = verdicts.running(CallSnapshot("chat_read", ended=False))

    assert (runs.holds, runs.may_change) == (True, True)
    assert verdicts.running(ended(1)).holds is False


def test_a_timeout_is_of_one_timer() -> None:
    assert verdicts.timed_out(timed_out("idle"), None).holds
    assert verdicts.timed_out(timed_out("idle"), "idle").holds
    assert verdicts.timed_out(timed_out("idle"), "ceiling").holds is False
    assert verdicts.timed_out(ended(1), None).holds is False
    assert "(idle)" in verdicts.ending(timed_out("idle"))


def progressed(
    seen: CallSnapshot,
    expected: list[dict[str, Any]] | None = None,
    least: int | None = None,
    monotonic: bool = False,
) -> bool | None:
    return verdicts.progressed(seen, expected, least=least, monotonic=monotonic).holds


def test_reports_are_compared_by_the_members_that_are_given() -> None:
    seen = ended(reports=[ProgressReport(0, 1, 2, "one"), ProgressReport(1, 2, 2, None)])

    assert progressed(seen, [{"progress": 1}, {"progress": 2, "total": 2}])
    assert progressed(seen, [{"message": "one"}, {}])
    assert progressed(seen, [{"progress": 1}]) is False
    assert progressed(seen, [{"progress": 1}, {"progress": 3}]) is False
    assert progressed(seen, [{"progress": 1}, {"message": "two"}]) is False


def test_exact_reports_are_known_at_the_end_and_a_wrong_one_at_once() -> None:
    expected = [{"progress": 1}, {"progress": 2}]

    def running(*values: float) -> CallSnapshot:
        return CallSnapshot("chat_read", ended=False, reports=reports(*values))

    assert progressed(running(), []) is None
    assert progressed(running(), expected) is None
    assert progressed(running(1), expected) is None
    assert progressed(running(1, 2), expected) is None
    assert progressed(running(2), expected) is False
    assert progressed(running(1, 2, 3), expected) is False
    assert progressed(ended(reports=reports(1)), expected) is False
    assert progressed(ended(reports=reports(1, 2)), expected) is True


def test_a_number_of_reports_is_the_least() -> None:
    assert progressed(ended(reports=reports(1, 2)), least=2)
    assert progressed(ended(reports=reports(1)), least=2) is False
    assert progressed(CallSnapshot("x", ended=False, reports=reports(1)), least=2) is None
    assert progressed(ended()) is False
    assert progressed(ended(reports=reports(None)))


def test_increasing_progress_is_known_at_the_end_and_a_step_back_at_once() -> None:
    def running(*values: float | None) -> CallSnapshot:
        return CallSnapshot("chat_read", ended=False, reports=reports(*values))

    assert progressed(running(1, 2), monotonic=True) is None
    assert progressed(running(1, 1), monotonic=True) is False
    assert progressed(ended(reports=reports(1, None, 2)), monotonic=True)
    assert progressed(ended(reports=reports(2, None, 1)), monotonic=True) is False


@pytest.mark.parametrize(
    ("expected", "value", "holds"),
    [
        ({}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, True),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True),
        ([{"a": 1}], [{"a": 1}, {"a": 2}], False),
        ((1, 2), [1, 2], True),
        (1, True, False),
        (True, 1, False),
        (1, 1.0, True),
        ({"a": None}, {}, False),
        ({"a": 1}, [1], False),
        ("a", "a", True),
        (..., None, True),
        ({"a": ...}, {"a": 1}, True),
        ({"a": ...}, {}, False),
        ([...], [], True),
        ([..., 2], [1, 2], True),
        ([..., 2], [2, 1], False),
        ([1, ...], [1, 2, 3], True),
        ([1, ...], [2, 1], False),
        ([..., {"id": 2}, ...], [{"id": 1}, {"id": 2, "name": "b"}, {"id": 3}], True),
        ([..., {"id": 4}, ...], [{"id": 1}, {"id": 2}], False),
        ([..., 1, 2, ...], [1, 3, 1, 2], True),
        ([..., 2, ..., 1, ...], [1, 2], False),
        ([1, ..., 1], [1], False),
        ([[..., 1], ...], [[0, 1], 2], True),
    ],
)
def test_a_value_has_what_is_expected_of_it_and_maybe_more(
    expected: Any, value: Any, holds: bool
) -> None:
    assert verdicts.returned(ended(value), expected).holds is holds


def test_what_differs_is_shown_without_what_nobody_asked_for() -> None:
    got = verdicts.returned(ended({"a": [{"b": 1, "c": 2}], "d": 3}), {"a": [{"b": 2}]}).got

    assert '-      "b": 2' in got
    assert '+      "b": 1' in got
    assert '"c"' not in got
    assert '"d"' not in got


def test_where_long_lists_differ_is_named_before_the_diff() -> None:
    items = [{"id": n, "text": f"message {n}"} for n in range(300)]
    other = [*items[:57], {"id": 57, "text": "another"}, *items[58:]]

    got = verdicts.returned(ended({"messages": other}), {"messages": items}).got

    assert got.startswith("a different value, from messages[57].text on\n")
    assert '-      "text": "message 57"' in got
    assert len(got.splitlines()) < 15


@pytest.mark.parametrize(
    ("expected", "value", "place"),
    [
        ({"a": [1, 2]}, {"a": [1]}, "a[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "a[1]"),
        ({"a": {"b": 1}}, {"a": {}}, "a.b"),
        ([..., {"id": 4}], [{"id": 1}], ""),
        ({"a": [[1, ..., 2]]}, {"a": [[1, 2, 3]]}, "a[0]"),
        ([1, ..., 5], [2, 5], "[0]"),
    ],
)
def test_a_difference_names_its_place(expected: Any, value: Any, place: str) -> None:
    got = verdicts.returned(ended(value), expected).got

    assert got.startswith(
        f"a different value, from {place} on\n" if place else "a different value\n"
    )


def test_a_long_difference_is_cut_and_what_is_left_out_counted() -> None:
    got = verdicts.returned(ended(list(range(300))), [str(n) for n in range(300)]).got

    assert len(got.splitlines()) < 50
    assert got.endswith("(… 562 more lines)")


def test_of_long_texts_what_differs_is_shown() -> None:
    text = "".join(f"paragraph {number} " for number in range(100_000))
    value = {"html": text, "next": None}

    got = verdicts.returned(ended(value), {"html": text.replace("h 7000 ", "h 7000, ")}).got
    other = verdicts.returned(ended(value), {"html": "short"}).got

    assert "paragraph 7000, paragraph 7001" in got
    assert "paragraph 7000 paragraph 7001" in got
    assert '+  "html": "paragraph 0 ' in other
    assert len(got) + len(other) < 2500


def test_hunks_of_a_diff_are_separated() -> None:
    value = list(range(100))
    expected = [*value[:10], "a", *value[11:80], "b", *value[81:]]

    got = verdicts.returned(ended(value), expected).got

    assert got.count("\n…\n") == 1


def test_what_may_be_anything_is_written_as_it_was() -> None:
    got = verdicts.returned(ended({"a": [1, 2]}), {"a": [..., 3]}).got

    assert "-    ...,\n" in got
    assert shortened([..., 3]) == "[..., 3]"


def test_a_call_that_failed_has_no_value_to_judge() -> None:
    seen = ended(error=ToolFailedError(NOT_FOUND), output_schema={})

    assert verdicts.returned(seen, None).holds is False
    assert verdicts.matches_schema(seen).holds is False


def test_a_value_is_judged_by_its_tool_s_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    assert verdicts.matches_schema(ended({"n": 1}, output_schema=schema)).holds
    broken = verdicts.matches_schema(ended({"n": "1"}, output_schema=schema))
    assert broken.holds is False
    assert broken.got == 'n: "1" is not of type "integer"'
    assert verdicts.matches_schema(ended({})).holds is False


def test_logs_are_found_by_level_and_text() -> None:
    seen = ended(logs=[CallLog("info", "read 3 pages", 0.0)])

    assert verdicts.logged(seen, None, None).holds
    assert verdicts.logged(seen, "info", "3 pages").holds
    assert verdicts.logged(seen, None, re.compile(r"\d pages")).holds
    assert verdicts.logged(seen, "error", "3 pages").holds is False
    assert verdicts.logged(seen, "info", "4 pages").holds is False


def test_a_long_value_is_cut_where_it_is_shown() -> None:
    text = verdicts.ending(ended("x" * 9_000))

    assert len(text) < 700
    assert "(9,002 characters)" in text
