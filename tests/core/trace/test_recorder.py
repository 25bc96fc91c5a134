"""A running call is collected into its record."""

import json
from dataclasses import replace
from typing import Any

import pytest

from opentabs_py.core import failures
from opentabs_py.core.excerpts import LONGEST
from opentabs_py.core.limits import Limits, Timers
from opentabs_py.core.progress import MESSAGE_MAX, ProgressReport
from opentabs_py.core.protocol import DocumentState, LogEntry
from opentabs_py.core.trace.record import (
    FORMAT,
    CallRecord,
    LinkMark,
    LogMark,
    ProgressMark,
    TraceHeader,
    header_line,
    parse_trace,
    read_record,
    record_line,
)
from opentabs_py.core.trace.recorder import KEPT, NAME_MAX, STACK_MAX, CallRecorder, Instant
from opentabs_py.errors import CallError, ChainError, ErrorDetail, ToolFailedError

CALL = "c" * 32
LIMITS = Limits(idle=2.0, ceiling=10.0)


def at(seconds: float) -> Instant:
    """Return an instant this long after the start of the call; the clocks are unrelated."""
    return Instant(wall=1_700_000_000.0 + seconds, monotonic=20.0 + seconds, timer=50.0 + seconds)


def a_document(url: str = "https://chat.example/room", tab_id: int = 7) -> DocumentState:
    return DocumentState(
        document_id="e" * 32,
        tab_id=tab_id,
        url=url,
        title="",
        active=True,
        focused=True,
        protected=True,
        calls=[],
        plugins={},
    )


def taken(**more: Any) -> CallRecorder:
    return CallRecorder(call_id=CALL, name="chat_send", limits=LIMITS, now=at(0), **more)


def sent(**more: Any) -> CallRecorder:
    recorder = taken(**more)
    recorder.record_tool("chat", "send", in_page=True)
    recorder.record_dispatch(a_document(), "boot 1", at(0.5))
    return recorder


def a_report(seq: int = 0, **more: Any) -> ProgressReport:
    return ProgressReport(seq, **more)


def test_a_record_contains_what_was_reported_of_the_call() -> None:
    recorder = sent()
    recorder.record_stamp("server.sent", at(0.6).wall)
    recorder.record_progress([a_report(progress=1.0, total=2.0, message="half")], at(1))
    recorder.record_logs([LogEntry(level="warning", message="slow", time=0)], at(1.5))
    recorder.record_dropped(3)
    recorder.record_dropped(1)
    assert recorder.succeed({"secret": 1}, at(2)) == CallRecord(
        call_id=CALL,
        name="chat_send",
        plugin="chat",
        tool="send",
        started=1_700_000_000.0,
        seconds=2.0,
        outcome="succeeded",
        limits=LIMITS,
        tab_id=7,
        url="https://chat.example/room",
        attempts=1,
        stamps={"server.accepted": at(0).wall, "server.sent": at(0.6).wall},
        left=Limits(idle=1.0, ceiling=8.5),
        report_count=1,
        progress=(ProgressMark(1.0, 0, 1.0, 2.0, "half"),),
        dropped=4,
        log_count=1,
        logs=(LogMark(1.5, "warning", "slow"),),
        links=(LinkMark(0.5, "boot 1"),),
    )


def test_a_call_that_was_never_sent_has_no_timers() -> None:
    record = taken().fail(failures.unknown_tool("chat_send", []), at(0.1))
    assert (record.call_id, record.plugin, record.tool, record.attempts) == (CALL, None, None, 0)
    assert (record.left, record.tab_id, record.links) == (None, None, ())


LOST = failures.lost("tab_closed")
TIMED_OUT = failures.timed_out(Timers(Limits(20.0, 10.0), 0.0, 0.0), connected=True)


def tools_own(code: str, category: str) -> ToolFailedError:
    return ToolFailedError(ErrorDetail(code, "The tool says so.", category))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TIMED_OUT, "timed_out"),
        (LOST, "lost"),
        (failures.cancelled("nobody waits"), "cancelled"),
        (failures.internal("chat_send"), "failed"),
        (failures.no_tab("chat", []), "failed"),
        (tools_own("CANCELLED", "lost"), "failed"),
        (failures.unknown_tool("chat_sent", []), "refused"),
    ],
)
def test_an_error_says_how_the_call_ended(error: CallError, outcome: str) -> None:
    record = sent().fail(error, at(1))
    assert (record.outcome, record.error) == (outcome, error.detail)


