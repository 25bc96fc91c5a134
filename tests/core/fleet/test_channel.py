"""Channels between workers and endpoints, over a link that drops packets and is interrupted."""

from collections import deque
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.fleet import channel
from opentabs_py.core.fleet.channel import PIECE, WINDOW, Channel, Packet
from opentabs_py.core.fleet.congestion import (
    INITIAL_WINDOW,
    MIN_WINDOW,
    QUEUING_DELAY,
    CongestionWindow,
)
from opentabs_py.errors import ProtocolError

MOST = 64 * 1024 * 1024


class Side:
    """A channel, and the messages that have arrived on it."""

    def __init__(self, longest_message: int = MOST) -> None:
        self.channel = Channel(
            longest_message=longest_message, window=CongestionWindow(WINDOW * PIECE)
        )
        self.received: list[bytes] = []

    def handle(self, data: bytes, now: float) -> None:
        self.received += self.channel.receive(Packet.decode(data), now)


def exchange(one: Side, other: Side, now: float = 0.0) -> int:
    """Carry packets both ways until there are none left; return how many there were."""
    count = 0
    while True:
        there = [packet.encode() for packet in one.channel.packets(now)]
        back = [packet.encode() for packet in other.channel.packets(now)]
        for data in there:
            other.handle(data, now)
        for data in back:
            one.handle(data, now)
        if not there and not back:
            return count
        count += len(there) + len(back)


def carry_slowly(one: Side, other: Side, rate: float) -> tuple[int, float, int]:
    """Carry one side's packets at a rate, in bytes per second, and the other's at once.

    Return how many bytes were sent until everything had arrived, how long that took, and how many
    bytes were on their way at most.
    """
    on_the_way: deque[tuple[float, bytes]] = deque()
    now = free_at = 0.0
    sent = most = 0
    while True:
        for packet in one.channel.packets(now):
            data = packet.encode()
            free_at = max(free_at, now) + len(data) / rate
            on_the_way.append((free_at, data))
            sent += len(data)
        most = max(most, sum(len(data) for _, data in on_the_way))
        answers = other.channel.packets(now)
        for answer in answers:
            one.handle(answer.encode(), now)
        if answers:
            continue  # there may be room for more
        if one.channel.settled:
            return sent, now, most
        due = [on_the_way[0][0]] if on_the_way else []
        now = min(one.channel.deadline, other.channel.deadline, *due)
        while on_the_way and on_the_way[0][0] <= now:
            other.handle(on_the_way.popleft()[1], now)


def numbers(side: Side, now: float) -> list[int | None]:
    return [packet.number for packet in side.channel.packets(now)]


def a_dropped_window() -> tuple[Side, Side]:
    """Return two sides; the first has sent a full window, which was dropped."""
    one, other = Side(), Side()
    one.channel.send(b"x" * (WINDOW + 2) * PIECE)
    assert numbers(one, 0.0) == [*range(WINDOW)]
    return one, other


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * WINDOW * PIECE])
def test_a_message_of_any_size_arrives_whole(size: int) -> None:
    one, other = Side(), Side()
    message = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    one.channel.send(message)
    exchange(one, other)
    assert other.received == [message]
    exchange(one, other, now=channel.ACKNOWLEDGE_AFTER)
    assert one.channel.settled
    assert one.channel.queued == 0


def test_no_more_is_under_way_than_the_window_allows() -> None:
    one = Channel(longest_message=MOST, window=CongestionWindow(WINDOW * PIECE))
    one.send(b"x" * (WINDOW + 5) * PIECE)
    assert len(one.packets(0.0)) == WINDOW
    assert not one.packets(0.1)
    one.receive(Packet(acknowledged=2), 0.1)
    assert [packet.number for packet in one.packets(0.1)] == [WINDOW, WINDOW + 1]


def test_an_answer_carries_the_acknowledgement() -> None:
    one, other = Side(), Side()
    one.channel.send(b"question")
    [packet] = one.channel.packets(0.0)
    other.handle(packet.encode(), 0.0)
    assert not other.channel.packets(0.0)
    other.channel.send(b"answer")
    [answer] = other.channel.packets(0.001)
    one.handle(answer.encode(), 0.001)
    assert one.channel.settled
    assert not other.channel.packets(1.0 - 0.5)  # nothing is left to acknowledge


def test_without_an_answer_it_is_acknowledged_soon() -> None:
    one, other = Side(), Side()
    one.channel.send(b"report")
    other.handle(one.channel.packets(0.0)[0].encode(), 0.0)
    assert other.channel.deadline == channel.ACKNOWLEDGE_AFTER
    [packet] = other.channel.packets(channel.ACKNOWLEDGE_AFTER)
    assert packet == Packet(acknowledged=1)


