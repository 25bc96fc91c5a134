"""The two timers of calls, and what a late look at them means."""

from math import inf

import pytest

from opentabs_py.core.dispatch import STALE_TIMERS, Dispatch, Failed, Succeeded
from opentabs_py.core.limits import CATCH_UP, LATE
from opentabs_py.core.protocol import ToolCancel
from opentabs_py.errors import CallTimeoutError
from tests.core.dispatching import (
    OTHER_TAB,
    PAGE,
    TAB,
    A,
    B,
    connected,
    document,
    progress,
    request,
    result,
    the_error,
)


def test_silence_ends_a_call_at_exactly_idle() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(30.0)
    error = the_error(dispatch)
    assert isinstance(error, CallTimeoutError)
    assert error.timer == "idle"
    assert error.detail.code == "TIMEOUT_IDLE"


def test_silence_does_not_end_a_call_before_idle() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(29.999)
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_reports_closer_than_idle_keep_a_call_alive_up_to_the_ceiling() -> None:
    dispatch = connected(request(idle=30.0, ceiling=300.0))
    for seq, now in enumerate(range(29, 300, 29)):
        dispatch.handle_timer(float(now))
        dispatch.receive(progress(seq), float(now))
    dispatch.handle_timer(299.999)
    assert dispatch.pending == 1


def test_a_gap_over_idle_ends_the_call_idle_seconds_after_the_last_report() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.receive(progress(0), 25.0)
    dispatch.handle_timer(54.999)
    assert dispatch.pending == 1
    dispatch.handle_timer(55.0)
    events = dispatch.drain_events()
    assert isinstance(events[-1], Failed)
    assert "TIMEOUT_IDLE" in events[-1].error.detail.code
    assert "the last 25.0 s after the start" in str(events[-1].error)


def test_reporting_past_the_ceiling_ends_the_call_at_the_ceiling_and_says_so() -> None:
    dispatch = connected(request(idle=30.0, ceiling=300.0))
    for seq in range(300):
        dispatch.receive(progress(seq), float(seq))
    dispatch.drain_events()
    dispatch.handle_timer(300.0)
    error = the_error(dispatch)
    assert isinstance(error, CallTimeoutError)
    assert error.timer == "ceiling"
    assert error.detail.code == "TIMEOUT_CEILING"


def test_progress_never_moves_the_ceiling() -> None:
    dispatch = connected(request(idle=1000.0, ceiling=300.0))
    dispatch.receive(progress(0), 299.999)
    dispatch.drain_events()
    dispatch.handle_timer(300.0)
    assert the_error(dispatch).detail.code == "TIMEOUT_CEILING"


def test_a_timer_handled_late_names_the_limit_that_was_reached_first() -> None:
    dispatch = connected(request(idle=30.0, ceiling=30.1))
    dispatch.handle_timer(30.0 + LATE)
    assert the_error(dispatch).detail.code == "TIMEOUT_IDLE"


def test_a_timer_that_fires_late_lets_what_waits_be_read_first() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(30.01 + LATE)
    assert (dispatch.drain_events(), dispatch.next_deadline()) == ([], 30.01 + LATE + CATCH_UP)
    dispatch.receive(result(), 30.01 + LATE)
    assert isinstance(dispatch.drain_events()[-1], Succeeded)


def test_progress_that_is_read_late_keeps_the_call_alive() -> None:
    dispatch = connected(request(idle=30.0, ceiling=300.0))
    dispatch.handle_timer(100.0)
    dispatch.receive(progress(0), 100.0)
    dispatch.drain_events()
    dispatch.handle_timer(100.0 + CATCH_UP)
    assert dispatch.next_deadline() == 130.0


def test_a_call_about_which_nothing_waited_ends_when_that_could_have_been_read() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(100.0)
    dispatch.handle_timer(100.0 + CATCH_UP)
    assert the_error(dispatch).detail.code == "TIMEOUT_IDLE"


def test_a_call_is_spared_again_when_its_process_was_stopped_again() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(100.0)
    dispatch.handle_timer(200.0)
    assert (dispatch.drain_events(), dispatch.next_deadline()) == ([], 200.0 + CATCH_UP)


@pytest.mark.parametrize("how", ["hello", "news"])
def test_only_the_calls_of_a_tab_whose_page_crashed_end_immediately(how: str) -> None:
    dispatch = connected(request())
    if how == "hello":  # of a worker that died with the page
        dispatch.connection_lost()
        dispatch.connection_resumed([], [TAB], 10.0, crashed=[OTHER_TAB])
        dispatch.connection_resumed([], [TAB], 10.0, crashed=[TAB])
    else:
        dispatch.documents_changed([], [TAB], 10.0, crashed=[OTHER_TAB])
        dispatch.documents_changed([], [TAB], 10.0, crashed=[TAB])
    assert the_error(dispatch).detail.code == "PAGE_CRASHED"


