"""What a client receives as progress, with time passed in."""

import json
import math
import os
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from opentabs_py.core.progress import (
    Pace,
    ProgressFilter,
    ProgressNotification,
    ProgressReport,
    WaitReport,
)


def send_all(
    *reports: tuple[float | None, float | None] | float | None,
) -> list[ProgressNotification]:
    """Pass reports through a filter that drops nothing."""
    progress = ProgressFilter(Pace(burst=max(1, len(reports))))
    for seq, given_report in enumerate(reports):
        value, total = given_report if isinstance(given_report, tuple) else (given_report, None)
        progress.report(ProgressReport(seq, value, total, f"report {seq}"), 0.0)
    return progress.drain(0.0)


def values(notifications: list[ProgressNotification]) -> list[float]:
    return [notification.progress for notification in notifications]


def messages(notifications: list[ProgressNotification]) -> list[str | None]:
    return [notification.message for notification in notifications]


def flood(progress: ProgressFilter, count: int, now: float, *, start: int = 0) -> None:
    for seq in range(start, start + count):
        progress.report(ProgressReport(seq, float(seq), None, f"report {seq}"), now)


# --- content ---


def test_a_report_arrives_as_the_tool_made_it() -> None:
    progress = ProgressFilter()
    progress.report(ProgressReport(0, 3.0, 12.0, "Exported page 3 of 12"), 0.0)
    assert progress.drain(0.0) == [ProgressNotification(3.0, 12.0, "Exported page 3 of 12")]


def test_values_that_increase_are_left_as_they_are() -> None:
    assert values(send_all(-2.5, 0.0, 0.5, 7.0)) == [-2.5, 0.0, 0.5, 7.0]


def test_a_value_that_does_not_increase_is_sent_as_the_smallest_increase() -> None:
    sent = send_all((5.0, 9.0), (5.0, 9.0), (2.0, 9.0), (6.0, 9.0))
    step = math.nextafter(5.0, math.inf)
    assert values(sent) == [5.0, step, math.nextafter(step, math.inf), 6.0]
    assert [notification.total for notification in sent] == [9.0] * 4
    assert messages(sent) == [f"report {seq}" for seq in range(4)]


def test_the_smallest_increase_survives_json() -> None:
    sent = values(send_all(0.0, 0.0, -1.0))
    assert json.loads(json.dumps(sent)) == sent
    assert sent[0] < sent[1] < sent[2]


def test_indeterminate_reports_count_up_without_a_total() -> None:
    sent = send_all((None, 10.0), None, None)
    assert [(notification.progress, notification.total) for notification in sent] == [
        (1.0, None),
        (2.0, None),
        (3.0, None),
    ]


def test_an_indeterminate_report_does_not_pretend_to_measured_progress() -> None:
    assert values(send_all((3.0, 12.0), None, (4.0, 12.0))) == [3.0, math.nextafter(3.0, 4.0), 4.0]


def test_measured_progress_below_the_count_still_increases() -> None:
    assert values(send_all(None, None, 0.25)) == [1.0, 2.0, math.nextafter(2.0, 3.0)]


@pytest.mark.parametrize("total", [0.0, -1.0, math.nan, math.inf, None])
def test_a_total_that_says_nothing_is_left_out(total: float | None) -> None:
    assert send_all((0.0, total))[0] == ProgressNotification(0.0, None, "report 0")


def test_a_small_total_is_kept() -> None:
    assert send_all((0.25, 0.5))[0].total == 0.5


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_a_number_counts_as_missing(value: float) -> None:
    assert send_all((value, 4.0)) == [ProgressNotification(1.0, None, "report 0")]


def test_the_largest_numbers_leave_room_to_increase() -> None:
    sent = values(send_all(-sys.float_info.max, *[sys.float_info.max] * 4))
    assert all(low < high < math.inf for low, high in pairwise(sent))


def test_waiting_leaves_room_for_the_progress_of_the_tool() -> None:
    progress = ProgressFilter()
    for seq in range(7):
        progress.report(WaitReport(seq, message="Waiting for the user"), 0.0)
    progress.report(ProgressReport(0, 0.1, 1.0, "working"), 0.0)
    sent = progress.drain(0.0)
    assert all(low < high for low, high in pairwise(values(sent)))
    assert messages(sent) == ["Waiting for the user"] * 7 + ["working"]
    assert sent[-1] == ProgressNotification(0.1, 1.0, "working")


