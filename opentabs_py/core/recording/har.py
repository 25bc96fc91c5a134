"""Recordings as HAR 1.2, https://w3c.github.io/web-performance/specs/HAR/Overview.html.

WebSockets are written as Chrome does, in `_webSocketMessages`, and event streams in
`_eventSourceMessages`. A body is in a file of its own, which `content._file` names as Playwright
does. All else that HAR has no place for is in `log._opentabs`.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict  # noqa: UP035 (both from one place)

from opentabs_py.core.recording.exchange import (
    DOCUMENT,
    EVENT_STREAM,
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
    is_json,
    is_text,
)

FORMAT: Final = 1
WEBSOCKET: Final = "websocket"
_TEXT: Final = 1  # the opcodes of RFC 6455
_BINARY: Final = 2
_SUFFIXES: Final = {
    "text/html": "html",
    "text/css": "css",
    "text/plain": "txt",
    "text/javascript": "js",
    "application/javascript": "js",
    EVENT_STREAM: "txt",
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "font/woff2": "woff2",
}


class HarError(ValueError):
    """A file that is not a HAR, or not one that this version reads."""


# --- writing ---


def to_har(
    recording: Recording, *, folder: str, version: str
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Return a recording as HAR, and the bodies beside it.

    Args:
        recording: What to write; see `scrub`.
        folder: The directory of the bodies, relative to the HAR.
        version: The version of this package.

    Returns:
        The HAR as JSON, and the content of each file by its path relative to the HAR.
    """
    files: dict[str, bytes] = {}

    def store(body: bytes, mime: str) -> str:
        suffix = "json" if is_json(mime) else _SUFFIXES.get(mime, "txt" if is_text(mime) else "bin")
        path = f"{folder}/{sha256(body).hexdigest()[:20]}.{suffix}"
        files[path] = body
        return path

    entries = [_entry(each, store) for each in recording.exchanges]
    entries += [_socket_entry(each) for each in recording.sockets]
    entries.sort(key=lambda entry: str(entry["startedDateTime"]))
    own = {
        "format": FORMAT,
        "url": recording.url,
        "calls": [
            {
                "tool": call.tool,
                "arguments": call.arguments,
                **({"value": call.value} if call.error is None else {"error": call.error}),
                "startedDateTime": _date(call.started),
                "time": _ms(call.seconds),
            }
            for call in recording.calls
        ],
        "storageState": recording.storage_state,
        "storageStateAtEnd": recording.storage_at_end,
        "scrubbed": [
            {
                "kind": each.kind,
                "where": each.where,
                "replacement": each.replacement,
                "count": each.count,
            }
            for each in recording.scrubbed
        ],
    }
    creator = {"name": "opentabs", "version": version}
    log = {"version": "1.2", "creator": creator, "pages": [], "entries": entries, "_opentabs": own}
    return {"log": log}, files


def _entry(exchange: Exchange, store: Callable[[bytes, str], str]) -> dict[str, Any]:
    request, response = exchange.request, exchange.response
    sent: dict[str, Any] = {
        "method": request.method,
        "url": request.url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _named(request.headers),
        "queryString": _named(parse_qsl(urlsplit(request.url).query, keep_blank_values=True)),
        "headersSize": -1,
        "bodySize": len(request.body),
    }
    if request.body:
        sent["postData"] = {"mimeType": request.mime, **_text(request.body)}
    entry: dict[str, Any] = {
        "startedDateTime": _date(exchange.started),
        "time": _ms(exchange.seconds),
        "request": sent,
        "response": _received(response, store),
        "cache": {},
        "timings": {"send": 0, "wait": _ms(exchange.seconds), "receive": 0},
        "_resourceType": request.kind,
    }
    if exchange.error is not None:
        entry["response"]["_error"] = exchange.error
    if response is not None and response.events:
        entry["_eventSourceMessages"] = [
            {"time": each.at, "eventName": each.name, "eventId": each.last_id, "data": each.data}
            for each in response.events
        ]
    return entry


def _received(response: Response | None, store: Callable[[bytes, str], str]) -> dict[str, Any]:
    if response is None:
        response = Response(status=0, body=b"")
    content: dict[str, Any] = {"size": -1, "mimeType": response.mime}
    if response.body is None:
        content["_lost"] = True
    else:
        content["size"] = len(response.body)
        if response.body:
            content["_file"] = store(response.body, response.mime)
    location = next((v for name, v in response.headers if name.lower() == "location"), "")
    return {
        "status": response.status,
        "statusText": response.status_text,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _named(response.headers),
        "content": content,
        "redirectURL": location,
        "headersSize": -1,
        "bodySize": -1,
    }


def _socket_entry(socket: RecordedSocket) -> dict[str, Any]:
    entry = _entry(
        Exchange(
            Request("GET", socket.url, kind=WEBSOCKET),
            Response(101, "Switching Protocols"),
            started=socket.started,
        ),
        lambda _body, _mime: "",
    )
    entry["_webSocketMessages"] = [
        {
            "type": "send" if frame.is_sent else "receive",
            "time": frame.at,
            "opcode": _TEXT if isinstance(frame.data, str) else _BINARY,
            "data": frame.data
            if isinstance(frame.data, str)
            else base64.b64encode(frame.data).decode(),
        }
        for frame in socket.frames
    ]
    return entry


def _named(pairs: Headers) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _text(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"text": base64.b64encode(body).decode(), "_encoding": "base64"}


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


# --- reading ---


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
    url: str
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


class _Own(TypedDict):
    format: int
    url: str
    calls: list[_Call]
    storageState: NotRequired[dict[str, Any] | None]
    storageStateAtEnd: NotRequired[dict[str, Any] | None]
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
        place = ".".join(map(str, first["loc"]))
        raise HarError(f"{place}: {first['msg'].lower()}") from error
    own = log.get("_opentabs")
    if own is not None and own["format"] > FORMAT:
        raise HarError(f"its format {own['format']} is of a later version; update opentabs")
    sockets = [each for each in log["entries"] if _is_socket(each)]
    exchanges = [each for each in log["entries"] if not _is_socket(each)]
    documents = [e["request"]["url"] for e in exchanges if e.get("_resourceType") == DOCUMENT]
    first_url = (documents or [e["request"]["url"] for e in exchanges] or [""])[0]
    return Recording(
        url=first_url if own is None else own["url"],
        exchanges=[_exchange(each, read) for each in exchanges],
        sockets=[_socket(each) for each in sockets],
        calls=[] if own is None else [_recorded_call(each) for each in own["calls"]],
        storage_state=None if own is None else own.get("storageState"),
        scrubbed=[] if own is None else own.get("scrubbed", []),
        storage_at_end=None if own is None else own.get("storageStateAtEnd"),
    )


def _is_socket(entry: _Entry) -> bool:
    return entry.get("_resourceType") == WEBSOCKET or "_webSocketMessages" in entry


def _exchange(entry: _Entry, read: Callable[[str], bytes]) -> Exchange:
    sent, received = entry["request"], entry["response"]
    request = Request(
        sent["method"].upper(),
        sent["url"].partition("#")[0],
        _pairs(sent.get("headers", [])),
        _posted(sent.get("postData", {}), read),
        entry.get("_resourceType", "fetch"),
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
    if not body and data.get("mimeType", "").startswith("application/x-www-form-urlencoded"):
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
            each["data"] if each["opcode"] == _TEXT else _decoded(each["data"]),
        )
        for each in entry.get("_webSocketMessages", [])
    ]
    return RecordedSocket(entry["request"]["url"], entry["startedDateTime"].timestamp(), frames)


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
