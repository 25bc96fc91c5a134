"""The limits of a call: its two timers, with time passed in, and the length of its messages."""

import json
from math import nan

import pytest

from opentabs_py.core.limits import CATCH_UP, LATE, Limits, Timers, longest_body


def started(idle: float = 30.0, ceiling: float = 300.0) -> Timers:
    return Timers.start(Limits(idle, ceiling), 100.0)


@pytest.mark.parametrize("limits", [{"idle": -1}, {"ceiling": -0.1}, {"idle": nan}])
def test_limits_are_not_negative(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Limits are in seconds, and not negative"):
        Limits(**limits)


def test_silence_ends_a_call_before_its_ceiling() -> None:
    assert started().next() == (130.0, "idle")


def test_a_report_moves_the_idle_timer_and_is_counted() -> None:
    timers = started()
    timers.restart_idle(120.0, reports=3)
    assert (timers.next(), timers.reports) == ((150.0, "idle"), 3)


def test_reports_add_up_and_count_as_one_unless_said_otherwise() -> None:
    timers = started()
    timers.restart_idle(110.0, reports=3)
    timers.restart_idle(120.0)
    assert timers.reports == 4


def test_no_report_moves_the_ceiling() -> None:
    timers = started()
    timers.restart_idle(399.0)
    assert timers.next() == (400.0, "ceiling")


def test_when_both_timers_are_due_at_once_it_is_the_ceiling_that_ended_the_call() -> None:
    assert started(idle=300.0).next() == (400.0, "ceiling")


def test_a_deadline_is_the_earliest_of_all() -> None:
    assert (started().deadline(), started().deadline(other=110.0)) == (130.0, 110.0)


@pytest.mark.parametrize(("late", "deadline"), [(LATE, 130.0), (LATE + 0.25, 130.5 + CATCH_UP)])
def test_only_a_deadline_noticed_too_late_is_postponed(late: float, deadline: float) -> None:
    timers = started()
    timers.spare(130.0 + late, timers.deadline())
    assert timers.deadline() == deadline


def test_what_is_left_is_never_negative() -> None:
    timers = started()
    timers.restart_idle(120.0)
    assert timers.left(125.0) == Limits(25.0, 275.0)
    assert timers.left(1000.0) == Limits(0.0, 0.0)


def test_a_client_waits_longer_than_the_ceiling() -> None:
    assert Limits().client_timeout > Limits().ceiling


def test_the_longest_body_has_room_for_an_input_whose_characters_are_all_escaped() -> None:
    text = "é" * 1_000_000
    assert len(json.dumps({"text": text})) <= longest_body(len(text))