def test_waiting_does_not_count_as_a_report() -> None:
    progress = ProgressFilter()
    for report in (WaitReport(0, message="first"), ProgressReport(0), WaitReport(1, message="on")):
        progress.report(report, 0.0)
    progress.report(ProgressReport(1), 0.0)
    assert values(progress.drain(0.0)) == [0.0, 1.0, math.nextafter(1.0, 2.0), 2.0]


def test_waiting_during_the_tool_keeps_its_total() -> None:
    progress = ProgressFilter()
    progress.report(ProgressReport(0, 3.0, 9.0, "Page 3"), 0.0)
    progress.report(WaitReport(0, message="Waiting for the user"), 0.0)
    assert progress.drain(0.0)[1] == ProgressNotification(
        math.nextafter(3.0, 4.0), 9.0, "Waiting for the user"
    )


# --- pace ---


def test_a_whole_burst_passes_immediately() -> None:
    progress = ProgressFilter(Pace(burst=20, rate=10.0))
    flood(progress, 20, 100.0)
    assert messages(progress.drain(100.0)) == [f"report {seq}" for seq in range(20)]
    assert progress.next_time() is None


def test_behind_a_burst_the_latest_report_wins() -> None:
    progress = ProgressFilter(Pace(burst=2, rate=10.0))
    flood(progress, 50, 0.0)
    assert messages(progress.drain(0.0)) == ["report 0", "report 1"]
    assert progress.next_time() == pytest.approx(0.1)
    assert progress.drain(0.09) == []
    flood(progress, 5, 0.09, start=50)
    assert messages(progress.drain(0.1)) == ["report 54"]


def test_a_flood_is_sent_at_the_rate() -> None:
    progress = ProgressFilter(Pace(burst=1, rate=4.0))
    sent: list[ProgressNotification] = []
    for tick in range(100):
        now = tick / 8
        flood(progress, 10, now, start=tick * 10)
        sent += progress.drain(now)
    assert len(sent) == 1 + 49  # the burst, then 4/s until 12.375 s


def test_a_pause_refills_the_bucket_up_to_the_burst() -> None:
    progress = ProgressFilter(Pace(burst=3, rate=10.0))
    flood(progress, 3, 0.0)
    progress.drain(0.0)
    flood(progress, 9, 1000.0, start=3)
    assert messages(progress.drain(1000.0)) == ["report 3", "report 4", "report 5"]


def test_a_report_whose_turn_has_come_is_not_replaced() -> None:
    progress = ProgressFilter(Pace(burst=1, rate=1.0))
    flood(progress, 2, 0.0)
    progress.drain(0.0)
    flood(progress, 1, 1.5, start=2)  # report 1 has had a token since 1.0
    assert messages(progress.drain(1.5)) == ["report 1"]
    assert progress.next_time() == 2.5


def test_nothing_is_due_before_anything_was_reported() -> None:
    progress = ProgressFilter()
    assert progress.next_time() is None
    assert progress.drain(0.0) == []


def test_what_waits_for_the_shell_is_due_immediately() -> None:
    progress = ProgressFilter()
    flood(progress, 1, 7.0)
    assert progress.next_time() == 7.0


def test_a_clock_that_steps_back_gives_no_tokens() -> None:
    progress = ProgressFilter(Pace(burst=1, rate=1.0))
    flood(progress, 2, 10.0)
    assert len(progress.drain(10.0)) == 1
    assert progress.drain(9.0) == []
    assert progress.next_time() == 11.0


def test_a_token_that_is_due_is_there_though_rounding_says_otherwise() -> None:
    progress = ProgressFilter(Pace(burst=1, rate=10.0))
    flood(progress, 2, 13.4)
    progress.drain(13.4)
    due = progress.next_time()
    assert due is not None
    assert (due - 13.4) * 10.0 < 1  # by 4e-15
    assert len(progress.drain(due)) == 1


@given(
    now=st.floats(0, 4e9),
    pause=st.floats(0, 1),
    rate=st.floats(0.01, 1e4),
)
def test_what_next_time_promises_is_kept_in_spite_of_rounding(
    now: float, pause: float, rate: float
) -> None:
    progress = ProgressFilter(Pace(burst=1, rate=rate))
    flood(progress, 2, now)
    progress.drain(now)
    progress.drain(now + pause)
    flood(progress, 1, now + pause, start=2)
    due = progress.next_time()
    assert due is not None
    assert len(progress.drain(due)) == 1


