"""A channel: messages between two processes, each once and in order, over a link that drops some.

NATS delivers a message at most once: what is published while the other side reconnects is gone. A
channel numbers its pieces, repeats those that were not acknowledged, and stops sending while too
many of them are unacknowledged. There is one for each call, so that no call waits for another's
long result.

Pieces are accepted in order only ("go-back-N"): a link that drops none keeps their order, and after
it has dropped some, repeating the rest costs little.
"""

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Self

from opentabs_py.errors import ProtocolError

PIECE: Final = 256 * 1024  # bytes; by default, NATS accepts messages of 1 MiB
WINDOW: Final = 16  # pieces that may be unacknowledged
REPEAT_AFTER: Final = 1.0  # s without an acknowledgement
ACKNOWLEDGE_AFTER: Final = 0.02  # s; by then, an answer usually carries it
ACKNOWLEDGE_EVERY: Final = WINDOW // 4  # pieces

_HEADER: Final = struct.Struct("!BII")
LONGEST_PACKET: Final = PIECE + _HEADER.size  # bytes
_HAS_PIECE: Final = 1
_MORE_FOLLOWS: Final = 2
_UNKNOWN: Final = 4
_FLAGS: Final = _HAS_PIECE | _MORE_FOLLOWS | _UNKNOWN


@dataclass(frozen=True, slots=True)
class Packet:
    """What is published at once.

    Attributes:
        acknowledged: How many pieces of the other side have arrived.
        number: The number of the piece, from 0; None if this has none.
        piece: A part of a message.
        more_follows: Whether the message continues in the next piece.
        unknown: Whether the sender does not know this channel, or no longer.
    """

    acknowledged: int = 0
    number: int | None = None
    piece: bytes | memoryview = b""
    more_follows: bool = False
    unknown: bool = False

    def encode(self) -> bytes:
        """Return it as bytes: a header of 9 bytes, then the piece."""
        flags = (
            (self.number is not None) * _HAS_PIECE
            | self.more_follows * _MORE_FOLLOWS
            | self.unknown * _UNKNOWN
        )
        return b"".join((_HEADER.pack(flags, self.number or 0, self.acknowledged), self.piece))

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Return the packet that bytes encode.

        Raises:
            ProtocolError: They encode none.
        """
        if len(data) < _HEADER.size:
            raise ProtocolError(f"A packet has {len(data)} bytes; it needs {_HEADER.size} or more.")
        flags, number, acknowledged = _HEADER.unpack_from(data)
        if flags & ~_FLAGS:
            raise ProtocolError(f"A packet has the flags {flags:#x}, of which some are unknown.")
        return cls(
            acknowledged=acknowledged,
            number=number if flags & _HAS_PIECE else None,
            piece=memoryview(data)[_HEADER.size :],
            more_follows=bool(flags & _MORE_FOLLOWS),
            unknown=bool(flags & _UNKNOWN),
        )


class Channel:
    """One side of a channel. Times are seconds on any one steady clock.

    Args:
        most: The longest message to accept, in bytes.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        # Pieces from the first unacknowledged one on, and whether their message continues after
        # them.
        self._pieces: deque[tuple[bytes | memoryview, bool]] = deque()
        self._first = 0  # the number of the first of them
        self._sent = 0  # how many of them have been published
        self._queued = 0  # bytes
        self._repeat_at = inf
        self._received: list[bytes | memoryview] = []  # of a message that is not whole yet
        self._received_size = 0
        self._expected = 0
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
            ProtocolError: A message is longer than is accepted.
        """
        self._handle_acknowledgement(packet.acknowledged, now)
        if packet.number is None:
            return ()
        if packet.number != self._expected:  # repeated, or one before it was dropped
            self._acknowledge_at = now
            return ()
        self._expected += 1
        self._received.append(packet.piece)
        self._received_size += len(packet.piece)
        if self._received_size > self._most:
            raise ProtocolError(f"A message is longer than the {self._most} bytes allowed.")
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
        if now >= self._repeat_at:
            self._sent = 0
        packets: list[Packet] = []
        while self._sent < min(len(self._pieces), WINDOW):
            piece, more_follows = self._pieces[self._sent]
            number = self._first + self._sent
            packets.append(Packet(self._expected, number, piece, more_follows))
            self._sent += 1
            self._repeat_at = now + REPEAT_AFTER
        if not packets and now >= self._acknowledge_at:
            packets.append(Packet(self._expected))
        if packets:
            self._acknowledged, self._acknowledge_at = self._expected, inf
        return packets

    def acknowledge(self, now: float) -> None:
        """Acknowledge what has arrived without waiting for an answer that carries it."""
        if self._acknowledged < self._expected:
            self._acknowledge_at = now

    def relink(self, now: float) -> None:
        """Repeat at once what was not acknowledged, because the link was interrupted."""
        self._acknowledge_at = now
        if self._pieces:
            self._repeat_at = now

    def _handle_acknowledgement(self, count: int, now: float) -> None:
        arrived = count - self._first
        if not 0 < arrived <= len(self._pieces):
            return  # it says nothing new, or what cannot be
        for _ in range(arrived):
            piece, _ = self._pieces.popleft()
            self._queued -= len(piece)
        self._first = count
        self._sent = max(0, self._sent - arrived)
        self._repeat_at = now + REPEAT_AFTER if self._sent else inf
