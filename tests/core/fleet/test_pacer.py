"""How much is in flight to NATS at once, with time passed in."""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from opentabs_py.core.fleet.congestion import INITIAL_WINDOW, MAX_WINDOW, MIN_WINDOW, QUEUING_DELAY
from opentabs_py.core.fleet.pacer import SHORT, Outgoing, Pacer

LONG = 64 * 1024  # bytes of a long message


def long(subject: str = "a") -> Outgoing:
    return Outgoing(subject, bytes(LONG))


def short(subject: str = "a") -> Outgoing:
    return Outgoing(subject, bytes(SHORT))


def taken(pacer: Pacer) -> list[Outgoing]:
    """Return all messages that may be published now."""
    messages = []
    while (message := pacer.take()) is not None:
        messages.append(message)
    return messages


@dataclass
class SlowLink:
    """A link that carries bytes at a rate, with a pacer in front of it.

    Attributes:
        rate: In bytes per second.
        latency: In seconds, each way.
        buffer: As long as so many bytes are written and not carried, nothing more is written,
            except for pings.
    """

    rate: float
    latency: float = 0.0
    buffer: float = float("inf")
    pacer: Pacer = field(default_factory=Pacer)
    now: float = 0.0
    arrived: list[tuple[float, Outgoing]] = field(default_factory=list)
    _unwritten: list[Outgoing] = field(default_factory=list)
    _written: deque[tuple[float, Outgoing | None]] = field(default_factory=deque)  # None: a ping
    _buffered: int = 0
    _free_at: float = 0.0
    _pongs: deque[float] = field(default_factory=deque)

    def run(self, until: float = float("inf")) -> None:
        """Carry everything, or what is carried by a time."""
        while self.now < until:
            self._publish()
            carried_at = self._carried_at()
            if self._pongs and self._pongs[0] <= carried_at:
                self.now = self._pongs.popleft()
                self.pacer.handle_pong(self.now)
            elif self._written:
                self._carry(carried_at)
            else:
                return

    def _carried_at(self) -> float:
        if not self._written:
            return float("inf")
        written_at, message = self._written[0]
        size = 0 if message is None else len(message.data)
        return max(self._free_at, written_at) + size / self.rate

    def _carry(self, at: float) -> None:
        self.now = self._free_at = at
        _, message = self._written.popleft()
        if message is None:
            self._pongs.append(at + 2 * self.latency)
            return
        self._buffered -= len(message.data)
        self.arrived.append((at + self.latency, message))
        self._write()

    def _write(self) -> None:
        if self._buffered < self.buffer:
            self._written += ((self.now, message) for message in self._unwritten)
            self._buffered += sum(len(message.data) for message in self._unwritten)
            self._unwritten.clear()

    def _publish(self) -> None:
        while True:
            if self.pacer.ping_due:
                self._write()
                unwritten = sum(len(message.data) for message in self._unwritten)
                self.pacer.handle_ping(self.now, unwritten=unwritten)
                self._written.append((self.now, None))
            message = self.pacer.take()
            if message is None:
                self._write()
                return
            self._unwritten.append(message)


def test_short_messages_pass_the_long_ones_that_wait() -> None:
    pacer = Pacer()
    for _ in range(10):
        pacer.add(long())
    assert sum(len(each.data) for each in taken(pacer)) == INITIAL_WINDOW
    pacer.add(short("b"))
    assert taken(pacer) == [short("b")]
    assert not pacer.empty


def test_the_messages_of_a_subject_keep_their_order() -> None:
    pacer = Pacer()
    order = [short(), long(), short(), long(), short()]
    for message in order:
        pacer.add(message)
    link = SlowLink(1_000_000, pacer=pacer)
    link.run()
    assert [message for _, message in link.arrived] == order
    assert pacer.empty


def test_subjects_take_turns() -> None:
    link = SlowLink(100_000)
    for subject in "aaaaaabbc":
        link.pacer.add(long(subject))
    link.run()
    assert "".join(message.subject for _, message in link.arrived) == "abcabaaaa"


@pytest.mark.parametrize("buffer", [65_536, 262_144, float("inf")])
@pytest.mark.parametrize("latency", [0.0, 0.1])
@pytest.mark.parametrize("rate", [30_000, 100_000, 1_000_000, 10_000_000])
def test_a_slow_link_is_used_and_delays_short_messages_little(
    rate: float, latency: float, buffer: float
) -> None:
    link = SlowLink(rate, latency, buffer)
    count = int(30 * rate / LONG)
    for _ in range(count):
        link.pacer.add(long())
    link.run()
    alone = count * LONG / rate
    assert link.now < 1.05 * alone + 10 * (2 * latency)  # which it takes to know the link

    link.arrived.clear()
    start = link.now
    for _ in range(count):
        link.pacer.add(long())
    link.pacer.add(short("beat"))
    link.run(until=start + 10)
    link.pacer.add(short("beat"))
    link.run()
    times = [at - start for at, message in link.arrived if message.subject == "beat"]
    shortest = max(LONG / rate, latency)  # of the round trips
    for at, took in zip((0, 10), times, strict=True):
        assert took - at < 2 * QUEUING_DELAY + 2 * shortest