def test_memory_is_bounded_by_the_burst_if_nothing_is_drained() -> None:
    progress = ProgressFilter(Pace(burst=5, rate=1000.0))
    for tick in range(10_000):
        flood(progress, 1, float(tick), start=tick)
    sent = progress.finish(10_000.0)
    assert len(sent) == 6
    assert sent[-1].message == "report 9999"


# --- how it ends ---


def test_finish_sends_the_last_report_whatever_the_rate() -> None:
    progress = ProgressFilter(Pace(burst=2, rate=10.0))
    flood(progress, 9, 0.0)
    assert messages(progress.finish(0.0)) == ["report 0", "report 1", "report 8"]


def test_finish_sends_nothing_twice() -> None:
    progress = ProgressFilter()
    flood(progress, 3, 0.0)
    progress.drain(0.0)
    assert progress.finish(0.0) == []


def test_nothing_is_sent_after_finish() -> None:
    progress = ProgressFilter()
    progress.finish(0.0)
    flood(progress, 3, 1.0)
    assert progress.next_time() is None
    assert progress.drain(1.0) == []
    assert progress.finish(1.0) == []


@pytest.mark.parametrize(
    ("burst", "rate"), [(0, 10.0), (1, 0.0), (1, -1.0), (1, math.nan), (1, math.inf)]
)
def test_limits_that_would_send_nothing_or_everything_are_refused(burst: int, rate: float) -> None:
    with pytest.raises(ValueError, match="; use "):
        Pace(burst=burst, rate=rate)


@pytest.mark.parametrize("keepalive", [0.0, -1.0, math.nan])
def test_a_keep_alive_without_end_is_refused(keepalive: float) -> None:
    with pytest.raises(ValueError, match="use a number of seconds"):
        Pace(keepalive=keepalive)


# --- the keep-alive ---


def test_without_a_keep_alive_silence_stays_silence() -> None:
    progress = ProgressFilter(started=0.0)
    flood(progress, 1, 0.0)
    progress.drain(0.0)
    assert progress.next_time() is None
    assert progress.drain(1000.0) == []


def test_a_keep_alive_repeats_the_last_notification_after_each_silence() -> None:
    progress = ProgressFilter(Pace(keepalive=10.0), started=0.0)
    progress.report(ProgressReport(0, 3.0, 9.0, "Page 3"), 4.0)
    progress.drain(4.0)
    assert progress.next_time() == 14.0
    assert progress.drain(13.9) == []
    assert progress.drain(14.0) == [ProgressNotification(math.nextafter(3.0, 4.0), 9.0, "Page 3")]
    assert progress.next_time() == 24.0
    progress.report(ProgressReport(1, 4.0, 9.0, "Page 4"), 20.0)
    assert values(progress.drain(20.0)) == [4.0]
    assert progress.next_time() == 30.0


def test_a_keep_alive_before_the_first_report_says_zero_and_leaves_room_below_the_first() -> None:
    progress = ProgressFilter(Pace(keepalive=5.0), started=100.0)
    assert progress.next_time() == 105.0
    assert progress.drain(105.0) == [ProgressNotification(0.0, None, None)]
    progress.report(ProgressReport(0, 1.0, 3.0, "Page 1"), 106.0)
    assert values(progress.drain(106.0)) == [1.0]


def test_the_first_silence_begins_with_the_call() -> None:
    assert ProgressFilter(Pace(keepalive=0.5)).next_time() == 0.5
    assert ProgressFilter(Pace(keepalive=0.5), started=7.0).next_time() == 7.5


def test_a_repetition_costs_as_much_as_a_report() -> None:
    progress = ProgressFilter(Pace(burst=1, rate=0.25, keepalive=1.0))
    assert len(progress.drain(1.0)) == 1
    assert progress.drain(2.0) == []
    assert progress.next_time() == 5.0
    assert len(progress.drain(5.0)) == 1