def test_a_call_that_timed_out_names_the_timer() -> None:
    assert sent().fail(TIMED_OUT, at(1)).timer == "ceiling"
    assert sent().fail(LOST, at(1)).timer is None


def test_a_base_exception_means_that_the_call_was_cancelled() -> None:
    record = sent().fail(KeyboardInterrupt(), at(1))
    assert (record.outcome, record.error) == ("cancelled", None)


def test_a_bug_of_the_server_is_named_and_not_quoted() -> None:
    record = sent().fail(ValueError("a secret"), at(1))
    assert record.outcome == "failed"
    assert record.error == ErrorDetail("INTERNAL_ERROR", "The server failed: ValueError")


def test_progress_restarts_the_idle_timer_but_not_the_ceiling() -> None:
    recorder = sent()
    recorder.record_progress([a_report()], at(2))
    recorder.record_logs([LogEntry(level="info", message="no sign of life", time=0)], at(2.5))
    assert recorder.succeed(None, at(3)).left == Limits(idle=1.0, ceiling=7.5)


def test_less_than_nothing_is_never_left_of_a_timer() -> None:
    assert sent().fail(TIMED_OUT, at(99)).left == Limits(0.0, 0.0)


@pytest.mark.parametrize("by", [-86_400.0, 86_400.0])
def test_a_wall_clock_that_is_set_during_a_call_changes_no_duration(by: float) -> None:
    def set_at(seconds: float) -> Instant:
        return replace(at(seconds), wall=at(seconds).wall + by)

    recorder = sent()
    recorder.record_passed("server.sent", set_at(1))
    recorder.record_progress([a_report()], set_at(2))
    recorder.record_passed("server.received", set_at(3))
    record = recorder.succeed(None, set_at(4))
    assert (record.started, record.seconds, record.progress[0].at) == (at(0).wall, 4.0, 2.0)
    assert record.stamps["server.sent"] == at(1).wall
    assert record.stamps["server.received"] == at(3).wall


def test_a_worker_of_a_fleet_answers_when_it_did_if_the_clock_is_set_meanwhile() -> None:
    ours = taken()
    ours.record_passed("fleet.sent", replace(at(1), wall=0.0))
    ours.merge(taken().succeed(1, at(1)), replace(at(4), wall=0.0))
    stamps = ours.succeed(1, replace(at(5), wall=0.0)).stamps
    assert (stamps["fleet.sent"], stamps["fleet.up"]) == (at(1).wall, at(4).wall)


def test_a_call_sent_again_after_the_workers_death_keeps_when_it_left_first() -> None:
    recorder = sent()
    for second in (1, 2):
        for name in ("server.sent", "worker.down", "runtime.down", "worker.up"):
            recorder.record_stamp(name, at(second).wall)
    stamps = recorder.succeed(None, at(3)).stamps
    assert (stamps["server.sent"], stamps["worker.down"]) == (at(1).wall, at(1).wall)
    assert (stamps["runtime.down"], stamps["worker.up"]) == (at(2).wall, at(2).wall)


def test_a_call_that_was_never_sent_was_accepted_and_has_no_page() -> None:
    record = taken().fail(failures.unknown_tool("chat_sent", []), at(0.5))
    assert (record.url, record.tab_id, record.attempts) == (None, None, 0)
    assert record.stamps == {"server.accepted": at(0).wall}


def test_the_stack_of_an_error_is_kept_up_to_a_bound() -> None:
    def stack_of(text: str) -> str | None:
        record = sent().fail(failures.tool_raised("export", "ValueError", text), at(1))
        assert record.error is not None
        return record.error.stack

    assert stack_of("at run") == "at run"
    assert len(stack_of("x" * 100_000) or "") == STACK_MAX


def test_an_argument_that_json_lacks_is_recorded_as_its_repr() -> None:
    record = taken(arguments={"at": range(3)}).so_far(at(1))
    assert record.arguments is not None
    assert "range(0, 3)" in record.arguments


def test_a_stamp_with_an_unknown_name_is_ignored() -> None:
    recorder = sent()
    recorder.record_stamp("page.made.this.up", 1.0)
    assert list(recorder.succeed(None, at(1)).stamps) == ["server.accepted"]


