"""When each call ends, and how, with time passed in."""

from collections.abc import Sequence

import pytest

from opentabs_py.core.dispatch import (
    MOVED_ON_GRACE,
    SILENT_GRACE,
    Dispatch,
    Failed,
    Progressed,
    Succeeded,
)
from opentabs_py.core.limits import CATCH_UP, LATE, Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    DispatchParams,
    DocumentState,
    ErrorParams,
    LostParams,
    ProgressParams,
    ResultParams,
    ToolAck,
    ToolCancel,
    ToolDispatch,
    ToolErrored,
    ToolLost,
    ToolProgress,
    ToolResult,
    WireError,
)
from opentabs_py.errors import CallTimeoutError, ChainError, ToolFailedError

A, B = "a" * 32, "b" * 32
PAGE, OTHER_PAGE = "d" * 32, "e" * 32
TAB, OTHER_TAB = 7, 8


Made = tuple[DispatchParams, int, Limits]


def request(call_id: str = A, *, idle: float = 30.0, ceiling: float = 300.0) -> Made:
    params = DispatchParams(
        document_id=PAGE, call_id=call_id, plugin="demo", tool="export", input={"n": 1}
    )
    return params, TAB, Limits(idle, ceiling)


def document(*calls: str, document_id: str = PAGE, tab_id: int = TAB) -> DocumentState:
    return DocumentState(
        document_id=document_id,
        tab_id=tab_id,
        url="https://example.com/",
        title="",
        active=True,
        focused=True,
        protected=True,
        calls=list(calls),
        plugins={},
    )


def progress(*seqs: int, call_id: str = A) -> ToolProgress:
    reports = [ProgressReport(seq) for seq in seqs]
    return ToolProgress(params=ProgressParams(document_id=PAGE, call_id=call_id, reports=reports))


def result(value: object = 42, *, call_id: str = A, seq: int = 0) -> ToolResult:
    return ToolResult(params=ResultParams(document_id=PAGE, call_id=call_id, seq=seq, value=value))


def lost(reason: str, call_id: str = A) -> ToolLost:
    return ToolLost(params=LostParams.model_validate({"callId": call_id, "reason": reason}))


def connected(*calls: Made, documents: Sequence[DocumentState] = ()) -> Dispatch:
    """Return a dispatch whose page is there, with calls started at 0 and all outputs drained."""
    dispatch = Dispatch()
    dispatch.connection_resumed(documents or [document()], [TAB, OTHER_TAB], 0.0)
    for call in calls:
        dispatch.call(*call, 0.0)
    dispatch.drain_messages()
    return dispatch


def the_error(
    dispatch: Dispatch, call_id: str = A
) -> ChainError | CallTimeoutError | ToolFailedError:
    (event,) = dispatch.drain_events()
    assert isinstance(event, Failed)
    assert event.call_id == call_id
    assert isinstance(event.error, ChainError | CallTimeoutError | ToolFailedError)
    return event.error


# --- a successful call ---


def test_a_call_is_sent_to_its_document_with_all_it_needs() -> None:
    dispatch = connected()
    dispatch.call(*request(), 0.0)
    assert dispatch.drain_messages() == [
        ToolDispatch(
            params=DispatchParams(
                document_id=PAGE, call_id=A, plugin="demo", tool="export", input={"n": 1}
            )
        )
    ]


def receipts(dispatch: Dispatch) -> dict[str, list[str]]:
    return {each.params.document_id: each.params.call_ids for each in dispatch.drain_receipts()}


def test_a_result_ends_the_call_and_has_a_receipt() -> None:
    dispatch = connected(request())
    dispatch.receive(result({"rows": 3}, seq=5), 1.0)
    assert dispatch.drain_events() == [Succeeded(A, {"rows": 3})]
    assert dispatch.has_receipts
    assert receipts(dispatch) == {PAGE: [A]}
    assert (dispatch.has_receipts, dispatch.pending) == (False, 0)


def test_receipts_of_one_document_go_together_and_none_outlives_its_link() -> None:
    dispatch = connected(request(A), request(B))
    dispatch.receive(result("a"), 1.0)
    dispatch.receive(result("b", call_id=B), 1.0)
    assert receipts(dispatch) == {PAGE: [A, B]}
    dispatch.receive(result("a again"), 1.0)
    dispatch.connection_lost()
    assert not dispatch.has_receipts


