"""A channel: messages between two processes, each once and in order, over a link that drops some.

NATS delivers a message at most once: what is published while the other side reconnects is gone. A
channel numbers its pieces, repeats those that were not acknowledged, and stops sending while too
many of them are unacknowledged. There is one for each call, so that no call waits for another's
long result.

Pieces are accepted in order only ("go-back-N"). A link that drops none keeps their order, so a
piece that arrives before its turn proves that those before it were dropped. The other side then
says that they are missing, and everything from there on is sent again.

Silence proves nothing: on a slow link, a piece waits for those that were sent before it, and
sending them again would make it wait longer. After a silence, only the last piece that was sent is
repeated. It arrives after all others, so its acknowledgement says what has become of them. The next
silence may be twice as long; after an acknowledgement, a few times as long as the one before that.

If this side's own connection was interrupted, most of what was sent was dropped: all is sent again.

How much may be in flight is limited by congestion control: the other side's connection may be slow,
and what waits there would delay everything else that is sent to it.
"""

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple, Self

from opentabs_py.core.fleet.congestion import CongestionWindow
from opentabs_py.errors import ProtocolError

PIECE: Final = 64 * 1024  # bytes; a slow link carries it soon, and more would be no faster
WINDOW: Final = 64  # pieces that may be unacknowledged, at most
REPEAT_AFTER: Final = 1.0  # s without an acknowledgement, or longer on a slow link
REPEAT_AFTER_AT_MOST: Final = 30.0  # s; the other side may only have been busy
PATIENCE: Final = 4  # times the last silence; a repeated piece on the way doubles the next one
ACKNOWLEDGE_AFTER: Final = 0.02  # s; by then, an answer usually carries it
ACKNOWLEDGE_EVERY: Final = WINDOW // 4  # pieces

_HEADER: Final = struct.Struct("!BII")
LONGEST_PACKET: Final = PIECE + _HEADER.size  # bytes
_HAS_PIECE: Final = 1
_MORE_FOLLOWS: Final = 2
_UNKNOWN: Final = 4
_MISSING: Final = 8
_FLAGS: Final = _HAS_PIECE | _MORE_FOLLOWS | _UNKNOWN | _MISSING


