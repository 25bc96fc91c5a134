"""The responses of a site, by route."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from opentabs_py.core.recording.exchange import (
    DOCUMENT,
    Exchange,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    is_html,
    is_json,
)
from opentabs_py.core.recording.matching import comparable
from opentabs_py.core.recording.replay import is_event_stream, redirect
from opentabs_py.core.shapes.marks import marks_of
from opentabs_py.core.shapes.routes import Route, is_same_site, route_of
from opentabs_py.core.shapes.texts import is_word

Media = Literal["JSON", "HTML", "another type"]

_API: Final = frozenset({"fetch", "xhr", DOCUMENT, "eventsource"})
_NOT_MODIFIED: Final = 304
_NOTICED_WITHIN: Final = 0.25  # s; the browser may report a request after its call has ended
_DISCRIMINATORS: Final = ("type", "event", "op", "kind", "action")
_LONGEST_PAGE: Final = 2 * 1024 * 1024  # bytes that are searched for marks
MESSAGES: Final = "message"  # the method of messages that come by themselves


@dataclass(slots=True)
class Responses:
    """The responses of one route in one recording.

    Attributes:
        statuses: The HTTP statuses; 0 if there was no response.
        targets: The paths on the page's own origin to which they redirect, with `{id}` for ids.
        media: What the successful responses contained.
        values: The JSON of successful responses, by what tells their requests apart.
        marks: The CSS selectors of each HTML page.
        tools: The tools that sent requests to it, and how many.
        is_document: Whether it is a page.
        is_unread: Whether the body of a successful response is unknown: it was not read in time.
        failures: Why there was no response, such as `net::ERR_CONNECTION_REFUSED`.
    """

    statuses: set[int] = field(default_factory=set[int])
    targets: set[str] = field(default_factory=set[str])
    media: set[Media] = field(default_factory=set[Media])
    values: dict[Any, list[Any]] = field(default_factory=dict[Any, list[Any]])
    marks: list[Mapping[str, int]] = field(default_factory=list[Mapping[str, int]])
    tools: Counter[str] = field(default_factory=Counter[str])
    is_document: bool = False
    is_unread: bool = False
    failures: set[str] = field(default_factory=set[str])

    @property
    def samples(self) -> Sequence[Any]:
        """All JSON values."""
        return [value for values in self.values.values() for value in values]

    @property
    def works(self) -> bool:
        """Whether a request has succeeded."""
        return any(200 <= status < 400 for status in self.statuses)

    def add(self, other: "Responses") -> None:
        """Add those of the same route in another recording."""
        self.statuses |= other.statuses
        self.targets |= other.targets
        self.media |= other.media
        for key, values in other.values.items():
            self.values.setdefault(key, []).extend(values)
        self.marks += other.marks
        self.tools += other.tools
        self.is_document |= other.is_document
        self.is_unread |= other.is_unread
        self.failures |= other.failures


def responses_of(recording: Recording, volatile: Sequence[str] = ()) -> Mapping[Route, Responses]:
    """Return the responses of a site.

    Only what the plugin and its page depend on counts: requests of the page's site for data and
    pages, and all others that were sent during a call.

    Args:
        recording: What passed between the page and its site, and the calls that were made.
        volatile: Names of members of requests that do not count.
    """
    found: dict[Route, Responses] = {}
    for exchange in recording.exchanges:
        tools = _during(exchange.started, recording.calls)
        request = exchange.request
        if request.kind not in _API or not (tools or is_same_site(request.url, recording.url)):
            continue
        if is_event_stream(exchange):
            for route, value in _messages_of_stream(exchange, recording.url):
                _note_value(found, route, value, tools)
            continue
        responses = found.setdefault(route_of(request, recording.url), Responses())
        responses.tools.update(tools)
        responses.is_document |= request.kind == DOCUMENT
        if (target := redirect(exchange)) is not None:
            moved = route_of(Request("GET", target), recording.url)
            responses.targets |= set() if moved.origin else {moved.path}
        _note(responses, exchange, comparable(request, volatile).key)
    for socket in recording.sockets:
        if is_same_site(socket.url, recording.url):
            for route, value in _messages_of_socket(socket):
                _note_value(found, route, value, set())
    return found


def page_marks(exchange: Exchange) -> Mapping[str, int]:
    """Return the CSS selectors that find the elements of a page; none if it was not read."""
    body = exchange.response and exchange.response.body
    return marks_of((body or b"")[:_LONGEST_PAGE].decode("utf-8", "replace"))


def _note(responses: Responses, exchange: Exchange, key: Any) -> None:
    response = exchange.response
    if response is None:
        responses.statuses.add(0)
        responses.failures.add(exchange.error or "no response")
        return
    if response.status == _NOT_MODIFIED:
        return
    responses.statuses.add(response.status)
    if not 200 <= response.status < 300:
        return
    responses.is_unread |= response.body is None
    if not response.body:
        return
    if is_html(response.mime):
        responses.media.add("HTML")
        responses.marks.append(page_marks(exchange))
    elif is_json(response.mime) and (read := _read(response.body)) is not None:
        responses.media.add("JSON")
        responses.values.setdefault(key, []).append(read[0])
    else:
        responses.media.add("another type")


def _during(at: float, calls: Sequence[RecordedCall]) -> set[str]:
    begun = [call for call in calls if call.started <= at]
    running = {call.tool for call in begun if at <= call.started + call.seconds}
    if running or not begun:
        return running
    last = max(begun, key=lambda call: call.started + call.seconds)
    return {last.tool} if at <= last.started + last.seconds + _NOTICED_WITHIN else set()


def _messages_of_stream(exchange: Exchange, page_url: str) -> Iterator[tuple[Route, Any]]:
    path = route_of(exchange.request, page_url)
    for event in cast("Response", exchange.response).events:
        if (read := _read(event.data.encode())) is not None:
            yield Route(path.path, MESSAGES, event.name, path.origin), read[0]


def _messages_of_socket(socket: RecordedSocket) -> Iterator[tuple[Route, Any]]:
    path = "/" + socket.url.partition("://")[2].partition("/")[2].partition("?")[0]
    for frame in socket.frames:
        if frame.is_sent or not isinstance(frame.data, str):
            continue
        if (read := _read(frame.data.encode())) is not None:
            yield Route(path, MESSAGES, _kind_of_message(read[0])), read[0]


def _note_value(found: dict[Route, Responses], route: Route, value: Any, tools: set[str]) -> None:
    responses = found.setdefault(route, Responses())
    responses.statuses.add(200)
    responses.media.add("JSON")
    responses.tools.update(tools)
    responses.values.setdefault((), []).append(value)


def _kind_of_message(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    members = cast("Mapping[str, Any]", value)
    kinds = (members.get(name) for name in _DISCRIMINATORS)
    return next((each for each in kinds if isinstance(each, str) and is_word(each)), "")


def _read(body: bytes) -> tuple[Any] | None:
    """Return JSON, in a tuple because it may be null; None if it is not JSON."""
    try:
        return (json.loads(body),)
    except (ValueError, RecursionError):
        return None
