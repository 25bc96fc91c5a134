"""The record of a call, and the file that stores it."""

import json
import math
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.record import (
    FORMAT,
    CallRecord,
    LinkMark,
    LogMark,
    ProgressMark,
    TraceHeader,
    header_line,
    parse_trace,
    record_line,
)
from opentabs_py.errors import ErrorDetail, TraceError

HEADER = TraceHeader(FORMAT, "1.2.3", 1_700_000_000.0)
FIRST = header_line(HEADER)
BARE = CallRecord(
    call_id="a" * 32,
    name="chat_send",
    started=1_700_000_001.0,
    seconds=2.0,
    outcome="succeeded",
    limits=Limits(),
)
FULL = replace(
    BARE,
    plugin="chat",
    tool="send",
    in_page=False,
    outcome="timed_out",
    timer="idle",
    error=ErrorDetail("TIMEOUT_IDLE", "Timed out.", "timeout", True, 5.0),
    tab_id=7,
    url="https://chat.example/",
    attempts=2,
    stamps={"server.accepted": 1_700_000_001.0, "server.sent": 1_700_000_001.5},
    limits=Limits(2.0, 4.0),
    left=Limits(0.0, 2.0),
    report_count=1,
    progress=(ProgressMark(0.5, 0, 1.0, 3.0, "page 1"),),
    dropped=4,
    log_count=1,
    logs=(LogMark(0.25, "warning", "slow"),),
    links=(LinkMark(0.0, "b1"), LinkMark(1.0), LinkMark(1.5, "b2")),
    arguments="{}",
    result="[]",
    client="claude-code 2.1.0",
    allowed="auto",
)


def said_of(*lines: str) -> str:
    with pytest.raises(TraceError) as caught:
        parse_trace(lines)
    return str(caught.value)


@pytest.mark.parametrize("record", [BARE, FULL])
def test_a_record_that_was_written_is_read_as_it_was(record: CallRecord) -> None:
    trace = parse_trace([FIRST, record_line(record), "\n"])
    assert (trace.headers, trace.records, trace.cut) == ((HEADER,), (record,), 0)


def test_the_example_has_a_value_for_every_field() -> None:
    assert all(getattr(FULL, f.name) != getattr(BARE, f.name) for f in fields(BARE)[6:])


def test_a_record_is_one_line_with_the_names_that_javascript_has() -> None:
    (line,) = record_line(FULL).splitlines()
    assert {"callId", "tabId", "logCount"} <= json.loads(line).keys()
    assert json.loads(line)["error"]["retryAfter"] == 5.0
    assert json.loads(line) == FULL.to_json()


def test_members_of_a_later_version_are_ignored() -> None:
    value = {**FULL.to_json(), "mood": "blue"}
    value["progress"][0]["mood"] = "blue"
    header = json.dumps({**json.loads(FIRST), "mood": "blue"})
    assert parse_trace([header, json.dumps(value)]).records == (FULL,)


@given(st.text(), st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 2**53))
def test_whatever_a_page_wrote_comes_back(text: str, number: float, seq: int) -> None:
    mark = ProgressMark(0.5, seq, number, None, text.encode("utf-8", "replace").decode())
    record = replace(BARE, progress=(mark,))
    assert parse_trace([FIRST, record_line(record)]).records == (record,)


@pytest.mark.parametrize("half", [record_line(FULL)[:-20], '{"callId"', "{", "\x00"])
def test_a_truncated_last_line_is_counted_and_skipped(half: str) -> None:
    trace = parse_trace([FIRST, record_line(BARE), half])
    assert (trace.records, trace.cut) == ((BARE,), 1)


def test_a_truncated_line_before_another_header_is_skipped_too() -> None:
    trace = parse_trace([FIRST, '{"callId', FIRST, record_line(BARE), "{"])
    assert (len(trace.headers), trace.records, trace.cut) == (2, (BARE,), 2)


