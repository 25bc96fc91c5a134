"""Pacing: hold back long messages while enough of them are in flight to NATS.

A connection carries everything in order, so each message waits for those before it. On a slow link,
a long result would delay for many seconds what has to arrive soon: the pings that keep the
connection alive, the heartbeats of this process, and the progress of other calls.

So long messages wait here while the congestion window is full, and subjects take turns. Pings
measure the window: NATS answers a ping when it has read everything before it. Short messages pass,
unless others of their subject wait.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from opentabs_py.core.fleet.congestion import MIN_WINDOW, CongestionWindow

SHORT: Final = 4 * 1024  # bytes; a tenth of a second of the slowest network of any use


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to be published.

    Attributes:
        subject: Where.
        data: Its content.
        reply: Where an answer is expected; empty if nowhere.
    """

    subject: str
    data: bytes
    reply: str = ""


@dataclass(frozen=True, slots=True)
class _Ping:
    """A ping that was sent.

    Attributes:
        sent_at: When.
        in_flight: How many bytes were in flight before it.
        part: How many of them no earlier ping covers.
    """

    sent_at: float
    in_flight: int
    part: int


class Pacer:
    """What waits to be published, and when it may be. Times are seconds on any one steady clock."""

    def __init__(self) -> None:
        self._short: deque[Outgoing] = deque()
        self._waiting: dict[str, deque[Outgoing]] = {}  # by subject; the first one's turn is next
        self._in_flight = 0  # bytes; published, and not yet confirmed by a pong
        self._window = CongestionWindow()
        self._pings: deque[_Ping] = deque()  # unanswered, in order

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._short and not self._waiting

    @property
    def ping_due(self) -> bool:
        """Whether to send a ping: one for each half of the window, so that the link never idles."""
        uncovered = self._in_flight - self._covered
        return len(self._pings) < 2 and uncovered >= max(MIN_WINDOW, self._window.size // 2)

    def add(self, message: Outgoing) -> None:
        """Add a message; those of one subject are published in this order."""
        waiting = self._waiting.get(message.subject)
        if waiting is not None:
            waiting.append(message)
        elif len(message.data) <= SHORT:
            self._short.append(message)
        else:
            self._waiting[message.subject] = deque([message])

    def take(self) -> Outgoing | None:
        """Return the message to publish now; None if none may be."""
        if self._short:
            message = self._short.popleft()
        elif self._waiting and self._in_flight < self._window.size:
            subject = next(iter(self._waiting))
            waiting = self._waiting.pop(subject)
            message = waiting.popleft()
            if waiting:
                self._waiting[subject] = waiting  # behind the others
        else:
            return None
        self._in_flight += len(message.data)
        return message

    def handle_ping(self, now: float, *, unwritten: int) -> None:
        """Record that a ping is sent.

        Args:
            now: The time.
            unwritten: How many bytes were published, but will be sent after it.
        """
        in_flight = max(0, self._in_flight - unwritten)
        self._pings.append(_Ping(now, in_flight, part=max(0, in_flight - self._covered)))

    def handle_pong(self, now: float) -> None:
        """Handle the answer to the oldest ping: everything before it has arrived."""
        ping = self._pings.popleft()
        self._in_flight -= ping.part
        self._window.handle_ack(in_flight=ping.in_flight, round_trip=now - ping.sent_at)

    def handle_disconnected(self) -> None:
        """Forget what waits and what is in flight."""
        self._short.clear()
        self._waiting.clear()
        self._pings.clear()
        self._in_flight = 0
        self._window.handle_reconnect()

    @property
    def _covered(self) -> int:
        """How many bytes in flight the unanswered pings cover."""
        return sum(ping.part for ping in self._pings)
