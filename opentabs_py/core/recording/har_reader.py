"""Read recordings from HARs, also those that other programs have written."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode, urlsplit

from pydantic import AfterValidator, TypeAdapter, ValidationError, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import NotRequired, TypedDict  # noqa: UP035 (both from one place)

from opentabs_py.core.recording.exchange import (
    DOCUMENT,
    FORM,
    FRAMES,
    Event,
    Exchange,
    Frame,
    Headers,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    Scrubbed,
    header,
    is_html,
    mime_of,
)
from opentabs_py.core.recording.har import FORMAT, TEXT_OPCODE, WEBSOCKET

# Playwright's `resource_type` by what `sec-fetch-dest` says, where the two differ
_KINDS: Final = {"empty": "fetch", "style": "stylesheet", "audio": "media", "video": "media"}
_KINDS_OF_TYPES: Final = {
    "text/css": "stylesheet",
    "text/javascript": "script",
    "application/javascript": "script",
    "image/": "image",
    "font/": "font",
    "audio/": "media",
    "video/": "media",
}


class HarError(ValueError):
    """A file that is not a HAR, or not one that this version reads."""


def _check_url(url: str) -> str:
    try:
        _ = urlsplit(url.encode().decode()).port  # half a character cannot be encoded
    except ValueError:
        raise PydanticCustomError("url", "Input should be a valid URL") from None
    return url


_Url = Annotated[str, AfterValidator(_check_url)]


class _Named(TypedDict):
    name: str
    value: str


class _Param(TypedDict):
    name: str
    value: NotRequired[str]


class _PostData(TypedDict):
    mimeType: NotRequired[str]
    text: NotRequired[str]
    params: NotRequired[list[_Param]]
    _encoding: NotRequired[str]
    _file: NotRequired[str]


class _SentRequest(TypedDict):
    method: str
    url: _Url
    headers: NotRequired[list[_Named]]
    postData: NotRequired[_PostData]


class _Content(TypedDict):
    mimeType: NotRequired[str]
    text: NotRequired[str]
    encoding: NotRequired[str]
    _file: NotRequired[str]
    _lost: NotRequired[bool]


class _Received(TypedDict):
    status: int
    statusText: NotRequired[str]
    headers: NotRequired[list[_Named]]
    content: NotRequired[_Content]
    _error: NotRequired[str | None]


class _Message(TypedDict):
    type: str
    time: float
    opcode: int
    data: str


class _EventMessage(TypedDict):
    time: float
    eventName: str
    eventId: str
    data: str


class _Entry(TypedDict):
    startedDateTime: datetime
    time: NotRequired[float]
    request: _SentRequest
    response: _Received
    _resourceType: NotRequired[str]
    _webSocketMessages: NotRequired[list[_Message]]
    _eventSourceMessages: NotRequired[list[_EventMessage]]


class _Call(TypedDict):
    tool: str
    arguments: dict[str, Any]
    value: NotRequired[Any]
    error: NotRequired[dict[str, Any]]
    startedDateTime: datetime
    time: float


@with_config(extra="allow")
class _Stored(TypedDict):
    name: str
    value: str


@with_config(extra="allow")
class _Cookie(TypedDict):
    name: str
    value: str
    domain: str
    path: str


@with_config(extra="allow")
class _Origin(TypedDict):
    origin: str
    localStorage: NotRequired[list[_Stored]]


@with_config(extra="allow")
class _Storage(TypedDict):
    cookies: NotRequired[list[_Cookie]]
    origins: NotRequired[list[_Origin]]


class _Own(TypedDict):
    format: int
    url: _Url
    calls: list[_Call]
    storageState: NotRequired[_Storage | None]
    storageStateAtEnd: NotRequired[_Storage | None]
    scrubbed: NotRequired[list[Scrubbed]]


class _Log(TypedDict):
    entries: list[_Entry]
    _opentabs: NotRequired[_Own]


class _Har(TypedDict):
    log: _Log


_HAR: Final = TypeAdapter(_Har)


def from_har(har: object, read: Callable[[str], bytes]) -> Recording:
    """Return the recording that a HAR contains; of any program, such as Chrome's DevTools.

    Args:
        har: The file's JSON.
        read: Returns the content of a file by its path relative to the HAR.

    Raises:
        HarError: It is not a HAR, or a later version of this package wrote it.
        OSError: A body's file cannot be read.
    """
    try:
        log = _HAR.validate_python(har)["log"]
    except ValidationError as error:
        [first, *_] = error.errors()
        place = ".".join(map(str, first["loc"])) or "the whole file"
        raise HarError(f"{place}: {first['msg'].lower()}") from error
    own = log.get("_opentabs")
    if own is not None and own["format"] > FORMAT:
        raise HarError(f"its format {own['format']} is of a later version; update opentabs")
    sockets = [each for each in log["entries"] if _is_socket(each)]
    asked = [each for each in log["entries"] if not _is_socket(each)]
    exchanges = [_exchange(each, read) for each in asked]
    return Recording(
        url=_first_url(asked, exchanges) if own is None else own["url"],
        exchanges=exchanges,
        sockets=[_socket(each) for each in sockets],
        calls=[] if own is None else [_recorded_call(each) for each in own["calls"]],
        storage_state=None if own is None else own.get("storageState"),
        scrubbed=[] if own is None else own.get("scrubbed", []),
        storage_at_end=None if own is None else own.get("storageStateAtEnd"),
    )


def _is_socket(entry: _Entry) -> bool:
    return entry.get("_resourceType") == WEBSOCKET or "_webSocketMessages" in entry


def _first_url(entries: Sequence[_Entry], exchanges: Sequence[Exchange]) -> str:
    """Return the URL of the first page, or else of another request to the site."""

    def rank(found: tuple[str, Request]) -> int:
        url, request = found
        if not url.startswith(("http://", "https://")):
            return 3  # such as of an extension
        return 0 if request.is_page else 1 + (request.kind == DOCUMENT)

    urls = [each["request"]["url"] for each in entries]
    requests = [each.request for each in exchanges]
    return min(zip(urls, requests, strict=True), key=rank, default=("", None))[0]


def _kind(entry: _Entry) -> str:
    """Return Playwright's `resource_type` of a request; other programs do not write it."""
    if (kind := entry.get("_resourceType")) is not None:
        return kind
    wanted = header(_pairs(entry["request"].get("headers", [])), "sec-fetch-dest")
    if wanted is not None:
        return DOCUMENT if wanted in FRAMES else _KINDS.get(wanted, wanted)
    received = entry["response"]
    mime = mime_of(_pairs(received.get("headers", [])))
    if is_html(mime):
        return DOCUMENT
    return next(
        (kind for start, kind in _KINDS_OF_TYPES.items() if mime.startswith(start)), "fetch"
    )


