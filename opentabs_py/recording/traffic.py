"""Watch what passes between the pages of a browser and their sites.

Playwright has two APIs, and users drive the browser by either of them. So what asks Playwright for
several things in turn is a generator here: it yields what a method returned, and receives the
value, which in the async API has to be awaited first.
"""

import itertools
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from playwright.async_api import Error  # the same class as in the sync API

from opentabs_py.core.recording.exchange import (
    ABORTED,
    EVENT_SOURCE,
    EVENT_STREAM,
    LARGEST_BODY,
    UNFINISHED,
    Event,
    Exchange,
    Frame,
    Headers,
    RecordedSocket,
    Request,
    Response,
)

CAUGHT_UP_WITHIN: Final = 1000  # ms, for each page; one whose script does not end never answers
_BEACON: Final = "ping"  # of `navigator.sendBeacon`, and of `<a ping>`
_NO_BODY: Final = frozenset({204, 205, 304})

Steps = Generator[Any, Any, None]


class StepRunner(Protocol):
    """Runs steps in one of Playwright's APIs."""

    def run(self, steps: Steps) -> None:
        """Run steps now, or soon; what Playwright raises ends them."""
        ...


class _Begun(NamedTuple):
    """When a request was reported."""

    number: int  # how many were reported before
    time: float


@dataclass(slots=True)
class _Stream:
    """An event stream, as Chromium's DevTools protocol reports it."""

    number: int
    url: str
    headers: Headers
    started: float
    status: int = 0
    response_headers: Headers = ()
    ended: float | None = None
    events: list[Event] = field(default_factory=list[Event])


@dataclass  # without slots: Playwright sets an attribute on what holds a listener
class _Socket:
    """A WebSocket, as Playwright reports it."""

    url: str
    started: float
    frames: list[Frame] = field(default_factory=list[Frame])
    error: str | None = None

    def note(self, data: str | bytes, *, is_sent: bool) -> None:
        self.frames.append(Frame(time.time(), is_sent, data))

    def note_error(self, error: str) -> None:
        if not self.frames:  # otherwise it had been opened
            self.error = error


