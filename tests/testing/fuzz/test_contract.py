"""Which promise a call broke, according to a snapshot of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.failures import timed_out
from opentabs_py.core.limits import Limits, Timers
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.sites import match_patterns
from opentabs_py.errors import (
    BrokenResultError,
    CallRefusedError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
)
from opentabs_py.testing.expectations.verdicts import CallSnapshot
from opentabs_py.testing.fuzz.contract import (
    TOOL_CODES,
    Breach,
    documented_codes,
    find_breach,
    find_foreign,
    find_unexpected_end,
    reached_origin,
    setup_problem,
)

DOCS = Path(__file__).parents[3] / "docs"


def seen(**more: Any) -> CallSnapshot:
    return CallSnapshot(name="chat_read", ended=more.pop("ended", True), **more)


def failed(code: str, *, kind: type[Any] = ToolFailedError, **more: Any) -> CallSnapshot:
    return seen(error=kind(ErrorDetail(code, "why", **more)))


def breach_of(call: CallSnapshot) -> Breach | None:
    return find_breach(call, documented=["NOT_FOUND"], within=5)


def test_a_value_within_its_schema_and_a_documented_code_break_nothing() -> None:
    assert breach_of(seen(value={"n": 1}, output_schema={"type": "object"})) is None
    assert breach_of(failed("NOT_FOUND")) is None
    assert breach_of(failed("RESULT_TOO_LARGE")) is None


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (seen(ended=False), "end", "has not ended within 5 s"),
        (seen(value=1, output_schema={"type": "object"}), "schema", 'not of type "object"'),
        (failed("INTERNAL_ERROR"), "code", "INTERNAL_ERROR: why"),
        (failed("ODD"), "code", "not documented, ODD: why"),
        (failed("INVALID_ARGUMENTS", kind=CallRefusedError), "code", "not documented"),
        (failed("TAB_CLOSED", kind=ChainError, category="lost"), "page", "lost its page"),
        (failed("TAB_CLOSED", category="lost"), "code", "not documented"),  # the tool says so
        (seen(error=RuntimeError("a bug")), "code", "a bug"),
        (
            seen(error=BrokenResultError(ErrorDetail("RESULT_BREAKS_SCHEMA", "no"), value=1)),
            "schema",
            "RESULT_BREAKS_SCHEMA",
        ),
        (
            seen(
                value=1,
                reports=[ProgressReport(0, progress=2.0), ProgressReport(1, progress=2.0)],
            ),
            "progress",
            "report 2 says 2, after 2",
        ),
    ],
)  # fmt: skip
def test_a_broken_promise_is_named(call: CallSnapshot, kind: str, text: str) -> None:
    breach = breach_of(call)

    assert breach is not None
    assert breach.kind == kind
    assert text in breach.text


def test_a_call_that_a_timer_ended_did_not_end_in_time() -> None:
    error = timed_out(Timers(Limits(), started=0, heard=0), connected=True)

    breach = breach_of(seen(error=error))

    assert breach is not None
    assert breach.kind == "end"


@pytest.mark.parametrize("text", ["returned 1", "ended with ODD: Slow down."])
def test_the_sentence_that_names_a_broken_promise_has_one_full_stop(text: str) -> None:
    assert Breach("code", text).sentence == f"{text.removesuffix('.')}."


def test_while_an_input_is_shrunk_another_code_is_another_bug() -> None:
    first, second = breach_of(failed("INTERNAL_ERROR")), breach_of(failed("ODD"))
    assert first is not None
    assert second is not None

    assert first.is_like(first)
    assert not first.is_like(second)


def test_no_page_and_wrong_arguments_are_not_a_fault_of_the_tool() -> None:
    assert setup_problem(failed("TAB_NOT_FOUND", kind=ChainError)) == "TAB_NOT_FOUND: why"
    refused = failed("INVALID_ARGUMENTS", kind=CallRefusedError)
    assert setup_problem(refused) == "INVALID_ARGUMENTS: why"
    assert setup_problem(failed("TAB_NOT_FOUND")) is None  # the tool's own text
    assert setup_problem(failed("PAGE_CRASHED", kind=ChainError)) is None
    assert setup_problem(seen(value=1)) is None


def test_a_later_call_may_fail_only_if_it_may_be_tried_again() -> None:
    assert find_unexpected_end(seen(value=1)) is None
    assert find_unexpected_end(failed("RATE_LIMITED", retryable=True)) is None
    assert "NOT_FOUND" in (find_unexpected_end(failed("NOT_FOUND")) or "")


@pytest.mark.parametrize(
    ("url", "is_foreign"),
    [
        ("https://api.example.com/x?y", False),
        ("wss://api.example.com/live", False),
        ("http://127.0.0.1:8000/own", False),
        ("data:text/plain,x", False),
        ("blob:https://evil.example/1", False),
        ("https://evil.example/", True),
        ("https://evil.example/https://api.example.com/", True),
        ("https://api.example.com@evil.example/", True),
        ("ws://evil.example/", True),
    ],
)
def test_only_the_plugin_s_sites_and_the_page_s_own_origin_are_its_own(
    url: str, is_foreign: bool
) -> None:
    patterns = [match_patterns.parse("*://*.example.com/*")]

    foreign = find_foreign([url], patterns, {"http://127.0.0.1:8000"})

    assert foreign == (url if is_foreign else None)


def test_an_origin_has_no_path_and_no_user() -> None:
    assert reached_origin("https://ann:secret@example.com:8443/a?b#c") == "https://example.com:8443"
    assert reached_origin("wss://example.com?x") == "https://example.com"
    assert reached_origin("about:blank") is None


def test_a_description_documents_the_codes_that_it_names() -> None:
    codes = documented_codes("Read it. Fails with `NO_SUCH_ROOM`, or INTERNAL_ERROR.", ["MINE"])

    assert codes - TOOL_CODES == {"NO_SUCH_ROOM", "MINE"}


def test_the_codes_of_the_sdk_are_those_that_are_documented() -> None:
    plugins = (DOCS / "plugins.md").read_text()
    factories = set(re.findall(r"^\| `ToolError\.\w+\(.*?\| `([A-Z_]+)` \|", plugins, re.MULTILINE))
    table = set(re.findall(r"`([A-Z_]+)`", (DOCS / "architecture.md").read_text()))

    assert factories
    assert factories - {"INTERNAL_ERROR"} <= TOOL_CODES
    assert {"TOOL_ERROR", "STREAM_OPEN"} <= TOOL_CODES & table