def _exchange(entry: _Entry, read: Callable[[str], bytes]) -> Exchange:
    sent, received = entry["request"], entry["response"]
    request = Request(
        sent["method"].upper(),
        sent["url"].partition("#")[0],
        _pairs(sent.get("headers", [])),
        _posted(sent.get("postData", {}), read),
        _kind(entry),
    )
    error = received.get("_error")
    is_answered = received["status"] > 0
    events = [
        Event(each["time"], each["data"], each["eventName"], each["eventId"])
        for each in entry.get("_eventSourceMessages", [])
    ]
    response = Response(
        received["status"],
        received.get("statusText", ""),
        _pairs(received.get("headers", [])),
        _body(received.get("content", {}), read),
        events,
    )
    return Exchange(
        request,
        response if is_answered else None,
        error if is_answered or error else "net::ERR_FAILED",
        entry["startedDateTime"].timestamp(),
        entry.get("time", 0.0) / 1000,
    )


def _posted(data: _PostData, read: Callable[[str], bytes]) -> bytes:
    body = _stored(data, data.get("_encoding"), read)
    if not body and data.get("mimeType", "").startswith(FORM):
        # Some programs write a form's fields instead of its text.
        fields = [(each["name"], each.get("value", "")) for each in data.get("params", [])]
        return urlencode(fields).encode()
    return body


def _body(content: "_Content | Mapping[str, Any]", read: Callable[[str], bytes]) -> bytes | None:
    return None if content.get("_lost") else _stored(content, content.get("encoding"), read)


def _stored(data: Mapping[str, Any], encoding: str | None, read: Callable[[str], bytes]) -> bytes:
    if (file := data.get("_file")) is not None:
        return read(file)
    text = str(data.get("text", ""))
    return _decoded(text) if encoding == "base64" else text.encode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise HarError(f"a body is not valid base64: {error}") from error


def _socket(entry: _Entry) -> RecordedSocket:
    frames = [
        Frame(
            each["time"],
            each["type"] == "send",
            each["data"] if each["opcode"] == TEXT_OPCODE else _decoded(each["data"]),
        )
        for each in entry.get("_webSocketMessages", [])
    ]
    return RecordedSocket(
        entry["request"]["url"],
        entry["startedDateTime"].timestamp(),
        frames,
        entry["response"].get("_error"),
    )


def _recorded_call(call: _Call) -> RecordedCall:
    return RecordedCall(
        call["tool"],
        call["arguments"],
        call.get("value"),
        call.get("error"),
        call["startedDateTime"].timestamp(),
        call["time"] / 1000,
    )


def _pairs(named: Sequence[_Named]) -> Headers:
    return [(each["name"], each["value"]) for each in named]