class TrafficRecorder:
    """Records the traffic of a browser context from now on, until `stop`.

    Args:
        context: Playwright's context, of either API.
        driver: Runs what has to be asked of Playwright.
        ignores: Returns whether a URL is not recorded, such as our own server's.
        skip: Returns whether a request was answered by something other than its site.
        on_ended: Called whenever a request has been answered, or has ended.
    """

    def __init__(
        self,
        context: Any,
        driver: StepRunner,
        *,
        ignores: Callable[[str], bool] = lambda _url: False,
        skip: Callable[[Any], bool] = lambda _request: False,
        on_ended: Callable[[], object] = lambda: None,
    ) -> None:
        self._on_ended = on_ended
        self._context = context
        self._driver = driver
        self._ignores = ignores
        self._skip = skip
        self._exchanges: list[tuple[int, Exchange]] = []  # by the number of the request
        self._sockets: list[_Socket] = []
        self._streams: dict[str, _Stream] = {}
        self._event_sources: list[Any] = []  # their requests
        self._open: dict[Any, _Begun] = {}
        self._numbers = itertools.count()
        self._responses: dict[Any, Any] = {}
        self._watched: list[tuple[Any, str, Callable[[Any], None]]] = []
        for event, handle in (
            ("request", self._note_request),
            ("response", self._note_response),
            ("requestfinished", self._note_finished),
            ("requestfailed", self._note_failed),
            ("page", self._note_page),
        ):
            self._watch(context, event, handle)
        for page in context.pages:
            self._note_page(page)

    @property
    def pending(self) -> int:
        """How many requests have not ended; event streams do not count."""
        return sum(request.resource_type != EVENT_SOURCE for request in self._open)

    @property
    def unanswered(self) -> int:
        """How many of them have no response yet.

        The others may never end: Chromium waits until a page reads the body of a large response, or
        of one that it must not keep.
        """
        return sum(
            request.resource_type != EVENT_SOURCE
            for request in self._open
            if request not in self._responses
        )

    @property
    def count(self) -> int:
        """How many requests and WebSockets there are so far."""
        return len(self._exchanges) + len(self._sockets) + len(self._streams)

    def catch_up(self) -> Steps:
        """Wait until Playwright has reported what the pages have asked for so far.

        A call may have ended before the requests that it sent are reported. A response of the same
        page comes after them.
        """
        for page in self._context.pages:
            try:
                yield page.locator("html").wait_for(state="attached", timeout=CAUGHT_UP_WITHIN)
            except Error:  # the page was closed, or its script does not end
                continue

    def stop(self) -> tuple[Sequence[Exchange], Sequence[RecordedSocket]]:
        """Stop, and return the requests and WebSockets in the order the pages began them.

        That is not the order of their times, which Chromium takes when it sends a request: of two
        that a page makes at once, either may be the first then.
        """
        for target, event, handle in self._watched:
            target.remove_listener(event, handle)
        self._watched.clear()
        ended = [*self._exchanges]
        for request, (number, started) in self._open.items():
            if not (self._skip(request) or self._is_streamed(request)):
                exchange = _unfinished(request, self._responses.get(request), started)
                ended.append((number, exchange))
        skipped = {_plain(each.url) for each in self._event_sources if self._skip(each)}
        ended += [
            (each.number, _stream_exchange(each))
            for each in self._streams.values()
            if each.url not in skipped
        ]
        self._open.clear()
        self._responses.clear()
        ended.sort(key=lambda each: each[0])
        sockets = [
            RecordedSocket(each.url, each.started, each.frames, each.error)
            for each in self._sockets
        ]
        return [exchange for _, exchange in ended], sockets

    def _watch(self, target: Any, event: str, handle: Callable[[Any], None]) -> None:
        target.on(event, handle)
        self._watched.append((target, event, handle))

    # --- requests ---

    def _note_request(self, request: Any) -> None:
        # What a service worker asks is not what its page gets, and Chromium often drops its body.
        if self._is_foreign(request.url) or request.service_worker is not None:
            return
        self._open[request] = _Begun(next(self._numbers), time.time())
        if request.resource_type == EVENT_SOURCE:
            self._event_sources.append(request)

    def _note_response(self, received: Any) -> None:
        if received.request in self._open:
            self._responses[received.request] = received
            self._on_ended()

    def _note_finished(self, request: Any) -> None:
        if request in self._open:
            self._driver.run(self._read(request))

    def _note_failed(self, request: Any) -> None:
        if request in self._open:
            self._driver.run(self._read(request, failure=request.failure or "net::ERR_FAILED"))

    def _read(self, request: Any, failure: str | None = None) -> Steps:
        if request not in self._open:
            return  # the recorder has stopped before this began
        number, started = self._open[request]
        try:
            if self._skip(request) or self._is_streamed(request):
                return
            if failure == ABORTED and (received := self._responses.get(request)) is not None:
                # The page went away before it read the body, if it ever would have.
                self._exchanges.append((number, _unfinished(request, received, started)))
                return
            # Chromium reports a page's response as failed if it became a download, for example.
            received = self._responses.get(request) if failure is None else None
            # The body comes first: Chromium drops it when the page goes away.
            body = None if received is None else (yield from _body(received))
            headers = yield from _headers(request)
            sent = Request(
                request.method,
                _plain(request.url),
                headers,
                request.post_data_buffer or b"",
                request.resource_type,
            )
            response = None
            if received is not None:
                headers = yield from _headers(received)
                response = Response(received.status, received.status_text, headers, body)
            started = _started(request, started)
            seconds = max(0.0, time.time() - started)
            self._exchanges.append((number, Exchange(sent, response, failure, started, seconds)))
        finally:
            self._open.pop(request, None)
            self._responses.pop(request, None)
            self._on_ended()

    def _is_foreign(self, url: str) -> bool:
        return urlsplit(url).scheme not in ("http", "https") or self._ignores(url)

    def _is_streamed(self, request: Any) -> bool:
        """Return whether the request is recorded as an event stream."""
        if request.resource_type != EVENT_SOURCE:
            return False
        url = _plain(request.url)
        return any(stream.url == url for stream in self._streams.values())

    # --- pages ---

    def _note_page(self, page: Any) -> None:
        self._watch(page, "websocket", self._note_socket)
        self._driver.run(self._watch_streams(page))

    def _note_socket(self, socket: Any) -> None:
        if self._ignores(socket.url):
            return
        noted = _Socket(socket.url, time.time())
        self._sockets.append(noted)
        self._watch(socket, "framesent", lambda data: noted.note(data, is_sent=True))
        self._watch(socket, "framereceived", lambda data: noted.note(data, is_sent=False))
        self._watch(socket, "socketerror", noted.note_error)

    def _watch_streams(self, page: Any) -> Steps:
        """Watch event streams: Playwright shows a stream's body only once it has ended."""
        session = yield self._context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._note_stream)
        session.on("Network.responseReceived", self._note_stream_response)
        session.on("Network.eventSourceMessageReceived", self._note_event)
        for end in ("Network.loadingFinished", "Network.loadingFailed"):
            session.on(end, self._note_stream_end)
        yield session.send("Network.enable")

    def _note_stream(self, params: dict[str, Any]) -> None:
        request = params["request"]
        if params.get("type") != "EventSource" or self._is_foreign(request["url"]):
            return
        headers = [*request["headers"].items()]
        self._streams[params["requestId"]] = _Stream(
            next(self._numbers), _plain(request["url"]), headers, time.time()
        )

    def _note_stream_response(self, params: dict[str, Any]) -> None:
        if (stream := self._streams.get(params["requestId"])) is not None:
            stream.status = params["response"]["status"]
            stream.response_headers = [*params["response"]["headers"].items()]

    def _note_event(self, params: dict[str, Any]) -> None:
        if (stream := self._streams.get(params["requestId"])) is not None:
            event = Event(time.time(), params["data"], params["eventName"], params["eventId"])
            stream.events.append(event)

    def _note_stream_end(self, params: dict[str, Any]) -> None:
        if (stream := self._streams.get(params["requestId"])) is not None:
            stream.ended = time.time()