@pytest.mark.parametrize("after", [record_line(BARE), "also none"])
def test_a_broken_line_in_the_middle_is_refused_with_its_number(after: str) -> None:
    assert said_of(FIRST, "no json", after).startswith("Line 2 is not valid JSON: ")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "it is empty"),
        ("hello", "expected value"),
        ("[1]", 'its first line has no "opentabs_trace"'),
        ('{"traceEvents": []}', 'its first line has no "opentabs_trace"'),
    ],
)
def test_a_file_that_is_not_a_trace_is_refused_with_the_reason(line: str, what: str) -> None:
    said = said_of(line)
    assert said.startswith("This is not an OpenTabs trace: ")
    assert what in said


def test_a_trace_of_a_later_format_is_refused_with_what_to_do() -> None:
    said = said_of('{"opentabs_trace": 3}')
    assert "format 3, but this version of opentabs-py reads format 2. Update" in said


def test_blank_lines_are_skipped() -> None:
    assert parse_trace([FIRST, "\n", record_line(FULL), " \n"]).records == (FULL,)


def test_stamps_of_format_1_are_read_as_seconds_also_where_the_file_continues() -> None:
    stamps = {"server.accepted": 1_700_000_001_000.0, "server.sent": 1_700_000_001_500.0}
    old = [header_line(TraceHeader(1, "1", 0.0)), record_line(replace(FULL, stamps=stamps))]

    trace = parse_trace([*old, FIRST, record_line(FULL)])

    assert trace.records == (FULL, FULL)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"outcome": "exploded"}, "Line 2 is not a valid trace line: outcome: Input should be "),
        ({"progress": [{"at": "1", "seq": 0}]}, "progress[0].at: Input should be a valid number"),
        ({"seconds": math.inf}, "is not valid JSON"),
    ],
)
def test_a_line_that_is_not_a_call_is_refused_with_its_place(
    change: dict[str, Any], what: str
) -> None:
    assert what in said_of(FIRST, json.dumps({**BARE.to_json(), **change}), record_line(BARE))


def test_a_line_that_is_not_an_object_is_refused() -> None:
    assert said_of(FIRST, "7").startswith(
        "Line 2 is not a valid trace line: Input should be an object"
    )


def test_a_header_with_a_wrong_member_is_refused_with_its_number() -> None:
    said = said_of(FIRST, '{"opentabs_trace": "1", "opentabs": "1", "started": 0}')
    assert said.startswith("Line 2 is not a valid trace line: opentabs_trace: ")


def test_the_service_worker_was_restarted_as_often_as_its_boot_id_changed() -> None:
    links = (*FULL.links, LinkMark(1.6), LinkMark(1.7, "b2"))
    assert replace(FULL, links=links).service_worker_restarts == 1
    assert BARE.service_worker_restarts == 0


def test_stamps_reports_and_value_show_how_far_a_call_got() -> None:
    assert replace(FULL, report_count=0).reached == "websocket"
    assert replace(FULL, in_page=True).reached == "page"
    assert BARE.reached == "answer"


def test_a_call_without_an_answer_ends_in_the_hop_that_was_under_way() -> None:
    last = replace(FULL, report_count=0).waterfall().spans[-1]
    assert (last.hop, last.seconds, last.unfinished) == ("server → service worker", 1.5, True)
    assert FULL.waterfall().spans[-1].hop == "tool"


def test_stamps_of_its_client_can_be_added_and_an_answered_call_has_no_hop_under_way() -> None:
    at = 1_700_000_001.0
    record = FULL.with_stamps({"client.sent": at - 1, "server.received": at + 9})
    spans = record.waterfall().spans
    assert [span.hop for span in spans] == ["MCP client → server", "server", "server … server"]
    assert not spans[-1].unfinished


def test_a_call_started_later_than_its_first_hop_when_its_client_stamped_that() -> None:
    record = BARE.with_stamps({"server.accepted": BARE.started, "server.sent": 1e12})
    assert record.lead(record.waterfall()) == 0.0
    record = record.with_stamps({"client.sent": BARE.started - 0.25})
    assert record.lead(record.waterfall()) == pytest.approx(0.25)
    assert BARE.lead(BARE.waterfall()) == 0.0