def test_what_arrived_last_can_be_acknowledged_at_once() -> None:
    one, other = Side(), Side()
    one.channel.send(b"the end")
    other.handle(one.channel.packets(0.0)[0].encode(), 0.0)
    other.channel.acknowledge(0.0)
    [packet] = other.channel.packets(0.0)
    assert packet == Packet(acknowledged=1)
    other.channel.acknowledge(0.0)
    assert not other.channel.packets(0.0)  # there is nothing new to acknowledge


def test_after_an_interruption_what_arrived_is_acknowledged_again() -> None:
    side = Channel(longest_message=MOST, window=CongestionWindow(WINDOW * PIECE))
    side.relink(1.0)
    assert side.packets(1.0) == [Packet()]
    assert side.deadline == inf


def test_what_was_dropped_is_repeated_and_arrives_once() -> None:
    one, other = Side(), Side()
    one.channel.send(b"first")
    one.channel.packets(0.0)  # dropped
    one.channel.send(b"second")
    [second] = one.channel.packets(0.1)
    other.handle(second.encode(), 0.1)
    assert other.received == []
    assert one.channel.deadline == 0.1 + channel.REPEAT_AFTER
    exchange(one, other, now=one.channel.deadline)
    assert other.received == [b"first", b"second"]


@pytest.mark.parametrize("rate", [66_000, 100_000, 262_144, 1_000_000, 100_000_000])
def test_a_slow_link_carries_little_more_than_the_message(rate: float) -> None:
    one, other = Side(), Side()
    message = bytes(4 * WINDOW * PIECE)
    one.channel.send(message)
    sent, took, _ = carry_slowly(one, other, rate)
    assert other.received == [message]
    assert sent < 1.04 * len(message)
    assert took < 1.04 * len(message) / rate + channel.ACKNOWLEDGE_AFTER


def test_a_window_that_was_dropped_is_repeated_as_soon_as_one_piece_of_it_arrives() -> None:
    one, other = a_dropped_window()
    now = one.channel.deadline
    assert now == channel.REPEAT_AFTER
    [last] = one.channel.packets(now)
    assert last.number == WINDOW - 1
    other.handle(last.encode(), now)
    [answer] = other.channel.packets(now)
    assert answer == Packet(missing=True)
    one.handle(answer.encode(), now)
    assert numbers(one, now) == [*range(WINDOW)]


def test_without_an_acknowledgement_the_last_piece_is_repeated_less_and_less_often() -> None:
    one, _ = a_dropped_window()
    times: list[float] = []
    for _ in range(8):
        times.append(one.channel.deadline)
        assert not one.channel.packets(times[-1] - 0.001)
        assert numbers(one, times[-1]) == [WINDOW - 1]
    silences = [later - before for before, later in pairwise([0.0, *times])]
    assert silences == [1, 2, 4, 8, 16, 30, 30, 30]


def test_how_long_it_waits_follows_the_last_silence() -> None:
    one, _ = a_dropped_window()
    one.channel.receive(Packet(acknowledged=1), 3.0)
    assert one.channel.deadline == 3.0 + channel.PATIENCE * 3.0
    one.channel.packets(3.0)
    assert one.channel.deadline == 3.0 + channel.PATIENCE * 3.0
    one.channel.receive(Packet(acknowledged=2), 3.5)
    assert one.channel.deadline == 3.5 + channel.PATIENCE * 0.5
    one.channel.receive(Packet(acknowledged=3), 3.6)
    assert one.channel.deadline == 3.6 + channel.REPEAT_AFTER
    one.channel.receive(Packet(acknowledged=4), 99.0)
    assert one.channel.deadline == 99.0 + channel.REPEAT_AFTER_AT_MOST


def test_a_pause_in_which_nothing_was_sent_is_not_silence() -> None:
    one, other = Side(), Side()
    one.channel.send(b"first")
    exchange(one, other)
    exchange(one, other, now=channel.ACKNOWLEDGE_AFTER)
    one.channel.send(b"second")
    one.channel.packets(60.0)
    one.channel.send(b"third")
    one.channel.receive(Packet(acknowledged=2), 60.1)
    one.channel.packets(60.1)
    assert one.channel.deadline == 60.1 + channel.REPEAT_AFTER


def test_a_piece_that_was_dropped_is_repeated_once_when_others_arrive_before_it() -> None:
    one, other = Side(), Side()
    one.channel.send(b"x" * 5 * PIECE)
    for packet in [*one.channel.packets(0.0)][1:]:
        other.handle(packet.encode(), 0.1)
        one.handle(other.channel.packets(0.1)[0].encode(), 0.1)
        repeated = numbers(one, 0.1)
        assert repeated == ([*range(5)] if packet.number == 1 else [])
    assert other.received == []