def test_a_call_that_goes_to_another_document_has_the_last_ones_marks() -> None:
    recorder = sent()
    recorder.record_stamp("worker.down", at(0.6).wall)
    recorder.record_dispatch(a_document("https://chat.example/next", 8), None, at(1))
    recorder.record_link("boot 2", at(2))
    record = recorder.succeed(None, at(3))
    assert (record.call_id, record.tab_id, record.attempts) == (CALL, 8, 2)
    assert list(record.stamps) == ["server.accepted"]
    assert record.links == (LinkMark(1.0), LinkMark(2.0, "boot 2"))


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://chat.example/room?token=1#secret", "https://chat.example/room"),
        ("https://chat.example/room#secret?x", "https://chat.example/room"),
        ("https://me:word@chat.example/a@b", "https://chat.example/a@b"),
        ("https://[bad", "https://[bad"),
    ],
)
def test_of_a_url_what_may_be_secret_is_left_out(url: str, kept: str) -> None:
    recorder = taken()
    recorder.record_dispatch(a_document(url), "boot", at(0))
    assert recorder.succeed(None, at(1)).url == kept


def test_of_very_many_reports_and_logs_the_first_and_the_last_are_kept() -> None:
    recorder, many = sent(), 3 * KEPT
    recorder.record_progress([a_report(seq) for seq in range(many)], at(1))
    entries = [LogEntry(level="info", message=str(n), time=0) for n in range(many)]
    recorder.record_logs(entries, at(1))
    for _ in range(many):
        recorder.record_link(None, at(1))
    record = recorder.succeed(None, at(2))
    numbers = [*range(KEPT), *range(many - KEPT, many)]
    assert (record.report_count, record.log_count) == (many, many)
    assert [mark.seq for mark in record.progress] == numbers
    assert [mark.message for mark in record.logs] == [str(number) for number in numbers]
    assert len(record.links) == KEPT


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_number_that_json_has_not_is_left_out(number: float) -> None:
    recorder = sent()
    recorder.record_progress([a_report(progress=number, total=number)], at(1))
    (mark,) = recorder.succeed(None, at(1)).progress
    assert (mark.progress, mark.total) == (None, None)


def test_texts_are_cut_to_a_bound_and_can_be_written() -> None:
    long = "x" * 99_999 + "\ud800"
    recorder = CallRecorder(call_id=CALL, name=long, limits=LIMITS, now=at(0))
    recorder.record_progress([a_report(message=long)], at(1))
    record = recorder.fail(ToolFailedError(ErrorDetail(long, "\ud800" + long)), at(1))
    assert record.error is not None
    assert len(record.name) == len(record.error.code) == NAME_MAX
    assert len(record.error.message) == len(record.progress[0].message or "") == MESSAGE_MAX
    lines = [header_line(TraceHeader(FORMAT, "1", 0.0)), record_line(record)]
    assert parse_trace(lines).records == (record,)


def test_arguments_and_results_are_not_kept_unless_asked() -> None:
    record = sent().succeed({"secret": 1}, at(1))
    assert (record.arguments, record.result) == (None, None)


def test_arguments_and_results_that_are_asked_for_are_kept_as_json() -> None:
    record = sent(arguments={"to": ["a", 1]}).succeed({"ok": None}, at(1))
    assert json.loads(record.arguments or "") == {"to": ["a", 1]}
    assert json.loads(record.result or "") == {"ok": None}


def test_arguments_and_results_are_cut_to_a_bound() -> None:
    long = "x" * LONGEST
    record = sent(arguments={"text": long}).succeed(long, at(1))
    assert len(record.arguments or "") == len(record.result or "") == LONGEST
    assert (record.result or "").endswith("…")


QUOTED = [("to", "'secret' is short")]


@pytest.mark.parametrize(
    "error",
    [
        failures.invalid_arguments("chat_send", QUOTED),
        failures.result_breaks_schema("chat_send", QUOTED, {"to": "secret"}),
    ],
)
def test_an_error_that_quotes_values_is_kept_only_with_them(error: CallError) -> None:
    without, with_ = taken().fail(error, at(1)), taken(arguments={}).fail(error, at(1))
    assert without.error is not None
    assert with_.error is not None
    assert (without.error.code, without.error.category) == (error.detail.code, "validation")
    assert "secret" not in without.error.message
    assert "secret" in with_.error.message


def test_a_chain_error_that_is_not_a_loss_is_a_failure() -> None:
    record = sent().fail(ChainError(ErrorDetail("PAGE_UNREACHABLE", "It cannot run.")), at(1))
    assert record.outcome == "failed"


