"""Running calls while links and documents come and go."""

from opentabs_py.core.dispatch import MOVED_ON_GRACE, SILENT_GRACE, Dispatch, Succeeded
from opentabs_py.core.limits import LATE
from opentabs_py.core.protocol import ToolCancel, ToolDispatch
from tests.core.dispatching import (
    OTHER_PAGE,
    OTHER_TAB,
    TAB,
    A,
    B,
    connected,
    document,
    lost,
    request,
    result,
    the_error,
)


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