def test_what_is_dropped_again_is_repeated_after_a_silence() -> None:
    one, other = a_dropped_window()
    missing = Packet(missing=True)
    one.channel.receive(missing, 0.1)
    assert numbers(one, 0.1) == [*range(WINDOW)]  # dropped again
    one.channel.receive(missing, 0.9)
    assert numbers(one, 0.9) == []
    assert one.channel.deadline == 0.9 + channel.REPEAT_AFTER  # the link is not silent
    exchange(one, other, now=one.channel.deadline)
    assert other.received == [b"x" * (WINDOW + 2) * PIECE]


def test_what_was_missing_before_it_was_acknowledged_is_not_repeated() -> None:
    one, _ = a_dropped_window()
    one.channel.receive(Packet(acknowledged=3), 0.1)
    one.channel.packets(0.1)
    one.channel.receive(Packet(acknowledged=2, missing=True), 0.1)
    assert numbers(one, 0.1) == []
    one.channel.receive(Packet(acknowledged=3, missing=True), 0.1)
    assert numbers(one, 0.1) == [*range(3, WINDOW + 2)]


def test_a_piece_that_arrives_again_is_not_taken_for_a_missing_one() -> None:
    one, other = Side(), Side()
    one.channel.send(b"once")
    [packet] = one.channel.packets(0.0)
    for _ in range(2):
        other.handle(packet.encode(), 0.0)
    assert other.channel.packets(0.0) == [Packet(acknowledged=1)]


def test_it_is_said_once_and_by_an_answer_too_that_a_piece_is_missing() -> None:
    one = Channel(longest_message=MOST, window=CongestionWindow(WINDOW * PIECE))
    one.receive(Packet(number=1), 0.0)
    one.send(b"answer")
    assert one.packets(0.0) == [Packet(0, 0, b"answer", missing=True)]
    one.send(b"another")
    assert one.packets(0.0) == [Packet(0, 1, b"another")]
    one.receive(Packet(number=1), 0.0)
    one.receive(Packet(number=0), 0.0)
    assert one.packets(0.02) == [Packet(1)]
    one.receive(Packet(number=2), 0.03)
    one.receive(Packet(number=0), 0.03)  # again
    assert one.packets(0.03) == [Packet(1, missing=True)]


def test_after_an_interruption_everything_is_repeated_at_once() -> None:
    one, other = Side(), Side()
    one.channel.send(b"first")
    one.channel.packets(0.0)  # dropped
    one.channel.packets(1.0)  # and again
    one.channel.relink(1.2)
    assert one.channel.deadline == 1.2
    assert numbers(one, 1.2) == [0]
    assert one.channel.deadline == 1.2 + channel.REPEAT_AFTER
    exchange(one, other, now=one.channel.deadline)
    assert other.received == [b"first"]


def test_after_an_interruption_what_had_arrived_all_the_same_is_not_repeated() -> None:
    one, _ = a_dropped_window()
    one.channel.relink(1.0)
    one.channel.receive(Packet(acknowledged=3), 1.0)
    assert numbers(one, 1.0) == [*range(3, WINDOW + 2)]


# --- congestion control ---


@pytest.mark.parametrize("rate", [66_000, 100_000, 1_000_000, 4_000_000])
def test_on_a_slow_link_little_is_in_flight(rate: float) -> None:
    one, other = Side(), Side()
    one.channel = Channel(longest_message=MOST, window=CongestionWindow())
    message = bytes(int(15 * rate))
    one.channel.send(message)
    _, took, most = carry_slowly(one, other, rate)
    assert other.received == [message]
    assert took < 1.1 * len(message) / rate
    assert most / rate < 2 * QUEUING_DELAY + 3 * PIECE / rate


def test_on_a_fast_link_a_long_message_arrives_soon() -> None:
    one, other = Side(), Side()
    one.channel = Channel(longest_message=MOST, window=CongestionWindow())
    one.channel.send(bytes(20 * 1024 * 1024))
    exchange(one, other)
    for now in (1.0, 2.0, 3.0, 4.0):
        exchange(one, other, now=now)
    assert one.channel.settled


def test_the_congestion_window_counts_bytes_and_not_messages() -> None:
    one = Channel(longest_message=MOST, window=CongestionWindow())
    for _ in range(WINDOW):
        one.send(b"report")
    assert len(one.packets(0.0)) == WINDOW


def test_channels_to_the_same_process_share_their_congestion_window() -> None:
    window = CongestionWindow()
    window.handle_ack(in_flight=0, round_trip=0.0)
    one, another = (
        Channel(longest_message=MOST, window=window),
        Channel(longest_message=MOST, window=window),
    )
    one.send(bytes(2 * PIECE))
    assert len(one.packets(0.0)) == 2
    one.receive(Packet(acknowledged=2), 60.0)
    another.send(bytes(2 * PIECE))
    assert len(another.packets(60.0)) == 1