def test_an_error_ends_the_call_with_its_fields_whole_and_has_a_receipt() -> None:
    dispatch = connected(request())
    error = WireError(
        code="SLOW_DOWN", message="Too fast.", category="rate_limit", retryable=True,
        retry_after_ms=1500.0,
    )  # fmt: skip
    dispatch.receive(
        ToolErrored(params=ErrorParams(document_id=PAGE, call_id=A, seq=2, error=error)), 1.0
    )
    detail = the_error(dispatch).detail
    assert (detail.code, detail.message, detail.category) == (
        "SLOW_DOWN",
        "Too fast.",
        "rate_limit",
    )
    assert (detail.retryable, detail.retry_after) == (True, 1.5)
    assert receipts(dispatch) == {PAGE: [A]}


def test_outputs_are_returned_once() -> None:
    dispatch = connected()
    dispatch.call(*request(), 0.0)
    dispatch.receive(result(), 0.0)
    assert (len(dispatch.drain_messages()), len(dispatch.drain_events())) == (1, 1)
    assert len(dispatch.drain_receipts()) == 1
    assert (dispatch.drain_messages(), dispatch.drain_events()) == ([], [])
    assert dispatch.drain_receipts() == []


# --- the two timers ---


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


# --- progress ---


def test_reports_are_delivered_in_order_and_acknowledged_up_to_the_last() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(0, 1, 2), 1.0)
    assert dispatch.drain_events() == [Progressed(A, [ProgressReport(seq) for seq in (0, 1, 2)])]
    (ack,) = dispatch.drain_messages()
    assert isinstance(ack, ToolAck)
    assert ack.params.seq == 2


def test_reports_that_came_before_are_dropped_and_acknowledged() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(0, 1, 2), 1.0)
    dispatch.drain_events()
    dispatch.drain_messages()
    dispatch.receive(progress(0, 1, 2), 2.0)
    assert dispatch.drain_events() == []
    (ack,) = dispatch.drain_messages()
    assert isinstance(ack, ToolAck)
    assert ack.params.seq == 2


def test_the_first_report_alone_is_acknowledged() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(0), 1.0)
    (ack,) = dispatch.drain_messages()
    assert isinstance(ack, ToolAck)
    assert ack.params.seq == 0


def test_of_a_batch_only_new_reports_are_delivered() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(0, 1), 1.0)
    dispatch.receive(progress(0, 1, 2), 2.0)
    assert dispatch.drain_events()[-1] == Progressed(A, [ProgressReport(2)])


def test_only_increasing_reports_of_a_batch_out_of_order_are_sent() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(3, 1, 3, 4), 1.0)
    assert dispatch.drain_events() == [Progressed(A, [ProgressReport(3), ProgressReport(4)], 3)]


def test_a_report_that_came_before_does_not_move_the_idle_timer() -> None:
    dispatch = connected(request(idle=30.0))
    dispatch.receive(progress(0), 5.0)
    dispatch.receive(progress(0), 20.0)
    dispatch.drain_events()
    dispatch.handle_timer(35.0)
    assert the_error(dispatch).detail.code == "TIMEOUT_IDLE"


def test_reports_that_are_missing_are_counted_once() -> None:
    dispatch = connected(request())
    for batch in (progress(5), progress(5), progress(4, 8, 9), progress(5, 8, 9, 11)):
        dispatch.receive(batch, 1.0)
    events = dispatch.drain_events()
    assert [each.dropped for each in events if isinstance(each, Progressed)] == [5, 2, 1]
    assert dispatch.dropped_reports == 8
    assert dispatch.late_messages == 0


def test_a_batch_without_reports_acknowledges_nothing() -> None:
    dispatch = connected(request())
    dispatch.receive(progress(), 1.0)
    assert (dispatch.drain_events(), dispatch.drain_messages()) == ([], [])


# --- a call ends exactly once ---


def test_a_second_result_is_dropped_and_has_a_receipt_too() -> None:
    dispatch = connected(request())
    dispatch.receive(result("first"), 1.0)
    dispatch.receive(result("second"), 1.0)
    assert dispatch.drain_events() == [Succeeded(A, "first")]
    assert receipts(dispatch) == {PAGE: [A, A]}


def test_whatever_comes_after_the_end_is_dropped_and_counted() -> None:
    dispatch = connected(request())
    dispatch.cancel(A, "the client cancelled it")
    dispatch.drain_events()
    error = WireError(code="X", message="x")
    errored = ToolErrored(params=ErrorParams(document_id=PAGE, call_id=A, seq=0, error=error))
    for message in (result(), errored, lost("crashed"), progress(0)):
        dispatch.receive(message, 1.0)
    dispatch.handle_timer(1000.0)
    assert dispatch.drain_events() == []
    assert dispatch.late_messages == 4


def test_progress_of_a_call_that_ended_is_answered_with_a_cancel() -> None:
    dispatch = connected(request())
    dispatch.receive(lost("crashed"), 1.0)
    dispatch.receive(progress(0), 2.0)
    (cancel,) = dispatch.drain_messages()
    assert isinstance(cancel, ToolCancel)
    assert cancel.params.call_id == A


