"""Channels between workers and endpoints, over a link that drops, and is interrupted."""

from collections import deque
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.fleet import channel
from opentabs_py.core.fleet.channel import PIECE, WINDOW, Channel, Packet
from opentabs_py.errors import ProtocolError

MOST = 64 * 1024 * 1024


class Side:
    """A channel, and what has arrived on it."""

    def __init__(self, most: int = MOST) -> None:
        self.channel = Channel(most=most)
        self.received: list[bytes] = []

    def handle(self, data: bytes, now: float) -> None:
        self.received += self.channel.receive(Packet.decode(data), now)


def exchange(one: Side, other: Side, now: float = 0.0) -> int:
    """Carry packets both ways until nobody has any; return how many there were."""
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
    one = Channel(most=MOST)
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
    side = Channel(most=MOST)
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


def test_after_an_interruption_everything_is_repeated_at_once() -> None:
    one, other = Side(), Side()
    one.channel.send(b"first")
    one.channel.packets(0.0)  # dropped
    one.channel.relink(0.2)
    exchange(one, other, now=0.2)
    assert other.received == [b"first"]


def test_a_message_that_is_too_long_is_refused() -> None:
    one, other = Side(), Side(most=PIECE)
    one.channel.send(b"x" * (PIECE + 1))
    with pytest.raises(ProtocolError, match="longer than"):
        exchange(one, other)


def test_an_acknowledgement_of_what_was_never_sent_counts_for_nothing() -> None:
    one = Channel(most=MOST)
    one.send(b"x")
    one.packets(0.0)
    one.receive(Packet(acknowledged=7), 0.0)
    assert not one.settled


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" + bytes(8)])
def test_bytes_that_are_not_a_packet_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Packet.decode(data)


def test_a_packet_says_that_its_sender_does_not_know_the_channel() -> None:
    assert Packet.decode(Packet(unknown=True).encode()).unknown


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