def test_an_acknowledgement_of_what_was_sent_twice_is_not_measured() -> None:
    window = CongestionWindow()
    window.handle_ack(in_flight=0, round_trip=0.0)
    one = Channel(longest_message=MOST, window=window)
    one.send(bytes(5 * PIECE))
    assert len(one.packets(0.0)) == 2
    [again] = one.packets(one.deadline)
    assert again.number == 1
    one.receive(Packet(acknowledged=2), 20.0)
    assert [packet.number for packet in one.packets(20.0)] == [2, 3]
    one.receive(Packet(acknowledged=2, missing=True), 20.0)
    assert [packet.number for packet in one.packets(20.0)] == [2, 3]
    one.receive(Packet(acknowledged=4), 60.0)
    assert window.size == INITIAL_WINDOW
    one.packets(60.0)
    one.receive(Packet(acknowledged=5), 90.0)
    assert window.size == MIN_WINDOW


def test_after_an_interruption_round_trips_are_measured_again() -> None:
    window = CongestionWindow()
    window.handle_ack(in_flight=0, round_trip=0.0)
    one = Channel(longest_message=MOST, window=window)
    one.send(b"x")
    one.packets(0.0)
    one.relink(1.0)
    one.packets(1.0)
    one.receive(Packet(acknowledged=1), 1.0)
    one.send(b"y")
    one.packets(2.0)
    one.receive(Packet(acknowledged=2), 60.0)  # it takes a minute each time now
    assert window.size == INITIAL_WINDOW


# --- what is refused ---


def test_a_message_that_is_too_long_is_refused() -> None:
    one, other = Side(), Side(longest_message=PIECE)
    one.channel.send(b"x" * (PIECE + 1))
    with pytest.raises(ProtocolError, match="longer than"):
        exchange(one, other)


def test_what_has_arrived_of_a_message_that_is_too_long_is_not_kept() -> None:
    side = Channel(longest_message=3, window=CongestionWindow())
    side.receive(Packet(number=0, piece=b"12", more_follows=True), 0.0)
    with pytest.raises(ProtocolError):
        side.receive(Packet(number=1, piece=b"34", more_follows=True), 0.0)
    assert side.receive(Packet(number=2, piece=b"5"), 0.0) == (b"5",)


def test_an_acknowledgement_of_what_was_never_sent_counts_for_nothing() -> None:
    one = Channel(longest_message=MOST, window=CongestionWindow(WINDOW * PIECE))
    one.send(b"x")
    one.packets(0.0)
    one.receive(Packet(acknowledged=7), 0.0)
    assert not one.settled


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" + bytes(8)])
def test_bytes_that_are_not_a_packet_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Packet.decode(data)


@pytest.mark.parametrize("said", [Packet(unknown=True), Packet(missing=True), Packet(2, 3, b"x")])
def test_a_packet_says_what_was_written(said: Packet) -> None:
    assert Packet.decode(said.encode()) == said


@given(
    messages=st.lists(st.binary(max_size=40), max_size=30),
    answers=st.lists(st.binary(max_size=40), max_size=30),
    drops=st.lists(st.booleans(), max_size=200),
    relinks=st.sets(st.integers(0, 30)),
)
def test_each_message_arrives_once_and_in_order_whatever_is_dropped(
    messages: list[bytes], answers: list[bytes], drops: list[bool], relinks: set[int]
) -> None:
    one, other = Side(), Side()
    dropped = deque(drops)
    for message in messages:
        one.channel.send(message)
    for answer in answers:
        other.channel.send(answer)
    now = 0.0
    for turn in range(1000):
        if turn in relinks:
            one.channel.relink(now)
            other.channel.relink(now)
        there, back = one.channel.packets(now), other.channel.packets(now)
        for packets, side in ((there, other), (back, one)):
            for packet in packets:
                if not (dropped and dropped.popleft()):
                    side.handle(packet.encode(), now)
        if one.channel.settled and other.channel.settled:
            break
        now = min(one.channel.deadline, other.channel.deadline, now + 1.0)
    assert other.received == messages
    assert one.received == answers


def test_a_probe_is_answered_by_nothing_but_ignorance() -> None:
    one, other = Side(), Side()
    one.channel.send(b"a request")
    exchange(one, other)
    exchange(one, other, 1.0)
    one.channel.probe(2.0)
    assert one.channel.deadline == 2.0
    assert exchange(one, other, 2.0) == 1
    assert other.channel.deadline == inf
