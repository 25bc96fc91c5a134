"""When each call ends, and how, with time passed in."""

import pytest

from opentabs_py.core.dispatch import Failed, Progressed, Succeeded
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    DispatchParams,
    ErrorParams,
    ToolAck,
    ToolCancel,
    ToolDispatch,
    ToolErrored,
    WireError,
)
from tests.core.dispatching import (
    PAGE,
    A,
    B,
    connected,
    lost,
    progress,
    request,
    result,
    settled,
    the_error,
)

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


def test_a_result_ends_the_call_and_is_settled() -> None:
    dispatch = connected(request())
    dispatch.receive(result({"rows": 3}, seq=5), 1.0)
    assert dispatch.drain_events() == [Succeeded(A, {"rows": 3})]
    assert dispatch.has_settled
    assert settled(dispatch) == {PAGE: [A]}
    assert (dispatch.has_settled, dispatch.pending) == (False, 0)


def test_results_of_one_document_are_settled_together_while_their_link_is_up() -> None:
    dispatch = connected(request(A), request(B))
    dispatch.receive(result("a"), 1.0)
    dispatch.receive(result("b", call_id=B), 1.0)
    assert settled(dispatch) == {PAGE: [A, B]}
    dispatch.receive(result("a again"), 1.0)
    dispatch.connection_lost()
    assert not dispatch.has_settled


def test_an_error_ends_the_call_with_its_fields_whole_and_is_settled() -> None:
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
    assert settled(dispatch) == {PAGE: [A]}


def test_outputs_are_returned_once() -> None:
    dispatch = connected()
    dispatch.call(*request(), 0.0)
    dispatch.receive(result(), 0.0)
    assert (len(dispatch.drain_messages()), len(dispatch.drain_events())) == (1, 1)
    assert len(dispatch.drain_settled()) == 1
    assert (dispatch.drain_messages(), dispatch.drain_events()) == ([], [])
    assert dispatch.drain_settled() == []


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


def test_a_second_result_is_dropped_and_settled_too() -> None:
    dispatch = connected(request())
    dispatch.receive(result("first"), 1.0)
    dispatch.receive(result("second"), 1.0)
    assert dispatch.drain_events() == [Succeeded(A, "first")]
    assert settled(dispatch) == {PAGE: [A, A]}


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


@pytest.mark.parametrize(
    ("limits", "ends", "code"),
    [
        (Limits(idle=4, ceiling=10), 110.0, "TIMEOUT_CEILING"),
        (Limits(idle=4, ceiling=100), 111.0, "TIMEOUT_IDLE"),
    ],
)
def test_a_call_that_is_sent_again_has_one_ceiling_and_a_new_idle_timer(
    limits: Limits, ends: float, code: str
) -> None:
    dispatch = connected()
    params, tab_id, _ = request()
    dispatch.call(params, tab_id, limits, 107.0, began=100.0)
    dispatch.handle_timer(ends - 0.1)
    assert dispatch.pending == 1
    dispatch.handle_timer(ends)
    assert the_error(dispatch).detail.code == code


def test_a_client_waits_longer_than_a_call_may_take() -> None:
    assert Limits(idle=2, ceiling=5).client_timeout > 5