def test_a_document_that_is_there_has_not_crashed() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([document(A)], [TAB], 10.0, crashed=[TAB])
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_a_document_may_come_back_after_a_late_timer() -> None:
    dispatch = connected(request(idle=1000.0, ceiling=1000.0))
    dispatch.documents_changed([], [TAB], 10.0)
    dispatch.handle_timer(100.0)
    dispatch.documents_changed([document(A)], [TAB], 100.0)
    dispatch.handle_timer(100.0 + CATCH_UP)
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_limits_reached_at_the_same_time_end_the_call_by_the_ceiling() -> None:
    dispatch = connected(request(idle=30.0, ceiling=30.0))
    dispatch.handle_timer(30.0)
    assert the_error(dispatch).detail.code == "TIMEOUT_CEILING"


def test_a_timed_out_page_learns_why_its_signal_fires() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.handle_timer(30.0)
    (cancel,) = dispatch.drain_messages()
    assert isinstance(cancel, ToolCancel)
    assert (cancel.params.document_id, cancel.params.call_id) == (PAGE, A)
    assert "idle" in cancel.params.reason


def test_a_call_that_timed_out_says_how_far_it_got_and_how_many_reports_came() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(0, 1, 2), 1.0)
    dispatch.drain_events()
    dispatch.handle_timer(31.0)
    text = str(the_error(dispatch))
    assert "the call was sent to the page" in text
    assert "3 progress reports arrived" in text


def test_a_call_made_without_a_link_that_timed_out_says_that_nothing_was_sent() -> None:
    dispatch = Dispatch()
    dispatch.call(*request(), 0.0)
    dispatch.handle_timer(30.0)
    assert "the extension is not connected" in str(the_error(dispatch))


def test_the_timers_run_while_the_link_is_down() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.connection_lost()
    dispatch.handle_timer(30.0)
    assert "the extension is not connected" in str(the_error(dispatch))
    assert dispatch.drain_messages() == []


def test_the_timers_of_a_call_made_without_a_link_run_too() -> None:
    dispatch = Dispatch()
    dispatch.call(*request(idle=30.0), 0.0)
    assert dispatch.drain_messages() == []
    dispatch.handle_timer(30.0)
    assert the_error(dispatch).detail.code == "TIMEOUT_IDLE"


def test_next_deadline_is_none_when_nothing_is_pending() -> None:
    assert Dispatch().next_deadline() is None


def test_next_deadline_is_the_earliest_of_all_calls() -> None:
    dispatch = connected(request(A, idle=30.0), request(B, idle=10.0))
    assert dispatch.next_deadline() == 10.0


def test_next_deadline_may_be_early_after_a_report_and_handling_it_ends_nothing() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.receive(progress(0), 20.0)
    dispatch.drain_events()
    assert dispatch.next_deadline() == 30.0  # a bound; the report did not touch the heap
    dispatch.handle_timer(30.0)
    assert dispatch.drain_events() == []
    assert dispatch.next_deadline() == 50.0


def test_the_timer_of_a_call_that_ended_is_ignored() -> None:
    dispatch = connected(request(A, idle=10.0), request(B, idle=30.0))
    dispatch.receive(result(call_id=A), 1.0)
    dispatch.drain_events()
    assert dispatch.next_deadline() == 30.0
    dispatch.handle_timer(10.0)
    assert dispatch.drain_events() == []


def test_no_timers_are_kept_of_calls_that_have_ended() -> None:
    dispatch = connected()
    for number in range(100):
        dispatch.call(*request(f"{number:032x}", idle=3600.0), 0.0)
        dispatch.receive(result(call_id=f"{number:032x}"), 0.0)
        dispatch.next_deadline()
    assert len(dispatch._timers) == 0


def test_few_timers_are_kept_of_calls_that_have_ended_while_one_with_earlier_timers_runs() -> None:
    dispatch = connected(request(idle=3600.0))
    for number in range(5000):
        dispatch.call(*request(f"{number:032x}", idle=inf, ceiling=inf), 0.0)
        dispatch.receive(result(call_id=f"{number:032x}"), 0.0)
        dispatch.next_deadline()
    assert len(dispatch._timers) <= 2 + STALE_TIMERS
    dispatch.call(*request(B, idle=30.0), 0.0)
    assert dispatch.next_deadline() == 30.0
    assert dispatch.pending == 2


def test_the_timers_that_a_flapping_link_leaves_behind_go_when_they_come_due() -> None:
    dispatch = connected(request(idle=30.0))
    for second in range(20):
        dispatch.connection_lost()
        dispatch.connection_resumed([], [TAB], float(second))
        dispatch.documents_changed([document(A)], [TAB], 11.0)
    dispatch.receive(progress(0), 25.0)
    dispatch.handle_timer(30.0)
    assert dispatch.next_deadline() == 55.0
    assert len(dispatch._timers) == 1
