"""Whether the other side of a link is alive."""

from opentabs_py.core.fleet.liveness import ABSENT_FOR, BACK_WITHIN, SILENT_FOR, Liveness


def test_silence_counts_after_a_while() -> None:
    other = Liveness(10.0)
    assert other.gone_at() == 10.0 + SILENT_FOR
    other.handle_heard(12.0)
    assert other.gone_at() == 12.0 + SILENT_FOR


def test_a_missing_listener_counts_sooner_than_silence_but_not_at_once() -> None:
    other = Liveness(10.0)
    other.handle_absent(11.0)
    other.handle_absent(11.5)
    assert other.gone_at() == 11.0 + ABSENT_FOR


def test_a_missing_listener_does_not_count_while_it_may_have_received_something() -> None:
    other = Liveness(10.0)
    other.handle_absent(11.0)
    assert other.gone_at(awaiting=True) == 10.0 + SILENT_FOR


def test_a_worker_that_is_heard_again_was_only_reconnecting() -> None:
    other = Liveness(10.0)
    other.handle_absent(11.0)
    other.handle_heard(11.2)
    assert other.gone_at() == 11.2 + SILENT_FOR


def test_after_ones_own_reconnect_the_others_get_time_to_reconnect() -> None:
    other = Liveness(10.0)
    other.handle_absent(11.0)
    other.handle_relinked(20.0)
    other.handle_absent(20.1)
    assert other.gone_at() == 20.0 + BACK_WITHIN
