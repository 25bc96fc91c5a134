"""Where the time of a call went."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.trace.hops import (
    HOPS,
    STAMPS,
    Span,
    Waterfall,
    clock_offset,
    on_our_clock,
    reached,
    waterfall,
)

WHOLE = {name: 1000.0 + 2.0 * i for i, name in enumerate(STAMPS)}
SKEWED = {"server.sent": 100.0, "worker.down": 97.0, "worker.up": 103.0, "server.received": 110.0}


def test_the_stamps_of_a_whole_call_give_every_hop_in_order() -> None:
    falls = waterfall(WHOLE)
    assert [(span.hop, span.carrier) for span in falls.spans] == list(HOPS)
    assert [(s.start, s.seconds) for s in falls.spans] == [(2.0 * i, 2.0) for i in range(len(HOPS))]
    assert falls.adjusted == 0.0


def test_hops_without_a_stamp_between_them_are_one() -> None:
    stamps = {"server.accepted": 5.0, "server.sent": 6.0, "relay.down": 8.0, "runtime.down": 9.0}
    assert waterfall(stamps).spans == (
        Span("server", "server", 0.0, 1.0),
        Span("server … relay", "several", 1.0, 2.0),
        Span("relay → page", "event", 3.0, 1.0),
    )


def test_a_remote_clock_was_read_halfway_between_question_and_answer() -> None:
    assert clock_offset(sent=100.0, received=110.0, remote=5.0) == 100.0


@pytest.mark.parametrize("stamps", [{}, {"nobody.knows": 1.0}])
def test_no_stamps_give_no_hops(stamps: dict[str, float]) -> None:
    assert waterfall(stamps, ended=7.0) == Waterfall(())


def test_a_browsers_clock_behind_ours_is_shifted_as_a_whole_and_reported() -> None:
    falls = waterfall(SKEWED)
    assert [(span.start, span.seconds) for span in falls.spans] == [
        (0.0, 0.0),
        (0.0, 6.0),
        (6.0, 4.0),
    ]
    assert falls.adjusted == 3.0


def test_a_browsers_clock_ahead_of_ours_is_moved_no_further_than_it_must() -> None:
    falls = waterfall({**SKEWED, "worker.down": 106.0, "worker.up": 112.0})
    assert [(span.start, span.seconds) for span in falls.spans] == [
        (0.0, 4.0),
        (4.0, 6.0),
        (10.0, 0.0),
    ]
    assert falls.adjusted == 2.0


def test_a_browsers_time_that_cannot_fit_into_ours_is_cut() -> None:
    falls = waterfall({**SKEWED, "worker.down": 90.0, "worker.up": 120.0})
    assert [(span.start, span.seconds) for span in falls.spans] == [
        (0.0, 0.0),
        (0.0, 10.0),
        (10.0, 0.0),
    ]


def test_a_clock_that_was_set_back_gives_no_negative_hop() -> None:
    falls = waterfall({"server.accepted": 10.0, "server.sent": 7.0})
    assert (falls.spans[0].seconds, falls.adjusted) == (0.0, 3.0)


def test_a_clients_clock_yields_to_the_servers() -> None:
    stamps = {"client.sent": 12.0, "server.accepted": 10.0, "server.received": 20.0}
    falls = waterfall({**stamps, "client.received": 19.0})
    assert [(s.start, s.seconds) for s in falls.spans] == [(0.0, 0.0), (0.0, 10.0), (10.0, 0.0)]


@pytest.mark.parametrize(
    ("last", "hop"),
    [
        ("server.accepted", "server"),
        ("server.sent", "server → service worker"),
        ("worker.down", "service worker → relay"),
        ("relay.down", "relay → page"),
        ("runtime.down", "tool"),
    ],
)
def test_a_call_without_an_answer_ends_in_the_hop_that_was_under_way(last: str, hop: str) -> None:
    stamps = {name: WHOLE[name] for name in STAMPS[1 : STAMPS.index(last) + 1]}
    span = waterfall(stamps, ended=WHOLE[last] + 50.0).spans[-1]
    assert (span.hop, span.seconds, span.unfinished) == (hop, 50.0, True)


def test_a_value_that_came_from_no_page_leaves_no_hop_under_way() -> None:
    [span] = waterfall({"server.accepted": 1.0}, ended=3.0, answered=True).spans
    assert span == Span("server", "server", 0.0, 2.0)


def test_a_call_that_reported_ends_in_the_tool_whatever_stamps_are_missing() -> None:
    stamps = {"server.sent": 1.0, "worker.down": 2.0}
    span = waterfall(stamps, ended=9.0, reported=True).spans[-1]
    assert span == Span("tool", "tool", 1.0, 7.0, unfinished=True)


def test_an_answer_that_is_on_its_way_back_leaves_no_hop_under_way() -> None:
    stamps = {name: WHOLE[name] for name in STAMPS[:-2]}
    assert not waterfall(stamps, ended=2000.0).spans[-1].unfinished


def test_a_call_that_ended_before_its_last_stamp_lasts_no_less_than_nothing() -> None:
    assert waterfall({"server.accepted": 5.0}, ended=4.0).spans[0].seconds == 0.0
    spans = waterfall({"server.accepted": 5.0, "worker.down": 8.0}, ended=6.0).spans
    assert [(span.start, span.seconds) for span in spans] == [(0.0, 1.0), (1.0, 0.0)]


@given(
    st.dictionaries(st.sampled_from(STAMPS), st.floats(0, 1e12)),
    st.none() | st.floats(0, 1e12),
    st.booleans(),
)
def test_no_hop_starts_before_the_one_before_it_has_ended_or_lasts_less_than_nothing(
    stamps: dict[str, float], ended: float | None, reported: bool
) -> None:
    at = 0.0
    for span in waterfall(stamps, ended=ended, reported=reported).spans:
        assert span.start >= at - 1e-3
        assert span.seconds >= 0
        at = span.start + span.seconds


@given(ahead=st.floats(-1e6, 1e6))
def test_however_far_the_browsers_clock_is_off_the_tools_own_time_is_kept(ahead: float) -> None:
    stamps = {
        name: at if name.startswith(("server", "client")) else at + ahead
        for name, at in WHOLE.items()
    }
    tool = next(span for span in waterfall(stamps).spans if span.hop == "tool")
    assert tool.seconds == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize(
    ("stamps", "place"),
    [
        (["server.accepted"], "server"),
        (["server.accepted", "server.sent"], "websocket"),
        (["server.sent", "worker.down"], "service worker"),
        (["worker.down", "relay.down", "server.received"], "relay"),
        (["relay.down", "runtime.down"], "page"),
        (["runtime.down", "runtime.up", "relay.up"], "answer"),
    ],
)
def test_the_furthest_stamp_shows_how_far_a_call_got(stamps: list[str], place: str) -> None:
    assert reached(stamps) == place


@pytest.mark.parametrize("stamps", [[], ["server.sent"], ["runtime.down"]])
def test_a_report_proves_that_the_page_was_reached(stamps: list[str]) -> None:
    assert reached(stamps, reported=True) == "page"


def test_a_value_proves_that_the_call_came_all_the_way() -> None:
    assert reached(["server.sent"], answered=True) == "answer"
    assert reached(["runtime.up"], reported=True) == "answer"


@given(remote=st.floats(0, 1e6), ahead=st.floats(-1e6, 1e6), one_way=st.floats(0, 1e3))
def test_the_offset_is_exact_when_both_ways_take_as_long(
    remote: float, ahead: float, one_way: float
) -> None:
    sent, received = remote + ahead - one_way, remote + ahead + one_way
    offset = clock_offset(sent=sent, received=received, remote=remote)
    assert remote + offset == pytest.approx(remote + ahead, abs=1e-6)


def in_a_fleet(ahead: float) -> dict[str, float]:
    """The stamps of a call whose worker's clock is ahead, on the endpoint's clock."""
    theirs = {name: 1010.0 + ahead + i for i, name in enumerate(STAMPS[1:-1])}
    began, ended = theirs["server.accepted"], theirs["server.received"]
    ours = on_our_clock(theirs, began=began, ended=ended, sent=1008.0, received=1020.0)
    return {"client.sent": 1000.0, "server.accepted": 1004.0, "client.received": 1024.0} | ours


@pytest.mark.parametrize("ahead", [0.0, 3600.0, -3600.0])
def test_a_call_in_a_fleet_has_the_hops_of_its_worker_on_the_endpoints_clock(ahead: float) -> None:
    falls = waterfall(in_a_fleet(ahead))
    assert [(span.hop, span.carrier) for span in falls.spans] == [
        ("MCP client → server", "mcp"),
        ("server", "server"),
        ("endpoint → worker", "fleet"),
        ("worker of the fleet", "server"),
        *HOPS[2:9],
        ("worker → endpoint", "fleet"),
        ("server → MCP client", "mcp"),
    ]
    assert [span.seconds for span in falls.spans] == [4, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4]


def test_a_call_of_a_python_tool_in_a_fleet_has_no_browser_hops() -> None:
    theirs = {"server.accepted": 5.0}
    stamps = on_our_clock(theirs, began=5.0, ended=7.5, sent=1.0, received=4.0)
    falls = waterfall({"server.accepted": 0.0} | stamps)
    assert [(span.hop, span.seconds) for span in falls.spans] == [
        ("server", 1.0),
        ("endpoint → worker", 0.25),
        ("worker of the fleet", 2.75),
    ]


@pytest.mark.parametrize(
    ("stamp", "hop"), [("fleet.sent", "endpoint → worker"), ("fleet.down", "worker of the fleet")]
)
def test_a_call_that_ended_in_a_fleet_names_the_hop(stamp: str, hop: str) -> None:
    falls = waterfall({"server.accepted": 0.0, stamp: 1.0}, ended=3.0)
    assert (falls.spans[-1].hop, falls.spans[-1].unfinished) == (hop, True)