def test_a_call_that_runs_has_a_record_that_does_not_change_with_it() -> None:
    recorder = sent()
    recorder.record_stamp("server.sent", at(0.6).wall)
    so_far = recorder.so_far(at(1.5))

    recorder.record_stamp("worker.down", at(1.6).wall)
    recorder.record_progress([a_report()], at(1.7))

    assert (so_far.reached, so_far.seconds, so_far.report_count) == ("websocket", 1.5, 0)
    assert so_far.left == Limits(1.0, 9.0)
    assert recorder.so_far(at(2)).reached == "page"


def test_a_record_says_who_made_the_call_and_who_allowed_it() -> None:
    recorder = taken(client="claude-code 2.1.0")
    assert recorder.so_far(at(1)).allowed is None
    recorder.record_allowed("asked: once")
    record = recorder.succeed({}, at(2))
    assert (record.client, record.allowed) == ("claude-code 2.1.0", "asked: once")
    assert read_record(record.to_json()) == record


def test_a_long_name_of_a_client_is_cut() -> None:
    assert len(taken(client="x" * 1000).so_far(at(1)).client or "") == NAME_MAX


def test_a_worker_s_permission_is_kept_unless_the_endpoint_has_its_own() -> None:
    theirs = taken()
    theirs.record_allowed("auto")
    for own, kept in ((None, "auto"), ("asked: always", "asked: always")):
        ours = taken()
        if own is not None:
            ours.record_allowed(own)
        ours.merge(theirs.so_far(at(1)), at(2))
        assert ours.so_far(at(3)).allowed == kept


def test_a_tool_of_the_server_reaches_no_page_although_it_reports() -> None:
    recorder = taken()
    recorder.record_tool("sums", "add", in_page=False)
    recorder.record_progress([a_report()], at(1))
    assert recorder.so_far(at(2)).reached == "server"
    assert recorder.succeed(1, at(2)).reached == "answer"
    assert not recorder.so_far(at(2)).in_page


def test_the_tab_that_a_call_names_or_opens_is_recorded_although_it_goes_to_no_page() -> None:
    recorder = taken()
    recorder.record_tab(9)
    assert (recorder.so_far(at(1)).tab_id, recorder.so_far(at(1)).url) == (9, None)
    recorder.record_tab(8, "https://chat.example/?token=1")
    record = recorder.succeed(None, at(1))
    assert (record.tab_id, record.url, record.attempts) == (8, "https://chat.example/", 0)


def test_what_a_worker_recorded_becomes_part_of_the_endpoints_record() -> None:
    def instant(wall: float, steady: float) -> Instant:
        return Instant(wall, steady, steady)

    theirs = CallRecorder(call_id="b", name="chat_send", limits=Limits(), now=instant(50.0, 1.0))
    theirs.record_tool("chat", "send", in_page=True)
    theirs.record_dropped(3)
    ours = CallRecorder(call_id="a", name="chat_send", limits=Limits(), now=instant(10.0, 1.0))
    ours.record_passed("fleet.sent", instant(11.0, 2.0))
    sent = read_record(theirs.succeed(1, instant(51.0, 2.0)).to_json())
    ours.merge(sent, instant(13.0, 4.0))
    record = ours.succeed(1, instant(14.0, 5.0))
    assert (record.call_id, record.plugin, record.tool, record.dropped) == ("a", "chat", "send", 3)
    assert record.stamps == {
        "server.accepted": 10.0,
        "fleet.sent": 11.0,
        "fleet.down": 11.5,
        "fleet.up": 13.0,
    }


def test_the_text_of_an_error_is_masked_if_values_are_recorded() -> None:
    error = ToolFailedError(ErrorDetail("DENIED", "Bearer abcdefgh.ijk is wrong."))
    assert taken().fail(error, at(1)).error == error.detail
    record = taken(arguments={}).fail(error, at(1))
    assert record.error == ErrorDetail("DENIED", "Bearer ••• is wrong.")


def test_a_record_without_a_trace_says_where_the_call_went_and_not_when() -> None:
    record = sent(is_traced=False).succeed(1, at(2))
    assert (record.tab_id, record.url, record.seconds) == (7, "https://chat.example/room", 2.0)
    assert (record.stamps, record.links, record.left) == ({}, (), None)