def _unfinished(request: Any, received: Any, started: float) -> Exchange:
    """Return a request that has no response, or one whose body the page has not read."""
    sent = Request(
        request.method,
        _plain(request.url),
        [*request.headers.items()],
        request.post_data_buffer or b"",
        request.resource_type,
    )
    if received is None:
        return Exchange(sent, None, UNFINISHED, started)
    response = Response(received.status, received.status_text, [*received.headers.items()], None)
    return Exchange(sent, response, UNFINISHED, _started(request, started))


def _started(request: Any, noted: float) -> float:
    """Return when a request was sent; the event that says so may come after a whole call."""
    began: float = request.timing["startTime"]
    return began / 1000 if began > 0 else noted


def _body(received: Any) -> Generator[Any, Any, bytes | None]:
    """Return the body of a response; None if the browser no longer has it, or it is too large."""
    if received.status in _NO_BODY or 300 <= received.status < 400:
        return b""
    if received.request.resource_type == _BEACON:
        return b""  # which no page can read, and Chromium soon drops
    try:
        body: bytes = yield received.body()
    except Error:
        return None
    return body if len(body) <= LARGEST_BODY else None


def _stream_exchange(stream: _Stream) -> Exchange:
    request = Request("GET", stream.url, stream.headers, kind=EVENT_SOURCE)
    if not stream.status:
        return Exchange(request, None, UNFINISHED, stream.started)
    body = "".join(event_text(event) for event in stream.events)
    headers = stream.response_headers or [("content-type", EVENT_STREAM)]
    response = Response(stream.status, "", headers, body.encode(), stream.events)
    seconds = (stream.ended or time.time()) - stream.started
    return Exchange(request, response, None, stream.started, seconds)


def event_text(event: Event) -> str:
    """Return a message as it is written in an event stream."""
    lines = [f"id: {event.last_id}"] if event.last_id else []
    if event.name != "message":
        lines.append(f"event: {event.name}")
    lines += [f"data: {line}" for line in event.data.split("\n")]
    return "\n".join(lines) + "\n\n"


def _plain(url: str) -> str:
    return url.partition("#")[0]


def _headers(message: Any) -> Generator[Any, Any, Headers]:
    """Return the headers of a request or a response; after its page was closed, those known."""
    try:
        headers = yield message.headers_array()
    except Error:
        return [*message.headers.items()]
    # A name with a colon is of HTTP/2's own.
    return [(each["name"], each["value"]) for each in headers if not each["name"].startswith(":")]