@dataclass(frozen=True, slots=True)
class Packet:
    """What is published at once.

    Attributes:
        acknowledged: How many pieces of the other side have arrived.
        number: The number of the piece, from 0; None if this has none.
        piece: A part of a message.
        more_follows: Whether the message continues in the next piece.
        unknown: Whether the sender does not know this channel, or no longer.
        missing: Whether a piece after the acknowledged ones has arrived, so the next was dropped.
    """

    acknowledged: int = 0
    number: int | None = None
    piece: bytes | memoryview = b""
    more_follows: bool = False
    unknown: bool = False
    missing: bool = False

    def encode(self) -> bytes:
        """Return it as bytes: a header of 9 bytes, then the piece."""
        flags = (
            (self.number is not None) * _HAS_PIECE
            | self.more_follows * _MORE_FOLLOWS
            | self.unknown * _UNKNOWN
            | self.missing * _MISSING
        )
        return b"".join((_HEADER.pack(flags, self.number or 0, self.acknowledged), self.piece))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the packet that bytes encode.

        Raises:
            ProtocolError: They encode none.
        """
        if len(data) < _HEADER.size:
            raise ProtocolError(f"a packet has {len(data)} bytes; it needs {_HEADER.size} or more")
        flags, number, acknowledged = _HEADER.unpack_from(data)
        if flags & ~_FLAGS:
            raise ProtocolError(f"a packet has the flags {flags:#x}, of which some are unknown")
        return cls(
            acknowledged=acknowledged,
            number=number if flags & _HAS_PIECE else None,
            piece=memoryview(data)[_HEADER.size :],
            more_follows=bool(flags & _MORE_FOLLOWS),
            unknown=bool(flags & _UNKNOWN),
            missing=bool(flags & _MISSING),
        )


class _Flight(NamedTuple):
    """A piece that was published once.

    Attributes:
        sent_at: When.
        in_flight: How many bytes were in flight then, with its own.
    """

    sent_at: float
    in_flight: int


class Channel:
    """One side of a channel. Times are seconds on any one steady clock.

    Args:
        longest_message: The longest message to accept, in bytes.
        window: Limits how much is in flight; all channels to the same process share it.
    """

    def __init__(self, *, longest_message: int, window: CongestionWindow) -> None:
        self._longest_message = longest_message
        self._window = window
        # Pieces from the first unacknowledged one on, and whether their message continues after
        # them.
        self._pieces: deque[tuple[bytes | memoryview, bool]] = deque()
        self._first = 0  # the number of the first of them
        # One for each of them that was published; None for those that were sent more than once.
        self._flights: deque[_Flight | None] = deque()
        self._in_flight = 0  # bytes of these
        self._new_from = 0  # the number of the first piece that was never published
        self._queued = 0  # bytes
        self._silent_since = 0.0  # the last acknowledgement, if some are unacknowledged
        self._repeat_after = REPEAT_AFTER
        self._repeat_at = inf
        self._has_gone_back = False  # since the last acknowledgement or repetition
        self._received: list[bytes | memoryview] = []  # of a message that is not whole yet
        self._received_size = 0
        self._expected = 0
        self._is_missing = False  # a piece before one that arrived
        self._acknowledged = 0
        self._acknowledge_at = inf

    @property
    def settled(self) -> bool:
        """Whether the other side has acknowledged everything that was sent."""
        return not self._pieces

    @property
    def queued(self) -> int:
        """How many bytes the other side has not acknowledged."""
        return self._queued

    @property
    def deadline(self) -> float:
        """When `packets` has something again at the latest; infinite if it never does by itself."""
        return min(self._repeat_at, self._acknowledge_at)

    def send(self, message: bytes) -> None:
        """Send a message, of any length."""
        whole = memoryview(message)
        starts = range(0, len(message), PIECE) or range(1)
        for start in starts:
            piece = message if len(message) <= PIECE else whole[start : start + PIECE]
            self._pieces.append((piece, start + PIECE < len(message)))
        self._queued += len(message)

    def receive(self, packet: Packet, now: float) -> Sequence[bytes]:
        """Handle a packet, and return the messages that are complete now.

        Raises:
            ProtocolError: A message is longer than is accepted. What has arrived of it is dropped;
                its rest would be taken for another message.
        """
        self._handle_acknowledgement(packet.acknowledged, now)
        if packet.missing and packet.acknowledged == self._first:
            self._handle_missing(now)
        if packet.number is None:
            return ()
        if packet.number != self._expected:  # repeated, or one before it was dropped
            self._is_missing |= packet.number > self._expected
            self._acknowledge_at = now
            return ()
        self._expected += 1
        self._is_missing = False
        self._received.append(packet.piece)
        self._received_size += len(packet.piece)
        if self._received_size > self._longest_message:
            self._received, self._received_size = [], 0
            raise ProtocolError(
                f"a message is longer than the {self._longest_message:,} bytes allowed"
            )
        behind = self._expected - self._acknowledged
        due = now if behind >= ACKNOWLEDGE_EVERY else now + ACKNOWLEDGE_AFTER
        self._acknowledge_at = min(self._acknowledge_at, due)
        if packet.more_follows:
            return ()
        message = b"".join(self._received)
        self._received, self._received_size = [], 0
        return (message,)

    def packets(self, now: float) -> Sequence[Packet]:
        """Return what to publish now."""
        packets: list[Packet] = []
        if now >= self._repeat_at:
            packets.append(self._packet(self._sent - 1))
            self._flights[-1] = None
            self._has_gone_back = False
            self._repeat_after = min(2 * self._repeat_after, REPEAT_AFTER_AT_MOST)
            self._repeat_at = now + self._repeat_after
        if not self._sent:
            self._silent_since = now
        while self._may_send:
            packets.append(self._packet(self._sent))
            self._handle_sent(now)
        if not packets and now >= self._acknowledge_at:
            packets.append(Packet(self._expected, missing=self._is_missing))
        if packets:
            self._acknowledged, self._acknowledge_at = self._expected, inf
            self._is_missing = False
        return packets

    def acknowledge(self, now: float) -> None:
        """Acknowledge what has arrived without waiting for an answer that carries it."""
        if self._acknowledged < self._expected:
            self._acknowledge_at = now

    def probe(self, now: float) -> None:
        """Send something, to which the other side answers if it does not know this channel."""
        self._acknowledge_at = now

    def relink(self, now: float) -> None:
        """Repeat at once what was not acknowledged, because the link was interrupted."""
        self._acknowledge_at = now
        self._repeat_after = REPEAT_AFTER
        self._window.handle_reconnect()
        self._go_back()

    def _packet(self, index: int) -> Packet:
        piece, more_follows = self._pieces[index]
        number = self._first + index
        return Packet(self._expected, number, piece, more_follows, missing=self._is_missing)

    @property
    def _sent(self) -> int:
        """How many of the pieces have been published."""
        return len(self._flights)

    @property
    def _may_send(self) -> bool:
        return self._sent < min(len(self._pieces), WINDOW) and self._in_flight < self._window.size

    def _handle_sent(self, now: float) -> None:
        piece, _ = self._pieces[self._sent]
        number = self._first + self._sent
        self._in_flight += len(piece)
        is_new = number >= self._new_from
        self._flights.append(_Flight(now, self._in_flight) if is_new else None)
        self._new_from = max(self._new_from, number + 1)
        self._repeat_at = now + self._repeat_after

    def _go_back(self) -> None:
        self._flights.clear()
        self._in_flight, self._repeat_at = 0, inf

    def _handle_missing(self, now: float) -> None:
        if not self._has_gone_back:
            self._has_gone_back = True
            self._go_back()
        else:  # it says so of each piece that was on the way already
            self._wait(now)

    def _handle_acknowledgement(self, count: int, now: float) -> None:
        arrived = count - self._first
        if not 0 < arrived <= len(self._pieces):
            return  # it says nothing new, or what cannot be
        flight = None
        for _ in range(arrived):
            piece, _ = self._pieces.popleft()
            self._queued -= len(piece)
            if self._flights:  # it was not to be sent again
                flight = self._flights.popleft()
                self._in_flight -= len(piece)
        if flight is not None:
            self._window.handle_ack(in_flight=flight.in_flight, round_trip=now - flight.sent_at)
        self._first = count
        self._has_gone_back = False
        silence = now - self._silent_since
        self._repeat_after = min(max(REPEAT_AFTER, PATIENCE * silence), REPEAT_AFTER_AT_MOST)
        self._silent_since = now
        self._wait(now)

    def _wait(self, now: float) -> None:
        self._repeat_at = now + self._repeat_after if self._sent else inf