def test_a_keep_alive_does_not_count_as_a_report() -> None:
    progress = ProgressFilter(Pace(keepalive=5.0), started=0.0)
    sent: list[ProgressNotification] = []
    for at in (1.0, 6.0, 7.0, 12.0, 13.0):
        if at in (1.0, 7.0, 13.0):
            progress.report(ProgressReport(0), at)
        sent += progress.drain(at)
    assert [round(value) for value in values(sent)] == [1, 1, 2, 2, 3]


def test_a_keep_alive_ends_with_the_call() -> None:
    progress = ProgressFilter(Pace(keepalive=5.0), started=0.0)
    progress.finish(1.0)
    assert progress.next_time() is None
    assert progress.drain(100.0) == []


# --- any sequence of reports, times and completion ---

_NUMBERS = st.none() | st.floats() | st.integers(-3, 12).map(float)
_STEPS = st.floats(0, 0.3) | st.floats(0, 30)


class AnyCall(RuleBasedStateMachine):
    """A tool that reports anything, and a shell that drains at arbitrary times."""

    @initialize(
        burst=st.integers(1, 25),
        rate=st.sampled_from([0.3, 1.0, 10.0, 1000.0]),
        start=st.floats(0, 2e9),
        keepalive=st.none() | st.sampled_from([0.5, 5.0]),
    )
    def begin(self, burst: int, rate: float, start: float, keepalive: float | None) -> None:
        self.burst, self.rate, self.now, self.keepalive = burst, rate, start, keepalive
        self.filter = ProgressFilter(Pace(burst, rate, keepalive), started=start)
        self.reported: list[ProgressReport] = []
        self.sent: list[tuple[float, ProgressNotification]] = []
        self.finished = False

    def keep(self, notifications: list[ProgressNotification]) -> None:
        if self.finished:
            assert notifications == [], "sent after the end"
        self.sent += [(self.now, notification) for notification in notifications]

    @rule(step=_STEPS)
    def wait(self, step: float) -> None:
        self.now += step

    @rule(reports=st.lists(st.none() | st.tuples(_NUMBERS, _NUMBERS), max_size=40))
    def report(self, reports: list[tuple[float | None, float | None] | None]) -> None:
        for given_report in reports:
            seq = len(self.reported)
            one = (
                WaitReport(seq, message=str(seq))
                if given_report is None
                else ProgressReport(seq, *given_report, str(seq))
            )
            self.filter.report(one, self.now)
            if not self.finished:
                self.reported.append(one)

    @rule()
    def take(self) -> None:
        self.keep(self.filter.drain(self.now))

    @rule()
    def wait_until_due(self) -> None:
        due = self.filter.next_time()
        if due is not None:
            self.now = max(self.now, due)
            taken = self.filter.drain(self.now)
            assert taken, "next_time promised a notification"
            self.keep(taken)

    @precondition(lambda self: not self.finished)
    @rule()
    def finish(self) -> None:
        self.keep(self.filter.finish(self.now))
        self.finished = True
        if self.reported:
            assert self.sent[-1][1].message == self.reported[-1].message
        assert self.filter.next_time() is None

    @invariant()
    def values_strictly_increase_and_are_finite(self) -> None:
        sent = [notification.progress for _, notification in self.sent]
        assert all(low < high for low, high in pairwise(sent))
        assert all(map(math.isfinite, sent))

    @invariant()
    def totals_are_finite_and_only_beside_given_progress(self) -> None:
        for _, notification in self.sent:
            if notification.message is None:  # a keep-alive before the first report
                assert notification.total is None
                continue
            report = self.reported[int(notification.message)]
            if notification.total is not None and not isinstance(report, WaitReport):
                assert notification.total == report.total
                assert report.progress is not None
                assert 0 < notification.total < math.inf

    @invariant()
    def reports_keep_their_order(self) -> None:
        order = [int(notification.message or -1) for _, notification in self.sent]
        assert order == sorted(order)
        if self.keepalive is not None:
            return
        assert len(order) == len(set(order))

    @invariant()
    def no_window_holds_more_than_the_bucket_allows(self) -> None:
        times = [at for at, _ in self.sent]
        for first, since in enumerate(times):
            for last in range(first, len(times)):
                allowed = self.burst + self.rate * (times[last] - since) + 1
                assert last - first + 1 <= allowed + 1e-2  # s since 1970 are 2e-7 apart


TestAnyCall = AnyCall.TestCase
TestAnyCall.settings = settings(max_examples=1000 if "SOAK" in os.environ else 50)
