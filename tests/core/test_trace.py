"""Where the time of a call went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.trace import HOPS, Span, clock_offset, waterfall

STAMPS = list(dict.fromkeys(name for _, start, end in HOPS for name in (start, end)))


def test_the_stamps_of_a_whole_call_give_every_hop_in_order() -> None:
    spans = waterfall({name: 1000.0 + 2.0 * i for i, name in enumerate(STAMPS)})
    assert [span.hop for span in spans] == [hop for hop, _, _ in HOPS]
    assert [(span.start, span.ms) for span in spans] == [(2.0 * i, 2.0) for i in range(len(HOPS))]


def test_a_hop_without_both_its_stamps_is_left_out() -> None:
    stamps = {"server.accepted": 5.0, "server.sent": 6.0, "relay.down": 8.0, "runtime.down": 9.0}
    assert waterfall(stamps) == [Span("server", 0.0, 1.0), Span("relay → page", 3.0, 1.0)]


def test_no_stamps_give_no_hops() -> None:
    assert waterfall({}) == []


def test_clocks_that_disagree_a_little_never_give_a_negative_length() -> None:
    (span,) = waterfall({"server.sent": 10.0, "worker.down": 9.5})
    assert span.ms == 0.0


@given(st.dictionaries(st.sampled_from(STAMPS), st.floats(0, 1e12)))
def test_no_hop_starts_before_the_call_or_lasts_less_than_nothing(stamps: dict[str, float]) -> None:
    assert all(span.start >= 0 and span.ms >= 0 for span in waterfall(stamps))


@given(remote=st.floats(0, 1e6), ahead=st.floats(-1e6, 1e6), one_way=st.floats(0, 1e3))
def test_the_offset_is_exact_when_both_ways_take_as_long(
    remote: float, ahead: float, one_way: float
) -> None:
    sent, received = remote + ahead - one_way, remote + ahead + one_way
    offset = clock_offset(sent=sent, received=received, remote=remote)
    assert remote + offset == pytest.approx(remote + ahead, abs=1e-6)