def test_a_cancelled_call_ends_and_its_page_is_notified() -> None:
    dispatch = connected(request())
    dispatch.cancel(A, "the client cancelled it")
    (event,) = dispatch.drain_events()
    assert isinstance(event, Failed)
    assert event.error.detail.code == "CANCELLED"
    assert "the client cancelled it" in str(event.error)
    (cancel,) = dispatch.drain_messages()
    assert isinstance(cancel, ToolCancel)
    assert cancel.params.reason == "the client cancelled it"


def test_cancelling_a_call_that_is_not_there_does_nothing() -> None:
    dispatch = connected()
    dispatch.cancel(A, "why not")
    assert (dispatch.drain_events(), dispatch.drain_messages()) == ([], [])


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("tab_closed", "TAB_CLOSED"),
        ("navigated", "PAGE_NAVIGATED"),
        ("crashed", "PAGE_CRASHED"),
        ("not_delivered", "NOT_DELIVERED"),
    ],
)
def test_a_lost_call_ends_immediately_and_says_why(reason: str, code: str) -> None:
    dispatch = connected(request())
    dispatch.receive(lost(reason), 0.5)
    assert the_error(dispatch).detail.code == code


# --- the link is lost and restored ---


def test_a_call_made_without_a_link_is_sent_when_its_document_comes() -> None:
    dispatch = Dispatch()
    dispatch.call(*request(), 0.0)
    dispatch.connection_resumed([document()], [TAB], 1.0)
    (message,) = dispatch.drain_messages()
    assert isinstance(message, ToolDispatch)


def test_a_lost_link_ends_no_call() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_after_hello_a_call_that_no_document_has_heard_of_is_sent_again() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([document()], [TAB], 1.0)
    (message,) = dispatch.drain_messages()
    assert isinstance(message, ToolDispatch)
    assert message.params.call_id == A
    dispatch.connection_resumed([document()], [TAB], 2.0)
    assert len(dispatch.drain_messages()) == 1


def test_after_hello_a_call_that_its_document_knows_is_not_sent_again() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([document(A)], [TAB], 1.0)
    assert dispatch.drain_messages() == []
    dispatch.receive(result("kept"), 2.0)
    assert dispatch.drain_events() == [Succeeded(A, "kept")]


def test_a_known_call_that_no_caller_waits_for_any_longer_gets_a_cancel() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.cancel(A, "the client cancelled it")
    assert dispatch.drain_messages() == []
    dispatch.connection_resumed([document(A, B)], [TAB], 1.0)
    cancelled = [m.params.call_id for m in dispatch.drain_messages() if isinstance(m, ToolCancel)]
    assert cancelled == [A, B]


def test_a_call_is_lost_a_grace_after_the_hello_when_its_document_does_not_come_back() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    assert dispatch.next_deadline() == 10.0 + SILENT_GRACE
    dispatch.handle_timer(9.999 + SILENT_GRACE)
    assert dispatch.pending == 1
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert the_error(dispatch).detail.code == "PAGE_NAVIGATED"


def test_a_call_is_lost_at_the_hello_of_an_extension_that_was_reloaded() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([document(A)], [TAB], 10.0, fresh=True)
    assert the_error(dispatch).detail.code == "EXTENSION_RELOADED"
    [cancel] = dispatch.drain_messages()  # for a relay that connected although orphaned
    assert isinstance(cancel, ToolCancel)


def test_a_call_is_lost_at_the_hello_when_its_tab_is_gone() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [OTHER_TAB], 10.0)
    assert the_error(dispatch).detail.code == "TAB_CLOSED"


def test_a_document_that_comes_back_in_time_resumes_its_call() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed([document(A)], [TAB], 11.0)
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert (dispatch.drain_events(), dispatch.drain_messages()) == ([], [])
    assert dispatch.next_deadline() == 30.0


def test_a_document_that_comes_back_without_the_call_is_sent_it_again() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed([document()], [TAB], 11.0)
    (message,) = dispatch.drain_messages()
    assert isinstance(message, ToolDispatch)


def test_an_awaited_call_is_lost_immediately_when_its_tab_closes() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed([], [OTHER_TAB], 11.0)
    assert the_error(dispatch).detail.code == "TAB_CLOSED"


def test_an_awaited_call_outlives_a_snapshot_without_its_document() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed([document(document_id=OTHER_PAGE)], [TAB], 11.0)
    assert dispatch.pending == 1


