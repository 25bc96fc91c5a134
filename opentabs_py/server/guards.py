"""What stands between the network and what is served."""

import asyncio
import hmac
import logging
import re
from dataclasses import dataclass
from math import inf
from operator import attrgetter, itemgetter
from typing import Any, Final

import h11
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

logger = logging.getLogger(__name__)

# What a client leaves unread is kept up to here, so that a stream of a session that it does not
# read holds up no other of that session; one that then reads nothing for a minute is cut off.
UNREAD_LIMIT: Final = 8 * 1024 * 1024  # bytes, of one connection
READ_WITHIN = 60.0  # s
# All connections together; over it, those are closed that have read nothing for a while. Behind
# each byte that waits stands another, in the event that is being sent. (Besides, the SDK keeps
# the last message of each session of the initialize era.)
UNREAD_TOTAL = 128 * 1024 * 1024  # bytes
STUCK_AFTER = 1.0  # s; a client of this machine reads 100 MiB in a fraction of it

# A client of this machine sends a request in milliseconds; one behind a slow tunnel, in its time.
HEADERS_WITHIN = 20.0  # s; from the connection, or from the first byte of a later request
BODY_WITHIN = 30.0  # s; from the headers, and a second more for each
BODY_RATE = 64 * 1024  # bytes
READ_FIRST = 0.5  # s; for what came in time and is not read yet
# Connections whose requests are half sent; of more, the oldest is closed.
MOST_HALF_SENT = 200


@dataclass(slots=True)
class _Sending:
    """A request that is being sent to us."""

    began: float
    within: float
    is_body: bool
    received: int = 0
    is_late: bool = False

    @property
    def allowed(self) -> float:
        return self.within + self.received / BODY_RATE


# A Host (RFC 9110, section 7.2) and an Origin (RFC 6454, section 7), with nothing around them.
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:(?P<port>[0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"http://" + _HOST.pattern)


class LocalOnly:
    """Lets only requests for this machine by its own names, and from its own pages.

    A name that someone else's DNS points here is none of these, so no page of another site can
    have its visitor's browser call tools.

    Args:
        app: What is protected; WebSockets reach it as they are.
        host: The address it is reached at, besides the usual names of this machine.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        self._app = app
        self._hosts = {"127.0.0.1", "localhost", "[::1]", host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 403."""
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._is_local(_HOST, headers.get("host", "")):
                refusal = _refuse(
                    "The Host is not of this machine: ask for 127.0.0.1 or localhost."
                )
            elif not all(self._is_local(_ORIGIN, each) for each in headers.getlist("origin")):
                refusal = _refuse("The Origin is not of this machine.")
            else:
                refusal = self._app
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_local(self, grammar: re.Pattern[str], text: str) -> bool:
        found = grammar.fullmatch(text)
        return (
            found is not None
            and found["host"].lower() in self._hosts
            and int(found["port"] or 0) <= 65535
        )


def _refuse(why: str) -> ASGIApp:
    logger.warning("A request was refused: %s", why)
    return JSONResponse({"error": why}, status_code=403)


class RequireToken:
    """Lets only requests with the bearer token (RFC 6750) to what is for MCP clients."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 401."""
        if scope["type"] == "http":
            # The scheme may be in any case (RFC 9110, section 11.1).
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            is_given = hmac.compare_digest(given.strip(" ").encode(), self._wanted)
            if scheme.lower() != "bearer" or not is_given:
                refusal = JSONResponse(
                    {"error": "Send the server's token, as in `Authorization: Bearer TOKEN`."},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class PatientProtocol(H11Protocol):
    """Waits for a client that is slow to send or to read, but within bounds.

    Keeps what a client has not read yet up to a bound, and closes the connection of one that
    stopped reading, and of one that does not complete its request in time.

    Attributes:
        sending: The request that is not here whole.
    """

    _cut: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _unread = 0  # bytes, when that was looked at
    _since = inf  # when its client was last seen to read, while it has much to read
    sending: "_Sending | None" = None
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let more be kept than asyncio would; wait for a request."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=UNREAD_LIMIT)
        self._wait_for(HEADERS_WITHIN)
        self._close_oldest()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request, and wait for the rest."""
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        sending, theirs = self.sending, self.conn.their_state
        if theirs is h11.SEND_BODY:
            if sending is None or not sending.is_body:
                sending = self._wait_for(BODY_WITHIN, is_body=True)
            sending.received += len(data)
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

    def _close_oldest(self) -> None:
        """Make room: one that sends at once needs hardly any time, and the oldest has had most."""
        half_sent = [
            (each.began, connection)
            for connection in self.connections
            if isinstance(connection, PatientProtocol) and (each := connection.sending) is not None
        ]
        if len(half_sent) > MOST_HALF_SENT:
            _, oldest = min(half_sent, key=itemgetter(0))
            oldest.transport.abort()

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
            # What waits to be read counts first, for a process that was stopped meanwhile.
            sending.is_late = True
            self._deadline = self.loop.call_later(READ_FIRST, self._look_at_deadline)
        else:
            logger.info("A connection was closed: its request did not come within the time")
            self.transport.abort()

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the extension's socket as it is."""
        self._has_all()
        self.transport.set_write_buffer_limits()  # the extension's frames wait for one another
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._since = self.loop.time()
        self._unread = self.transport.get_write_buffer_size()
        self._look = self.loop.call_later(STUCK_AFTER, self._close_stuck)
        self._cut = asyncio.get_running_loop().call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._has_all()
        self._wait_no_longer()

    def _close_stuck(self) -> None:
        """Close those that have not read for longest, while all have too much unread together."""
        now = self.loop.time()
        unread = {
            connection: connection.transport.get_write_buffer_size()
            for connection in self.connections
            if isinstance(connection, PatientProtocol) and not connection.transport.is_closing()
        }
        total = sum(unread.values())
        for stuck in sorted(unread, key=attrgetter("_since")):
            if stuck.look_at(unread[stuck], now) and total > UNREAD_TOTAL and len(unread) > 1:
                total -= unread.pop(stuck)
                logger.warning("A client was cut off: too much of large results is not read")
                stuck.transport.abort()
        if self._since < inf and self in unread:
            self._look = self.loop.call_later(STUCK_AFTER, self._close_stuck)

    def look_at(self, unread: int, now: float) -> bool:
        """Note what is unread now; return whether its client reads nothing of much."""
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
