"""How long calls are kept."""

from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.audit.retention import Retention


def test_a_call_is_kept_for_so_many_days() -> None:
    assert Retention(days=2).begin(1_000_000.0) == 1_000_000.0 - 2 * 86_400


def test_a_file_within_its_size_keeps_all_calls() -> None:
    assert Retention(megabytes=1).excess(1_000_000, 500) == 0


def test_a_file_that_is_too_large_loses_its_oldest_calls_down_to_nine_tenths_of_its_size() -> None:
    assert Retention(megabytes=1).excess(1_000_001, 1000) == 101
    assert Retention(megabytes=1).excess(2_000_000, 1000) == 550


@given(st.floats(0.001, 1e6), st.integers(1, 10**12), st.integers(1, 10**9))
def test_never_more_calls_are_removed_than_there_are(most: float, size: int, calls: int) -> None:
    excess = Retention(megabytes=most).excess(size, calls)
    assert 0 <= excess <= calls
    assert (excess > 0) == (size > most * 1_000_000)