def test_a_link_that_has_become_slow_is_noticed() -> None:
    link = SlowLink(100_000_000)
    for _ in range(1000):
        link.pacer.add(long())
    link.run()
    link.rate = 100_000
    for _ in range(200):
        link.pacer.add(long())
    link.run(until=link.now + MAX_WINDOW / link.rate + 10)
    added = link.now
    link.pacer.add(short("beat"))
    link.run()
    [at] = [at for at, message in link.arrived if message.subject == "beat"]
    assert at - added < QUEUING_DELAY + 2 * LONG / link.rate


def window_after(*pings: float) -> int:
    """Return the window after pings that took this long, each sent with a full window."""
    pacer = Pacer()
    for took in pings:
        for _ in range(MAX_WINDOW // LONG):
            pacer.add(long())
        taken(pacer)
        pacer.handle_ping(0.0, unwritten=0)
        pacer.handle_pong(took)
    return sum(len(message.data) for message in taken(pacer))


@pytest.mark.parametrize(
    ("delay", "times"),
    [
        (0.24, 2),
        (0.26, 1),
        (QUEUING_DELAY, 1),
        (2 * QUEUING_DELAY, 0.5),
        (100 * QUEUING_DELAY, 0.01),
    ],
)
def test_the_window_follows_the_delay(delay: float, times: float) -> None:
    quick = 0.1
    assert window_after(quick) == 2 * INITIAL_WINDOW
    assert window_after(quick, quick + delay) == max(MIN_WINDOW, 2 * INITIAL_WINDOW * times)


def test_a_ping_covers_only_what_the_one_before_does_not() -> None:
    pacer = Pacer()
    for _ in range(10):
        pacer.add(long())
    for _ in range(2):
        assert pacer.take() is not None
        pacer.handle_ping(0.0, unwritten=0)
    for _ in range(2):
        pacer.handle_pong(0.0)
    assert sum(len(message.data) for message in taken(pacer)) == 2 * INITIAL_WINDOW


def test_a_ping_that_overtakes_data_is_repeated() -> None:
    pacer = Pacer()
    for _ in range(3):
        pacer.add(long())
    assert len(taken(pacer)) == 2
    is_due = []
    for _ in range(3):
        is_due.append(pacer.ping_due)
        if pacer.ping_due:
            pacer.handle_ping(0.0, unwritten=2 * LONG)
    assert is_due == [True, True, False]  # two of them are enough at a time
    pacer.handle_pong(0.1)
    assert taken(pacer) == []  # nothing has arrived
    pacer.handle_ping(0.1, unwritten=0)
    for _ in range(2):
        pacer.handle_pong(0.2)
    assert len(taken(pacer)) == 1


def test_little_is_published_without_a_ping() -> None:
    pacer = Pacer()
    for _ in range(MIN_WINDOW // SHORT - 1):
        pacer.add(short())
    taken(pacer)
    assert not pacer.ping_due
    pacer.add(short())
    taken(pacer)
    assert pacer.ping_due


def test_on_a_fast_link_the_window_grows_up_to_a_bound() -> None:
    pacer = Pacer()
    most = 0
    for _ in range(20):
        for _ in range(MAX_WINDOW // LONG + 1):
            pacer.add(long())
        most = max(most, sum(len(each.data) for each in taken(pacer)))
        pacer.handle_ping(0.0, unwritten=0)
        pacer.handle_pong(0.0)
    assert most == MAX_WINDOW


def test_what_waited_when_the_link_went_down_is_forgotten() -> None:
    pacer = Pacer()
    for _ in range(10):
        pacer.add(long())
    taken(pacer)
    pacer.add(short("b"))
    pacer.handle_ping(0.0, unwritten=0)
    pacer.handle_disconnected()
    assert pacer.empty
    assert not pacer.ping_due
    pacer.add(long())
    pacer.add(long())
    assert len(taken(pacer)) == 2


def test_after_a_reconnect_the_link_is_known_again() -> None:
    pacer = Pacer()
    pacer.handle_ping(0.0, unwritten=0)
    pacer.handle_pong(0.0)
    pacer.handle_disconnected()
    for _ in range(10):
        pacer.add(long())
    taken(pacer)
    pacer.handle_ping(0.0, unwritten=0)
    pacer.handle_pong(2 * QUEUING_DELAY)  # the new network's round trip
    assert sum(len(message.data) for message in taken(pacer)) == 2 * INITIAL_WINDOW


def test_every_message_arrives_once_whatever_the_rate_does() -> None:
    draw = random.Random(7)
    link = SlowLink(50_000, 0.05, 70_000)
    sent = []
    for number in range(300):
        size = draw.choice([10, SHORT, SHORT + 1, LONG])
        message = Outgoing(draw.choice("abc"), number.to_bytes(2, "big") + bytes(size - 2))
        link.pacer.add(message)
        sent.append(message)
        if not number % 20:
            link.rate = draw.choice([20_000, 1e6, 1e9])
            link.run()
    link.run()
    for subject in "abc":
        arrived = [each for _, each in link.arrived if each.subject == subject]
        assert arrived == [each for each in sent if each.subject == subject]
