"""Pacing: no more on its way to NATS than the link carries in about half a second.

A connection carries everything in order, so each message waits for those before it. On a slow link,
a long result would hold up for many seconds what has to arrive soon: the pings that keep the
connection alive, the beats that show that this process is there, and the progress of other calls.

So long messages wait here, those of different subjects in turn, while too much is on its way. How
much that is, pings show: NATS answers one once it has read everything before it, so the time beyond
that of the quickest answer is what the messages before it took. Short messages pass, unless others
of their subject wait.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from opentabs_py.core.fleet.pace import ALWAYS_ALLOWED, Pace

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
        ahead: How many bytes were on the way before it.
        part: How many of them no ping before it is about.
    """

    sent_at: float
    ahead: int
    part: int


class Pacer:
    """What waits to be published, and when it may be. Times are seconds on any one steady clock."""

    def __init__(self) -> None:
        self._short: deque[Outgoing] = deque()
        self._waiting: dict[str, deque[Outgoing]] = {}  # by subject; the first one's turn is next
        self._on_the_way = 0  # bytes; published, and not known to have arrived
        self._pace = Pace()
        self._pings: deque[_Ping] = deque()  # unanswered, in order

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._short and not self._waiting

    @property
    def ping_due(self) -> bool:
        """Whether to send a ping: one for each half of what is allowed, so the link never idles."""
        uncovered = self._on_the_way - self._covered
        return len(self._pings) < 2 and uncovered >= max(ALWAYS_ALLOWED, self._pace.allowed // 2)

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
        elif self._waiting and self._on_the_way < self._pace.allowed:
            subject = next(iter(self._waiting))
            waiting = self._waiting.pop(subject)
            message = waiting.popleft()
            if waiting:
                self._waiting[subject] = waiting  # behind the others
        else:
            return None
        self._on_the_way += len(message.data)
        return message

    def handle_ping(self, now: float, *, unwritten: int) -> None:
        """Record that a ping is sent.

        Args:
            now: The time.
            unwritten: How many bytes were published, but will be sent after it.
        """
        ahead = max(0, self._on_the_way - unwritten)
        self._pings.append(_Ping(now, ahead, part=max(0, ahead - self._covered)))

    def handle_pong(self, now: float) -> None:
        """Record that a ping was answered: everything before it has arrived."""
        ping = self._pings.popleft()
        self._on_the_way -= ping.part
        self._pace.handle_answer(ahead=ping.ahead, took=now - ping.sent_at)

    def handle_disconnected(self) -> None:
        """Forget what waits and what is on its way."""
        self._short.clear()
        self._waiting.clear()
        self._pings.clear()
        self._on_the_way = 0
        self._pace.handle_reconnect()

    @property
    def _covered(self) -> int:
        """How many bytes on the way the unanswered pings are about."""
        return sum(ping.part for ping in self._pings)
