"""Channels over NATS: sends what a channel has to send, when it is due."""

import asyncio
from collections.abc import Callable, Sequence
from math import inf

from opentabs_py.core.fleet.channel import Channel, Packet
from opentabs_py.core.fleet.congestion import CongestionWindow
from opentabs_py.fleet.link import NatsLink


class NatsChannel:
    """One side of a channel.

    Args:
        link: The connection.
        subject: Where the other side listens.
        reply: Where this side listens, so that NATS says so if the other side does not.
        longest_message: The longest message to accept, in bytes.
        window: Limits how much is in flight; all channels to the same process share it.

    Attributes:
        on_settled: Called when the other side has acknowledged everything that was sent.
        published: How many packets have been published while there was a connection.
    """

    def __init__(
        self,
        link: NatsLink,
        subject: str,
        *,
        longest_message: int,
        window: CongestionWindow,
        reply: str = "",
    ) -> None:
        self._link = link
        self._subject = subject
        self._reply = reply
        self._channel = Channel(longest_message=longest_message, window=window)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._is_closed = False
        self.on_settled: Callable[[], None] | None = None
        self.published = 0

    @property
    def settled(self) -> bool:
        """Whether the other side has acknowledged everything that was sent."""
        return self._channel.settled

    @property
    def queued(self) -> int:
        """How many bytes the other side has not acknowledged."""
        return self._channel.queued

    def send(self, message: bytes) -> None:
        """Send a message; it is dropped if the channel is closed."""
        if not self._is_closed:
            self._channel.send(message)
            self._turn()

    def receive(self, packet: Packet) -> Sequence[bytes]:
        """Handle a packet, and return the messages that are complete now.

        Raises:
            ProtocolError: A message is longer than is accepted.
        """
        messages = self._channel.receive(packet, self._loop.time())
        self._turn()
        return messages

    def acknowledge(self) -> None:
        """Acknowledge at once what has arrived."""
        self._channel.acknowledge(self._loop.time())
        self._turn()

    def probe(self) -> None:
        """Send something, to which the other side answers if it does not know this channel."""
        self._channel.probe(self._loop.time())
        self._turn()

    def relink(self) -> None:
        """Repeat what was not acknowledged, because the connection was interrupted."""
        self._channel.relink(self._loop.time())
        self._turn()

    def close(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self.on_settled, self._is_closed = None, None, True

    def _turn(self) -> None:
        if self._is_closed:
            return
        for packet in self._channel.packets(self._loop.time()):
            self.published += self._link.publish(self._subject, packet.encode(), self._reply)
        deadline = self._channel.deadline
        # A timer that rings too early does nothing; to move it each time would cost more.
        if deadline < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = deadline
            self._timer = self._loop.call_at(deadline, self._ring)
        if self._channel.settled and self.on_settled is not None:
            self.on_settled()

    def _ring(self) -> None:
        self._timer, self._timer_at = None, inf
        self._turn()
