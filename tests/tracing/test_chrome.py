"""Traces for Perfetto."""

import json
from dataclasses import replace
from typing import Any

import pytest

from opentabs_py.core.trace.record import CallRecord, ProgressMark
from opentabs_py.tracing.chrome import to_chrome
from tests.tracing.examples import ALL, REFUSED, STARTED, SUCCEEDED, TIMED_OUT, later

Event = dict[str, Any]


def events_of(*records: CallRecord) -> list[Event]:
    events: list[Event] = json.loads(to_chrome(records))["traceEvents"]
    return events


def spans(events: list[Event]) -> list[Event]:
    return [event for event in events if event["ph"] == "X"]


def names(events: list[Event], what: str) -> dict[int, str]:
    key = "pid" if what == "process_name" else "tid"
    return {event[key]: event["args"]["name"] for event in events if event["name"] == what}


def test_a_call_holds_its_hops_in_microseconds_from_the_first_call_on() -> None:
    call, *hops = spans(events_of(SUCCEEDED))
    assert (call["name"], call["ts"]) == ("demo_export_messages", 0)
    assert call["dur"] == pytest.approx(1_200_000)
    wanted = [
        ("server", 0, 250),
        ("server → service worker", 250, 500),
        ("service worker → relay", 750, 250),
    ]
    for hop, (name, start, duration) in zip(hops, wanted, strict=False):
        assert (hop["name"], hop["ts"]) == (name, pytest.approx(start, abs=1))
        assert hop["dur"] == pytest.approx(duration, abs=1)
    assert call["args"]["outcome"] == "succeeded"


def test_no_hop_leaves_its_call_and_no_call_another_of_its_thread() -> None:
    early = SUCCEEDED.with_stamps({"client.sent": STARTED - 0.01})
    events = spans(events_of(*ALL, early))
    calls = [event for event in events if event["cat"] == "call"]
    ends = dict.fromkeys(range(1, 9), -1000000000.0)
    for call in calls:
        assert call["ts"] >= ends[call["tid"]]
        ends[call["tid"]] = call["ts"] + call["dur"]
    for hop in events:
        assert any(
            call["tid"] == hop["tid"]
            and call["ts"] <= hop["ts"]
            and hop["ts"] + hop["dur"] <= call["ts"] + call["dur"]
            for call in calls
        )


def test_a_call_that_its_client_stamped_begins_there_and_its_reports_stay_where_they_came() -> None:
    events = events_of(SUCCEEDED.with_stamps({"client.sent": STARTED - 0.01}))
    call, first, *_ = spans(events)
    assert call["ts"] == pytest.approx(-10_000, abs=0.5)
    assert call["dur"] == pytest.approx(1_210_000, abs=0.5)
    assert (first["name"], first["ts"]) == ("MCP client → server", call["ts"])
    assert first["dur"] == pytest.approx(10_000, abs=0.5)
    report = next(event for event in events if event["ph"] == "i")
    assert report["ts"] == pytest.approx(400_000)


def test_a_plugin_is_a_process_and_a_tool_a_thread_of_it() -> None:
    events = events_of(SUCCEEDED, REFUSED)
    assert names(events, "process_name") == {1: "demo", 2: "no plugin"}
    assert names(events, "thread_name") == {1: "demo_export_messages", 2: "demo_exprot"}


def test_calls_of_one_tool_at_the_same_time_have_a_thread_each_which_later_ones_share() -> None:
    calls = [later(SUCCEEDED, at) for at in (0, 1, 5)]
    events = events_of(*calls)
    assert [event["tid"] for event in spans(events) if event["cat"] == "call"] == [1, 2, 1]
    assert names(events, "thread_name")[2] == "demo_export_messages (2)"


def test_progress_and_logs_are_instants_and_progress_a_counter_that_ends_at_zero() -> None:
    events = events_of(SUCCEEDED)
    instants = [event for event in events if event["ph"] == "i"]
    assert [(event["name"], event["ts"]) for event in instants] == [
        ("progress", pytest.approx(400_000)),
        ("progress", pytest.approx(800_000)),
        ("progress", pytest.approx(1_200_000)),
        ("log: warning", pytest.approx(800_000)),
    ]
    assert instants[0]["args"]["message"] == "page 1"
    counters = [event for event in events if event["ph"] == "C"]
    assert [event["args"]["progress"] for event in counters] == [1, 2, 3, 0]
    assert counters[-1]["ts"] == pytest.approx(1_200_000)


def test_progress_without_a_number_is_not_a_counter() -> None:
    record = replace(SUCCEEDED, progress=(ProgressMark(0.1, 0, message="busy"),))
    assert not [event for event in events_of(record) if event["ph"] == "C"]


def test_the_hop_that_a_call_ended_in_says_so_and_the_call_says_why() -> None:
    events = events_of(TIMED_OUT)
    call, *_, last = spans(events)
    assert last["name"] == "tool (ended here)"
    assert call["args"]["code"] == "TIMEOUT_IDLE"
    assert call["args"]["reached"].startswith("the page")
    links = [event["name"] for event in events if event["ph"] == "i"][-2:]
    assert links == ["the extension disconnected", "the extension reconnected"]


def test_a_trace_without_calls_is_a_trace_without_events() -> None:
    assert events_of() == []