def test_an_awaited_call_is_lost_sooner_once_its_tab_has_another_document() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed([document(document_id=OTHER_PAGE)], [TAB], 11.0)
    dispatch.handle_timer(10.99 + MOVED_ON_GRACE)
    assert dispatch.pending == 1
    dispatch.handle_timer(11.0 + MOVED_ON_GRACE)
    assert the_error(dispatch).detail.code == "PAGE_NAVIGATED"


def test_news_of_other_tabs_gives_an_awaited_call_no_more_time() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.documents_changed(
        [document(document_id=OTHER_PAGE, tab_id=OTHER_TAB)], [TAB, OTHER_TAB], 20.0
    )
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert the_error(dispatch).detail.code == "PAGE_NAVIGATED"


def test_a_second_hello_without_a_loss_between_starts_over() -> None:
    dispatch = connected(request())
    dispatch.connection_resumed([document()], [TAB], 1.0)
    (message,) = dispatch.drain_messages()
    assert isinstance(message, ToolDispatch)


def test_a_hello_sets_no_time_limit_for_a_call_whose_document_is_there() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([document(A)], [TAB], 10.0)
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_a_link_lost_again_forgets_the_grace_that_a_document_had_to_come_back() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.connection_lost()
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert (dispatch.drain_events(), dispatch.pending) == ([], 1)


def test_an_awaited_call_can_end_by_its_result() -> None:
    dispatch = connected(request())
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.receive(result("in time"), 10.5)
    assert dispatch.drain_events() == [Succeeded(A, "in time")]


def test_an_awaited_call_whose_idle_timer_comes_first_times_out() -> None:
    dispatch = connected(request(idle=10.0 + SILENT_GRACE - LATE))
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert the_error(dispatch).detail.code == "TIMEOUT_IDLE"


def test_a_document_missed_and_a_silence_that_end_a_call_together_end_it_as_lost() -> None:
    dispatch = connected(request(idle=10.0 + SILENT_GRACE))
    dispatch.connection_lost()
    dispatch.connection_resumed([], [TAB], 10.0)
    dispatch.handle_timer(10.0 + SILENT_GRACE)
    assert the_error(dispatch).detail.code == "PAGE_NAVIGATED"


# --- documents appear and disappear ---


def test_a_call_whose_document_vanishes_is_lost_if_no_message_about_it_follows() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([document(document_id=OTHER_PAGE)], [TAB], 11.0)
    dispatch.handle_timer(10.99 + MOVED_ON_GRACE)
    assert dispatch.pending == 1
    dispatch.handle_timer(11.0 + MOVED_ON_GRACE)
    assert the_error(dispatch).detail.code == "PAGE_NAVIGATED"


def test_a_call_is_lost_with_its_tab_though_a_call_before_it_is_not() -> None:
    params, _, limits = request(B)
    elsewhere = (params.model_copy(update={"document_id": OTHER_PAGE}), OTHER_TAB, limits)
    both = [document(), document(document_id=OTHER_PAGE, tab_id=OTHER_TAB)]
    dispatch = connected(request(A), elsewhere, documents=both)
    dispatch.documents_changed([document()], [TAB], 1.0)
    assert the_error(dispatch, B).detail.code == "TAB_CLOSED"
    assert dispatch.pending == 1


def test_a_call_that_crossed_the_news_of_its_page_can_still_be_said_not_delivered() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([], [TAB], 11.0)
    dispatch.receive(lost("not_delivered"), 11.1)
    assert the_error(dispatch).detail.code == "NOT_DELIVERED"


def test_a_call_whose_document_vanishes_with_its_tab_says_that_the_tab_was_closed() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([], [OTHER_TAB], 11.0)
    assert the_error(dispatch).detail.code == "TAB_CLOSED"


def test_a_snapshot_that_still_has_the_document_changes_nothing() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([document(), document(document_id=OTHER_PAGE)], [TAB], 11.0)
    assert (dispatch.drain_events(), dispatch.drain_messages()) == ([], [])


def test_a_document_that_returns_too_late_is_notified_that_the_call_has_ended() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([], [TAB], 11.0)
    dispatch.handle_timer(11.0 + SILENT_GRACE)
    dispatch.documents_changed([document(A)], [TAB], 20.0)
    (cancel,) = dispatch.drain_messages()
    assert isinstance(cancel, ToolCancel)
    assert cancel.params.call_id == A


def test_a_lost_call_says_that_the_tool_may_have_run() -> None:
    dispatch = connected(request())
    dispatch.documents_changed([], [OTHER_TAB], 11.0)
    error = the_error(dispatch)
    assert "may have run" in str(error)
    assert not error.detail.retryable


def test_a_client_waits_longer_than_a_call_may_take() -> None:
    assert Limits(idle=2, ceiling=5).client_timeout > 5
