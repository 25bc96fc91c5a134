"""One WebSocket to an extension: frames, requests and their answers, both clocks.

This handles what all messages have in common; the bridge interprets them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeVar

import anyio
from pydantic import ValidationError

from opentabs_py.calling.clock import MS, wall_clock
from opentabs_py.core import protocol
from opentabs_py.core.chunks import WHOLE, Assembler, split
from opentabs_py.core.trace.hops import clock_offset
from opentabs_py.core.wire import InvalidHello, OtherHello, parse_from_extension, to_json
from opentabs_py.errors import ProtocolError

logger = logging.getLogger(__name__)

KEEPALIVE = 20.0  # s; Chrome stops a service worker that was silent for 30
MOST_SILENT = 2  # pings without an answer; the first may have met a busy machine
JITTER = 0.005  # s; of two clocks that are read in different processes
CLOSE_WITHIN = 2.0  # s; how long closing waits for queued messages
LONGEST_OWN = 4 * WHOLE  # characters of what is neither an input nor a result, such as reports
_NO_DOCUMENT = "0" * 32  # the service worker joins these chunks itself

AnyResult = TypeVar("AnyResult", bound=protocol.Model)
Incoming = (
    protocol.Hello
    | OtherHello
    | InvalidHello
    | protocol.ToolProgress
    | protocol.ToolResult
    | protocol.ToolErrored
    | protocol.ToolLost
    | protocol.ToolStopped
    | protocol.ToolStamps
    | protocol.TabsChanged
    | protocol.PageTools
    | protocol.PluginLog
    | protocol.Model  # the result of a request
)


class Socket(Protocol):
    """The part of a WebSocket that we need."""

    async def receive_text(self) -> str:
        """Wait for the next text frame; raise `SocketClosedError` if there will be none."""
        ...

    async def send_text(self, data: str) -> None:
        """Send a text frame, waiting while the other side is slow."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close with a code and a reason (RFC 6455, section 7.4)."""
        ...


class SocketClosedError(Exception):
    """The other side of a `Socket` has disconnected."""


@dataclass(frozen=True, slots=True)
class _Request:
    result: type[protocol.Model]
    answer: asyncio.Future[Any]


