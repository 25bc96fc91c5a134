"""The parts of a recording. All times are seconds since the epoch, durations seconds."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Headers = Sequence[tuple[str, str]]
"""Names and values, in the order they were sent; a name may come several times."""

DOCUMENT: Final = "document"
FRAMES: Final = frozenset({"iframe", "frame", "embed", "object"})
"""What `sec-fetch-dest` says of a document that is not a page."""
EVENT_SOURCE: Final = "eventsource"
EVENT_STREAM: Final = "text/event-stream"
FORM: Final = "application/x-www-form-urlencoded"
LARGEST_BODY: Final = 64 * 1024 * 1024  # bytes; a larger one is not recorded
_PLAIN: Final = ("", "text/plain")  # what `fetch` calls a string
_FIELDS: Final = re.compile(rb"[\w.\[\]%+\x80-\xff-]+=[^\r\n]*")  # a line that begins with one
ABORTED: Final = "net::ERR_ABORTED"
"""The error of a request that its page aborted, or left behind."""
UNFINISHED: Final = "unfinished"
"""The error of a request that had no response yet when the recording ended, or whose body the page
had not read."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a page.

    Attributes:
        method: In capital letters.
        url: Without a fragment.
        headers: As they were sent.
        body: Empty if it had none.
        kind: Playwright's `resource_type`, such as `document`, `fetch` or `xhr`.
    """

    method: str
    url: str
    headers: Headers = ()
    body: bytes = b""
    kind: str = "fetch"

    @property
    def mime(self) -> str:
        """The media type of the body, without parameters."""
        return mime_of(self.headers)

    @property
    def is_page(self) -> bool:
        """Whether it opens a page, not a frame in one."""
        return self.kind == DOCUMENT and header(self.headers, "sec-fetch-dest") not in FRAMES

    @property
    def is_form(self) -> bool:
        """Whether the body is a URL-encoded form, also if a page sends it as a plain string."""
        if self.mime in _PLAIN:
            return _FIELDS.fullmatch(self.body) is not None
        return self.mime == FORM

    @property
    def has_lost_body(self) -> bool:
        """Whether its body is missing: Chromium does not report bodies that contain files."""
        has_length = header(self.headers, "content-length") not in (None, "0")
        return not self.body and (has_length or self.mime.startswith("multipart/"))


@dataclass(frozen=True, slots=True)
class Event:
    """A message of an event stream, as `EventSource` received it."""

    at: float
    data: str
    name: str = "message"
    last_id: str = ""


@dataclass(frozen=True, slots=True)
class Response:
    """The site's response.

    Attributes:
        status: The HTTP status.
        status_text: The status in words; empty in HTTP/2.
        headers: As they came.
        body: Decoded, as the page saw it. None if the browser no longer had it.
        events: When each message of an event stream came, if that is known.
    """

    status: int
    status_text: str = ""
    headers: Headers = ()
    body: bytes | None = b""
    events: Sequence[Event] = ()

    @property
    def mime(self) -> str:
        """The media type of the body, without parameters."""
        return mime_of(self.headers)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, and its response or why there was none.

    Attributes:
        request: What the page asked.
        response: The response of the site.
        error: Chromium's error, such as `net::ERR_CONNECTION_REFUSED`, if there was no response.
        started: When the request was sent.
        seconds: How long it took.
    """

    request: Request
    response: Response | None
    error: str | None = None
    started: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A message of a WebSocket.

    Attributes:
        at: When it passed.
        is_sent: Whether the page sent it, not the site.
        data: Text, or bytes.
    """

    at: float
    is_sent: bool
    data: str | bytes


@dataclass(frozen=True, slots=True)
class RecordedSocket:
    """A WebSocket of a page.

    Attributes:
        url: As the page opened it.
        started: When it was opened.
        frames: Its messages, in order.
        error: Chromium's error, such as `Unauthorized: 401`, if it could not be opened.
    """

    url: str
    started: float = 0.0
    frames: Sequence[Frame] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a tool.

    Attributes:
        tool: The tool's MCP name.
        arguments: A JSON object.
        value: The tool's JSON value, if it succeeded.
        error: `{code, message}` if it did not.
        started: When it was called, in seconds since the epoch.
        seconds: How long it took.
    """

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    value: Any = None
    error: Mapping[str, Any] | None = None
    started: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A string that is not in the recording, and what is there instead.

    Attributes:
        kind: What it was, such as `cookie` or `e-mail address`.
        where: The name of the header, member or field in which it was found first.
        replacement: What is there instead.
        count: How many times it was replaced.
    """

    kind: str
    where: str
    replacement: str
    count: int


@dataclass(frozen=True, slots=True)
class Recording:
    """What passed between pages and their site.

    Attributes:
        url: The page that was opened first.
        exchanges: Requests in the order they were sent.
        sockets: WebSockets in the order they were opened.
        calls: The calls of tools.
        storage_state: Cookies and local storage at the start, in Playwright's format.
        scrubbed: What was scrubbed.
        storage_at_end: Cookies and local storage at the end, which pages have changed since the
            start.
    """

    url: str
    exchanges: Sequence[Exchange] = ()
    sockets: Sequence[RecordedSocket] = ()
    calls: Sequence[RecordedCall] = ()
    storage_state: Mapping[str, Any] | None = None
    scrubbed: Sequence[Scrubbed] = ()
    storage_at_end: Mapping[str, Any] | None = None


def mime_of(headers: Headers) -> str:
    """Return the media type that headers state, in lower case and without parameters."""
    stated = header(headers, "content-type") or ""
    return stated.partition(";")[0].strip().lower()


def header(headers: Headers, name: str) -> str | None:
    """Return the first value of a header; None if it is not there."""
    return next((value for each, value in headers if each.lower() == name), None)


def is_json(mime: str) -> bool:
    """Return whether a media type is one of JSON; AWS has its own."""
    return mime == "application/json" or mime.endswith("+json") or "/x-amz-json" in mime


def is_html(mime: str) -> bool:
    """Return whether a media type is one of HTML."""
    return mime in ("text/html", "application/xhtml+xml")


def is_text(mime: str) -> bool:
    """Return whether a body of this media type is text."""
    return (
        mime.startswith("text/")
        or "json" in mime.partition("/")[2]  # also a sequence of documents
        or mime.endswith(("+xml", "/xml", "javascript", "ecmascript"))
        or mime in (FORM, "application/graphql", "")
    )


def reads_as_text(body: bytes, mime: str) -> bool:
    """Return whether a body is text, by its media type or, if that says nothing, by its content."""
    if is_text(mime) or mime.startswith("multipart/"):
        return True
    return b"\0" not in body and is_utf8(body)


def is_utf8(body: bytes) -> bool:
    """Return whether a body is valid UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
