"""Replay the responses of a recorded site."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from opentabs_py.core.recording.exchange import (
    DOCUMENT,
    EVENT_STREAM,
    Exchange,
    Frame,
    RecordedSocket,
    Recording,
    Request,
    header,
)
from opentabs_py.core.recording.matching import Comparable, comparable, differences, distance
from opentabs_py.core.recording.reading import is_read
from opentabs_py.core.recording.rpc import with_id_of
from opentabs_py.core.sites.origins import resolve_link
from opentabs_py.core.text import quantity, shorten

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 20
_SHOWN: Final = 8  # differences


class UnansweredRequest(NamedTuple):
    """A request that is not in the recording.

    Attributes:
        request: What the page asked.
        why: What is there instead, on lines of their own.
    """

    request: Request
    why: str

    def __str__(self) -> str:
        return f"{self.request.method} {shorten(self.request.url, 500)}\n{self.why}"


class Index:
    """A recording, ready to be replayed any number of times.

    Args:
        recording: The recorded responses.
        volatile: Names of members that do not count, besides the usual ones.

    Attributes:
        recording: The recording.
        volatile: Those names.
        exchanges: Equal requests, in the order of the recording, by what is equal of them.
        sockets: WebSockets of one URL, in the same order.
        known: Every request that differs from those before it.
    """

    def __init__(self, recording: Recording, volatile: Iterable[str] = ()) -> None:
        self.recording = recording
        self.volatile = tuple(volatile)
        self.exchanges: dict[object, list[Exchange]] = {}
        self.sockets: dict[object, list[RecordedSocket]] = {}
        self.known: list[tuple[Comparable, Request]] = []
        self._without_body: set[object] = set()  # the keys of requests whose body is lost
        for exchange in recording.exchanges:
            each = comparable(exchange.request, self.volatile)
            if each.key not in self.exchanges:
                self.known.append((each, exchange.request))
            self.exchanges.setdefault(each.key, []).append(exchange)
            if exchange.request.has_lost_body:
                self._without_body.add(each.key)
        for socket in recording.sockets:
            each = self.comparable(_as_request(socket.url))
            self.sockets.setdefault(each.key, []).append(socket)

    def comparable(self, request: Request) -> Comparable:
        """Return what counts of a request: not its body, if that of the recorded one is lost."""
        whole = comparable(request, self.volatile)
        if whole.key in self.exchanges or not self._without_body:
            return whole
        rest = comparable(replace(request, body=b""), self.volatile)
        return rest if rest.key in self._without_body else whole


class Replay:
    """Finds the recorded response to each request.

    Requests that are equal get their responses in the order of the recording. After the last one, a
    request that only reads gets the last response again; one that writes is not in the recording.
    A page, and what scripts read at the same URL, such as its data as JSON, differ only in headers,
    and so do the parts of a file. Each gets the responses to its own kind, if there are any.

    Args:
        index: The recording.

    Attributes:
        unanswered: The requests that were not in it.
    """

    def __init__(self, index: Index) -> None:
        self.unanswered: list[UnansweredRequest] = []
        self._index = index
        self._used: set[int] = set()  # the ids of exchanges
        self._opened: Counter[object] = Counter()  # WebSockets

    def answer(self, request: Request, *, is_needed: bool = True) -> Exchange | None:
        """Return the recorded exchange for a request; None if there is none.

        Args:
            request: What the page asks.
            is_needed: Whether it is noted in `unanswered` if there is none.
        """
        sent = self._index.comparable(request)
        exchanges = self._index.exchanges.get(sent.key, ())
        if request.method == "GET":
            exchanges = [each for each in exchanges if _is_alike(each, request)] or exchanges
        for exchange in exchanges:
            if id(exchange) not in self._used:
                self._used.add(id(exchange))
                return with_id_of(request, exchange)
        if exchanges and is_read(request):
            return with_id_of(request, exchanges[-1])
        if is_needed:
            count = len(exchanges)
            times = "once" if count == 1 else f"{count} times"
            why = f"The recording has this request only {times}." if count else self._nearest(sent)
            self.unanswered.append(UnansweredRequest(request, why))
        return None

    def follow(self, exchange: Exchange, *, is_needed: bool = True) -> Exchange | None:
        """Return the last response to a request, after its redirects; None as `answer`."""
        for _ in range(_MOST_REDIRECTS):
            to = redirect(exchange)
            if to is None:
                return exchange
            before = exchange.request
            request = (
                Request("GET", to, before.headers, kind=before.kind)
                if becomes_get(exchange)
                else replace(before, url=to)
            )
            found = self.answer(request, is_needed=is_needed)
            if found is None:
                return None
            exchange = found
        return exchange

    def socket(self, url: str, *, is_needed: bool = True) -> "SocketScript | None":
        """Return the script of the next WebSocket of a URL; None as `answer`."""
        request = _as_request(url)
        key = self._index.comparable(request).key
        sockets = self._index.sockets.get(key, ())
        if not sockets:
            if is_needed:
                why = "The recording has no WebSocket with this URL."
                self.unanswered.append(UnansweredRequest(request, why))
            return None
        self._opened[key] += 1
        return SocketScript(sockets[min(self._opened[key], len(sockets)) - 1], self._index.volatile)

    def _nearest(self, sent: Comparable) -> str:
        if not self._index.known:
            return "The recording is empty."
        known, request = min(self._index.known, key=lambda each: distance(each[0], sent))
        lines = [f"nearest recorded: {request.method} {shorten(request.url, 500)}"]
        found = [
            each
            for each in differences(known, sent)
            if not (each.part == "body" and request.has_lost_body)
        ]
        lines += [f"  {each}" for each in found[:_SHOWN]]
        if len(found) > _SHOWN:
            lines.append(f"  and {len(found) - _SHOWN} more differences")
        return "\n".join(lines)


def redirect(exchange: Exchange) -> str | None:
    """Return where a response redirects to, without a fragment; None if it does not."""
    to = page_redirect(exchange)
    return None if to is None else to.partition("#")[0]


def page_redirect(exchange: Exchange) -> str | None:
    """Return where a response redirects a page to, with a fragment if it has one, or None."""
    response = exchange.response
    if response is None or response.status not in _REDIRECTS:
        return None
    location = header(response.headers, "location")
    if location is None:
        return None
    return resolve_link(exchange.request.url, location) or None


def becomes_get(exchange: Exchange) -> bool:
    """Return whether a redirect is followed with GET and without the body.

    Fetch, "HTTP-redirect fetch".
    """
    status = None if exchange.response is None else exchange.response.status
    match exchange.request.method:
        case "GET" | "HEAD":
            return False
        case "POST":
            return status in (301, 302, 303)
        case _:
            return status == 303


def is_event_stream(exchange: Exchange) -> bool:
    """Return whether a response is an event stream."""
    return exchange.response is not None and exchange.response.mime == EVENT_STREAM


class SocketScript:
    """What the site sends over one WebSocket, and what it waits for in between.

    Args:
        socket: What was recorded.
        volatile: Names of members that do not count.

    Attributes:
        socket: What was recorded.
    """

    def __init__(self, socket: RecordedSocket, volatile: Iterable[str] = ()) -> None:
        self.socket = socket
        self._volatile = tuple(volatile)
        self._frames = list(socket.frames)
        self._at = socket.started
        self._taken: set[object] = set()
        self._has_bytes = any(
            each.is_sent and isinstance(each.data, bytes) for each in self._frames
        )

    def next(self) -> Sequence[tuple[float, Frame]]:
        """Return what the site sends before it waits for the page.

        Returns:
            Messages, each with the seconds after the one before it.
        """
        due: list[tuple[float, Frame]] = []
        while self._frames and not self._frames[0].is_sent:
            frame = self._frames.pop(0)
            due.append((max(0.0, frame.at - self._at), frame))
            self._at = frame.at
        return due

    def receive(self, data: str | bytes) -> str | None:
        """Receive a message of the page; the site then continues with `next`.

        A message that is sent more often than it was recorded, such as a heartbeat, is ignored. So
        is what may have been sent while recording without being reported: an empty message, and
        the bytes of a `Blob`.

        Returns:
            Why this message is not in the recording; None if it is.
        """
        sent = self._comparable(data)
        for index, frame in enumerate(self._frames):
            if frame.is_sent and self._comparable(frame.data) == sent:
                self._at = frame.at
                self._taken.add(sent)
                del self._frames[index]
                return None
        if sent in self._taken or not data or not (isinstance(data, str) or self._has_bytes):
            return None
        recorded = [_shown(each.data) for each in self._frames if each.is_sent]
        expected = recorded[0] if recorded else "nothing more"
        return f"The page sent {_shown(data)}\nrecorded: {expected}"

    def _comparable(self, data: str | bytes) -> object:
        body = data.encode() if isinstance(data, str) else data
        return comparable(Request("SEND", "ws:", body=body), self._volatile).key


def _shown(data: str | bytes) -> str:
    return shorten(data, 300) if isinstance(data, str) else quantity(len(data), "byte")


def _is_alike(exchange: Exchange, request: Request) -> bool:
    """Return whether both open a document, or neither does, and both want the same part of it."""
    return _wanted(exchange.request) == _wanted(request)


def _wanted(request: Request) -> tuple[bool, str | None]:
    return request.kind == DOCUMENT, header(request.headers, "range")


def _as_request(url: str) -> Request:
    return Request("GET", url.partition("#")[0], kind="websocket")
