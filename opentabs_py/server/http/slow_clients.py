"""Limits for clients that are slow to send or to read, or idle."""

import asyncio
import logging
from dataclasses import dataclass
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from opentabs_py.server.http.open_files import most_connections
from opentabs_py.server.http.peers import PEER, Peer
from opentabs_py.server.mcp.answers import count_left

logger = logging.getLogger(__name__)

# Data a client does not read is buffered up to this limit, so that an unread stream does not block
# the session's other streams. A client that then reads nothing for a minute is disconnected.
UNREAD_LIMIT: Final = 8 * 1024 * 1024  # bytes, per connection
READ_WITHIN = 60.0  # s
# All connections together; above it, connections that have read nothing for a while are closed.
# Each buffered byte exists twice, because the event being sent holds a copy. (The SDK also keeps
# the last message of each session of the initialize era.)
UNREAD_TOTAL = 128 * 1024 * 1024  # bytes
STUCK_AFTER = 1.0  # s; a local client reads 100 MiB in a fraction of this

# A local client sends a request in milliseconds; one behind a slow tunnel takes longer.
HEADERS_WITHIN = 20.0  # s; since the connection, or the first byte of a later request
BODY_WITHIN = 30.0  # s; since the headers, plus one second per BODY_RATE bytes
BODY_RATE = 64 * 1024  # bytes
READ_FIRST = 0.5  # s; to read what arrived in time
# Connections with incomplete requests, and what they have sent together; beyond either, the oldest
# is closed. A lone one may be longer: its own limit is another.
MOST_HALF_SENT = 200
# Clients that come at once, such as after a restart, all connect before they send.
NEW_FOR = 1.0  # s
MOST_NEW = 800  # and older ones
HALF_SENT_TOTAL = 512 * 1024 * 1024  # bytes
_SMALL: Final = 1024 * 1024  # bytes; little enough to keep for every connection


@dataclass(slots=True)
class _Sending:
    """A request that a client is still sending."""

    began: float
    within: float
    is_body: bool
    received: int = 0
    is_late: bool = False

    @property
    def allowed(self) -> float:
        return self.within + self.received / BODY_RATE


class PatientProtocol(H11Protocol):
    """Tolerates clients that are slow to send or to read, within limits, and knows whose they are.

    Buffers what a client has not read yet, up to a limit. Closes the connection of a client that
    stops reading, or that does not complete its request in time.

    Attributes:
        sending: The request that has not arrived completely.
    """

    _cut: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unread = 0  # bytes, at the last check
    _since = inf  # when the client was last seen reading, while its buffer is full
    sending: "_Sending | None" = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Raise asyncio's buffer limit, and wait for a request."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, PEER: Peer(self.client, self.server)}
        transport.set_write_buffer_limits(high=UNREAD_LIMIT)
        self._wait_for(HEADERS_WITHIN)
        self._make_room()
        if len(self.connections) > most_connections():
            self._close_idle()

    def data_received(self, data: bytes) -> None:
        """Read part of a request, and wait for the rest."""
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        sending, theirs = self.sending, self.conn.their_state
        if theirs is h11.SEND_BODY:
            if sending is None or not sending.is_body:
                sending = self._wait_for(BODY_WITHIN, is_body=True)
            sending.received += len(data)
            if sending.received > _SMALL:
                self._make_room()
        elif theirs is h11.IDLE and self.conn.trailing_data[0]:
            if sending is None:
                self._wait_for(HEADERS_WITHIN)
        elif theirs is not h11.IDLE:
            self._has_all()

    def _wait_for(self, within: float, *, is_body: bool = False) -> "_Sending":
        self._has_all()
        self.sending = sending = _Sending(self.loop.time(), within, is_body=is_body)
        self._deadline = self.loop.call_later(within, self._look_at_deadline)
        return sending

    def _make_room(self) -> None:
        """Close the oldest incomplete request if there is too much: it has had the most time."""
        half_sent = [
            (each.began, each.received, connection)
            for connection in self.connections
            if isinstance(connection, PatientProtocol)
            and not connection.transport.is_closing()
            and (each := connection.sending) is not None
        ]
        new_since = self.loop.time() - NEW_FOR
        count, total = len(half_sent), sum(received for _, received, _ in half_sent)
        for began, received, oldest in sorted(half_sent, key=itemgetter(0)):
            is_many = count > (MOST_NEW if began > new_since else MOST_HALF_SENT)
            if not is_many and (total <= HALF_SENT_TOTAL or count == 1):
                return
            logger.info("Closed a connection: there are too many incomplete requests")
            oldest.transport.abort()
            count, total = count - 1, total - received

    def _close_idle(self) -> None:
        """Close the connection that has been kept without a request for the longest time."""
        kept = [
            (ends.when(), connection.transport)
            for connection in self.connections
            if isinstance(connection, PatientProtocol)
            and not connection.transport.is_closing()
            and (ends := connection.timeout_keep_alive_task) is not None
        ]
        if kept:
            logger.info("Closed an idle connection: there are too many connections")
            min(kept, key=itemgetter(0))[1].close()

    def _has_all(self) -> None:
        self.sending = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _look_at_deadline(self) -> None:
        sending = self.sending
        if sending is None:
            return
        left = sending.began + sending.allowed - self.loop.time()
        if left > 0:
            self._deadline = self.loop.call_later(left, self._look_at_deadline)
        elif not sending.is_late:
            # First read what is already waiting, in case this process was suspended since then.
            sending.is_late = True
            self._deadline = self.loop.call_later(READ_FIRST, self._look_at_deadline)
        else:
            if sending.is_body or self.conn.trailing_data[0]:  # browsers open spare connections
                logger.info("Closed a connection: its request did not arrive in time")
            self.transport.abort()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Exempt the extension's socket from these limits."""
        self._has_all()
        self.transport.set_write_buffer_limits()  # the extension's frames wait for each other
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Wait for the client, but not forever."""
        super().pause_writing()
        self._since = self.loop.time()
        self._unread = self.count_unread()
        self._look = self.loop.call_later(STUCK_AFTER, self._close_stuck)
        self._cut = asyncio.get_running_loop().call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop the timers: the client reads again."""
        super().resume_writing()
        self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers: the connection has closed."""
        super().connection_lost(exc)
        self._has_all()
        self._wait_no_longer()

    def _close_stuck(self) -> None:
        """Close the connections idle longest, as long as the total unread is over the limit."""
        now = self.loop.time()
        unread = {
            connection: connection.count_unread()
            for connection in self.connections
            if isinstance(connection, PatientProtocol) and not connection.transport.is_closing()
        }
        total = sum(unread.values())
        for stuck in sorted(unread, key=attrgetter("_since")):
            if stuck.look_at(unread[stuck], now) and total > UNREAD_TOTAL and len(unread) > 1:
                total -= unread.pop(stuck)
                logger.warning("Disconnected a client: it left too much data unread")
                stuck.transport.abort()
        if self._since < inf and self in unread:
            self._look = self.loop.call_later(STUCK_AFTER, self._close_stuck)

    def count_unread(self) -> int:
        """Return how many bytes wait for the client, in the buffer and in a prepared answer."""
        scope: Any = getattr(self.cycle, "scope", {})
        return self.transport.get_write_buffer_size() + count_left(scope)

    def look_at(self, unread: int, now: float) -> bool:
        """Record how much is unread now; return whether the client has stopped reading."""
        if unread < self._unread:
            self._since = now
        self._unread = unread
        return now - self._since >= STUCK_AFTER

    def _wait_no_longer(self) -> None:
        self._since = inf
        if self._look is not None:
            self._look.cancel()
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None