class Connection:
    """One connection; run `write` and `keep_alive` alongside the task that calls `receive`.

    Attributes:
        clock_offset: What to add to the extension's clock to get ours, in seconds.
    """

    def __init__(self, socket: Socket, *, message_limit: int) -> None:
        self.clock_offset = 0.0
        self._socket = socket
        limit = max(message_limit, LONGEST_OWN) + 4096  # the envelope does not count
        self._assembler = Assembler(limit=limit)
        self._outbox: deque[str] = deque()
        self._filled = asyncio.Event()  # far cheaper than anyio's, and it can be cleared
        self._is_sending = False
        self._has_received = False  # since the last ping
        self._closing: tuple[int, str] | None = None
        self._closed = anyio.Event()
        self._requests: dict[int, _Request] = {}
        self._last_id = 0
        self._stream = 0
        self._best_round_trip = inf

    # --- sending ---

    def send(self, message: protocol.Message) -> None:
        """Queue a message; it is sent when the socket accepts it."""
        document_id = getattr(getattr(message, "params", None), "document_id", _NO_DOCUMENT)
        self._stream += 1
        frames = [*split(to_json(message), document_id, self._stream)]
        if len(frames) > 1 and isinstance(message, protocol.ToolDispatch):
            announced = protocol.AnnounceParams(
                document_id=document_id, call_id=message.params.call_id
            )
            self._outbox.append(to_json(protocol.ToolAnnounce(params=announced)))
        self._outbox.extend(frames)
        self._filled.set()

    def request(
        self, make: Callable[[int], protocol.Message], result: type[AnyResult]
    ) -> asyncio.Future[AnyResult | None]:
        """Send a request; return its result to come, or None for an error, which is logged.

        `receive` returns the result too, in its order among the messages. If the connection ends
        first, the future is cancelled. If the caller cancels it, the answer is dropped.

        Args:
            make: Creates the request, given its id.
            result: The type of the result.
        """
        self._last_id += 1
        number = self._last_id
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._requests[number] = _Request(result, answer)
        answer.add_done_callback(lambda _: self._requests.pop(number, None))
        self.send(make(number))
        return answer

    async def ask(
        self,
        make: Callable[[int], protocol.Message],
        result: type[AnyResult],
        *,
        within: float,
        late: Callable[[asyncio.Future[AnyResult | None]], None] | None = None,
    ) -> AnyResult | None:
        """Send a request and return its result; None for an error, or if none arrives in time.

        Args:
            make: Creates the request, given its id.
            result: The type of the result.
            within: How long to wait, in seconds.
            late: Called with an answer that nobody waited for, because it took longer, or the
                caller was cancelled. Without it, such an answer is dropped.
        """
        answer = self.request(make, result)
        is_in_time = False
        try:
            await asyncio.wait([answer], timeout=within)
            is_in_time = answer.done()
        finally:
            if late is not None and not is_in_time:
                answer.add_done_callback(late)
            else:
                answer.cancel()
        return answer.result() if is_in_time and not answer.cancelled() else None

    def keep_parts_of(self, document_ids: Iterable[str]) -> None:
        """Drop what has arrived of unfinished messages of all other documents."""
        self._assembler.keep(document_ids)

    def abandon_requests(self) -> None:
        """Cancel the requests that have not been answered; the connection has ended."""
        for request in self._requests.values():
            request.answer.cancel()
        self._requests.clear()

    def ping(self) -> None:
        """Measure the extension's clock, and keep its service worker alive."""
        self.send(protocol.Ping(params=protocol.PingParams(time=wall_clock() * MS)))

    def refuse(self, message: str, *, path: str = "", request: int | None = None) -> None:
        """Answer an invalid message with a JSON-RPC error."""
        error = protocol.RpcError(code=-32600, message=message, data={"path": path})
        self.send(protocol.ErrorResponse(id=request, error=error))

    def start_close(self, code: int, reason: str) -> None:
        """Close once everything queued has been sent."""
        self._closing = (code, reason)
        self._filled.set()

    async def close(self, code: int, reason: str) -> None:
        """Close, and wait until the reason has been sent to the other side."""
        self.start_close(code, reason)
        with anyio.move_on_after(CLOSE_WITHIN):
            await self._closed.wait()

    async def write(self) -> None:
        """Send queued messages until the connection closes."""
        try:
            while True:
                await self._send_queued()
                if self._closing is not None and not self._outbox:
                    await self._socket.close(*self._closing)
                    return
                await self._filled.wait()
                self._filled.clear()
        except SocketClosedError:
            return  # the receiving task notices it too, and ends the connection
        finally:
            self._closed.set()

    async def flush(self) -> None:
        """Send what is queued immediately, without waiting for the writing task."""
        with suppress(SocketClosedError):  # the receiving task notices it too
            await self._send_queued()

    async def _send_queued(self) -> None:
        if self._is_sending:
            return  # the task already sending sends these too
        self._is_sending = True
        try:
            while self._outbox:
                # If cancelled here, the message has not been sent, and remains the first.
                await self._socket.send_text(self._outbox[0])
                self._outbox.popleft()
        finally:
            self._is_sending = False
            if self._outbox or self._closing is not None:
                self._filled.set()

    async def keep_alive(self) -> None:
        """Ping until the other side is gone: it answers nothing, and perhaps reads nothing.

        WebSocket ping frames do not keep a service worker alive.
        """
        silent = 0
        while silent < MOST_SILENT:
            self._has_received = False
            self.ping()
            await anyio.sleep(KEEPALIVE)
            silent = 0 if self._has_received else silent + 1

    # --- receiving ---

    async def receive(self) -> Incoming:
        """Wait for the next message, or result of a request, for the bridge.

        Pings are answered here. A malformed message is answered with an error, logged,
        and skipped; a malformed hello is returned after that.

        Raises:
            SocketClosedError: The connection has ended.
        """
        while True:
            frame = await self._socket.receive_text()
            self._has_received = True
            try:
                text = self._assembler.feed(frame)
                message = None if text is None else parse_from_extension(text)
                del frame, text  # or long ones would be kept until the next arrives
            except ProtocolError as error:
                self._refuse_malformed(str(error), error.path)
                continue
            match message:
                case None:
                    pass
                case protocol.Ping(params=params):
                    pong = protocol.PongParams(time=wall_clock() * MS, ping_time=params.time)
                    self.send(protocol.Pong(params=pong))
                case protocol.Pong(params=params):
                    self._handle_pong(params)
                case protocol.ResultResponse() | protocol.ErrorResponse():
                    result = self._handle_response(message)
                    if result is not None:
                        return result
                case InvalidHello(reason=reason, path=path):
                    self._refuse_malformed(reason, path)
                    return message
                case _:
                    return message

    def _refuse_malformed(self, reason: str, path: str) -> None:
        where = f" at {path}" if path else ""
        logger.warning("The extension sent a malformed message%s: %s", where, reason)
        self.refuse(reason, path=path)

    def _handle_pong(self, pong: protocol.PongParams) -> None:
        # The fastest round trip gives the best offset; drift is small within a session.
        received = wall_clock()
        sent = pong.ping_time / MS
        round_trip = received - sent
        if round_trip < 0:
            return  # our clock was set back meanwhile
        offset = clock_offset(sent=sent, received=received, remote=pong.time / MS)
        # Each is right to within half its round trip. The extension's clock stands still while the
        # machine is suspended, and ours may be set.
        possible = (round_trip + self._best_round_trip) / 2 + JITTER
        if round_trip <= self._best_round_trip or abs(offset - self.clock_offset) > possible:
            self._best_round_trip, self.clock_offset = round_trip, offset

    def _handle_response(self, response: protocol.Response) -> protocol.Model | None:
        request = None if response.id is None else self._requests.pop(response.id, None)
        result: protocol.Model | None = None
        if isinstance(response, protocol.ErrorResponse):
            what = "message" if request is None else "request"
            logger.warning("The extension refused a %s: %s", what, response.error.message)
        elif request is not None:
            try:
                result = request.result.model_validate(response.result)
            except ValidationError as error:
                logger.warning("The extension's answer is malformed: %s", error)
        if request is not None and not request.answer.done():
            request.answer.set_result(result)
        return result
