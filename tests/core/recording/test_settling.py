"""How long a recording waits at its end, with time passed in."""

from opentabs_py.core.recording.settling import READ_WITHIN, SETTLE_WITHIN, Settling


def test_it_waits_for_nothing_if_nothing_is_on_its_way() -> None:
    assert Settling(100.0).left(100.0, unanswered=0, pending=0) == 0.0


def test_it_waits_for_responses_and_then_for_their_bodies() -> None:
    settling = Settling(100.0)
    assert settling.left(101.0, unanswered=1, pending=2) == SETTLE_WITHIN - 1
    assert settling.left(102.0, unanswered=0, pending=1) == READ_WITHIN
    assert settling.left(103.0, unanswered=1, pending=1) == READ_WITHIN - 1
    assert settling.left(104.0, unanswered=0, pending=0) == 0.0


def test_neither_responses_nor_bodies_that_never_come_are_waited_for_without_end() -> None:
    settling = Settling(100.0)
    late = 100.0 + SETTLE_WITHIN
    assert settling.left(late, unanswered=1, pending=2) == READ_WITHIN
    assert settling.left(late + READ_WITHIN, unanswered=1, pending=2) == 0.0


def test_a_request_without_a_response_is_not_waited_for_again_with_the_bodies() -> None:
    late = 100.0 + SETTLE_WITHIN
    assert Settling(100.0).left(late, unanswered=1, pending=1) == 0.0
