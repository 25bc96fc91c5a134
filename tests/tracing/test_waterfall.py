"""A call as text."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from opentabs_py.core.trace.record import CallRecord, LinkMark, LogMark, ProgressMark
from opentabs_py.errors import ErrorDetail
from opentabs_py.tracing.waterfall import headline, render, report
from opentabs_py.tracing.words import outcome_text, reached_text
from tests.tracing.examples import (
    ALL,
    CANCELLED,
    LOST,
    REFUSED,
    STARTED,
    SUCCEEDED,
    TIMED_OUT,
    TOOL_FAILED,
    stamps,
)


def test_a_call_that_succeeded_is_drawn_hop_by_hop_with_its_progress_and_log() -> None:
    assert report(SUCCEEDED).splitlines() == [
        "✓ demo_export_messages  1.20 s  succeeded                        tab 7  5aaaaaaa",
        "  server                     0.25 ms  ━━",
        "  server → service worker    0.50 ms    ━━━━",
        "  service worker → relay     0.25 ms        ━━",
        "  relay → page               0.50 ms          ━━━━",
        "  tool                        1.20 s              ━━━━━━━━━≈≈━━━━━━━━━━",
        "  page → relay               0.25 ms                                   ━━",
        "  relay → service worker     0.25 ms                                     ━━",
        "  service worker → server    0.50 ms                                       ━━━━",
        "  progress                 3 reports                     ▴      ▴              ▴",
        "  log                       1 record                            •",
        "  the longest bar is shortened",
    ]


def test_a_tool_whose_page_refused_the_call_is_not_said_to_have_started() -> None:
    refused = replace(TIMED_OUT, outcome="failed", error=ErrorDetail("TAB_NOT_READY", "Sign in."))
    assert "  reached    the page: the tool did not start" in report(refused).splitlines()


def test_a_failed_call_shows_how_far_it_got_and_why_it_ended() -> None:
    assert report(TIMED_OUT).splitlines() == [
        "✗ demo_export_messages  2.50 s  timed out (idle)                 tab 7  7bbbbbbb",
        "  server                     0.25 ms  ━━━",
        "  server → service worker    0.50 ms     ━━━━━━━",
        "  service worker → relay     0.25 ms            ━━━━",
        "  relay → page               0.50 ms                ━━━━━━",
        "  tool                        2.50 s                      ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌✗",
        "  progress                  1 report                           ▴",
        "  log                       1 record                             •",
        "  the longest bar is shortened",
        "  reached    the page: the tool was started and did not return",
        "  page       http://127.0.0.1:8000/",
        "  progress   the last of 1 report arrived at 500 ms: 1/3 page 1",
        "  left       idle 0.0 of 2 s, ceiling 2.5 of 5 s",
        "  worker     restarted once (boot boot-1 → boot-2)",
        "  dropped    12 reports did not arrive",
        "  log        800 ms warning: a slow page",
        "  error      TIMEOUT_IDLE: Timed out (idle): no progress for 2 s; 1 progress",
        "             report arrived.",
    ]


@pytest.mark.parametrize(
    ("record", "outcome", "place"),
    [
        (TIMED_OUT, "timed out (idle)", "the page: "),
        (TOOL_FAILED, "failed", "all the way: "),
        (LOST, "lost", "the service worker: "),
        (REFUSED, "refused", "the server: "),
        (CANCELLED, "cancelled", "the page: "),
    ],
)
def test_each_outcome_is_described_with_the_place_that_was_reached(
    record: CallRecord, outcome: str, place: str
) -> None:
    assert outcome_text(record) == outcome
    assert f"\n  reached    {place}" in report(record)


def test_a_call_that_was_never_sent_says_nothing_of_timers_and_progress() -> None:
    assert [line.split()[0] for line in report(REFUSED).splitlines()[1:]] == [
        "server",
        "reached",
        "error",
    ]


def test_of_a_tool_of_the_server_no_place_is_said_to_be_reached() -> None:
    record = replace(CANCELLED, in_page=False, stamps={"server.accepted": CANCELLED.started})
    assert "reached" not in report(record)
    assert "progress" in report(record)


def test_how_far_a_call_got_is_not_said_if_it_was_not_traced() -> None:
    assert reached_text(replace(TOOL_FAILED, stamps={}, report_count=0, progress=())) is None


def test_bars_that_all_have_room_are_not_cut() -> None:
    record = replace(
        SUCCEEDED, stamps=stamps(0, 1, 2, 3, 4, 6, 7, 8, 9), report_count=0, log_count=0
    )
    text = report(record)
    assert "cut" not in text
    assert "≈" not in text


def test_clocks_that_disagreed_are_reported() -> None:
    record = replace(SUCCEEDED, stamps=stamps(0, 5, 3, 4))
    assert "corrected clocks that disagreed by 2.00 ms" in report(record)


def test_reports_stand_where_they_came_although_the_client_was_stamped_first() -> None:
    record = SUCCEEDED.with_stamps({"client.sent": STARTED - 0.4})
    lines = report(record).splitlines()
    tool = next(line for line in lines if line.startswith("  tool"))
    marks = next(line for line in lines if line.startswith("  progress"))
    assert tool.index("━") < marks.index("▴") < marks.rindex("▴") <= tool.rindex("━") + 1


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((LinkMark(0),), "not restarted, not connected at the end"),
        ((LinkMark(0, "a"), LinkMark(1)), "(boot a), not connected at the end"),
        ((LinkMark(0, "a"), LinkMark(1, "a")), "not restarted (boot a)"),
        (
            (LinkMark(0, "a"), LinkMark(1, "b"), LinkMark(1, "c")),
            "restarted 2 times (boot a → b → c)",
        ),
    ],
)
def test_what_happened_to_the_service_worker_is_shown(
    links: tuple[LinkMark, ...], said: str
) -> None:
    worker = next(line for line in report(replace(LOST, links=links)).splitlines() if "boot" in line
                  or "restarted" in line)  # fmt: skip
    assert worker.endswith(said)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        (ProgressMark(0.5, 0), "arrived at 500 ms"),
        (ProgressMark(0.5, 0, 2.0), "arrived at 500 ms: 2"),
        (ProgressMark(0.5, 0, 2.5, 0.0), "arrived at 500 ms: 2.5"),
        (ProgressMark(0.5, 0, message="busy"), "arrived at 500 ms: busy"),
    ],
)
def test_the_last_report_is_shown_with_its_message(mark: ProgressMark, said: str) -> None:
    lines = report(replace(TIMED_OUT, progress=(mark,))).splitlines()
    assert any(line.endswith(f"the last of 1 report {said}") for line in lines)


def test_of_many_log_records_the_last_five_are_shown() -> None:
    logs = tuple(LogMark(0.1, "info", f"record {n}") for n in range(9))
    said = [line for line in report(replace(LOST, logs=logs)).splitlines() if " info: " in line]
    assert [line[-1] for line in said] == ["4", "5", "6", "7", "8"]


def test_a_record_without_stamps_has_no_hops_and_breaks_nothing() -> None:
    text = report(replace(SUCCEEDED, stamps={}))
    assert text.splitlines()[1].startswith("  progress")


def test_the_time_of_day_can_stand_before_the_name() -> None:
    assert headline(SUCCEEDED, time="12:00:01").plain.startswith("✓ 12:00:01  demo_export")


def test_a_long_name_gives_way_to_the_id_of_its_call() -> None:
    record = replace(TIMED_OUT, name="a_tool_with_a_name_" * 9, timer="ceiling", tab_id=1234567890)
    line = headline(record, width=80).plain
    assert "…  2.50 s  timed out (ceiling)  tab 1234567890  7bbbbbbb" in line
    assert len(line) == 80


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "✓ demo_export_…  1.20 s  succeeded  tab 1030675932  5aaaaaaa"),
        (45, "✓ demo_export_m…  1.20 s  succeeded  5aaaaaaa"),
        (30, "✓ demo_ex…  1.20 s  succeeded"),
        (25, "✓ demo_ex…  1.20 s  succ…"),
    ],
)
def test_in_a_narrow_terminal_a_number_is_whole_or_left_out(width: int, shown: str) -> None:
    record = replace(SUCCEEDED, tab_id=1030675932)
    assert headline(record, width=width).plain == shown


def test_a_console_without_colours_prints_the_same_text() -> None:
    console = Console(width=80, no_color=True, force_terminal=False)
    with console.capture() as captured:
        console.print(render(TIMED_OUT))
    assert captured.get().splitlines() == report(TIMED_OUT).splitlines()


hostile = st.text(max_size=300)


@given(
    name=hostile,
    message=hostile | st.just("x" * 300) | st.just("写" * 300),
    width=st.integers(50, 200),
    call_id=hostile,
    tab_id=st.integers(0, 2**53),
)
@pytest.mark.parametrize("record", ALL)
def test_whatever_a_page_wrote_no_line_is_too_wide_and_none_steers_the_terminal(
    record: CallRecord, name: str, message: str, width: int, call_id: str, tab_id: int
) -> None:
    shown = replace(
        record,
        name="x" + name,
        call_id=call_id,
        tab_id=tab_id,
        error=ErrorDetail("E", message),
        logs=(LogMark(0.1, "error", message),),
        progress=(ProgressMark(0.1, 0, message=message),),
    )
    for line in render(shown, width=width).split("\n"):
        assert line.cell_len <= width
        assert line.plain.isprintable()
