"""Write recordings as HAR 1.2, https://w3c.github.io/web-performance/specs/HAR/Overview.html.

WebSockets are written as Chrome does, in `_webSocketMessages`, and event streams in
`_eventSourceMessages`. A body is in a file of its own, which `content._file` names as Playwright
does. All else that HAR has no place for is in `log._opentabs`.
"""

import base64
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from opentabs_py.core.recording.exchange import (
    EVENT_STREAM,
    Exchange,
    Headers,
    RecordedSocket,
    Recording,
    Request,
    Response,
    header,
    is_json,
    is_text,
)

FORMAT: Final = 1
WEBSOCKET: Final = "websocket"
TEXT_OPCODE: Final = 1  # of RFC 6455
_BINARY_OPCODE: Final = 2
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

    # Requests stay in their order, whatever their times; see `TrafficRecorder.stop`.
    times = accumulate((each.started for each in recording.exchanges), max)
    timed = [*zip(times, (_entry(each, store) for each in recording.exchanges), strict=True)]
    timed += [(each.started, _socket_entry(each)) for each in recording.sockets]
    timed.sort(key=itemgetter(0))
    entries = [entry for _, entry in timed]
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
        "scrubbed": [asdict(each) for each in recording.scrubbed],
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
    return {
        "status": response.status,
        "statusText": response.status_text,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _named(response.headers),
        "content": content,
        "redirectURL": header(response.headers, "location") or "",
        "headersSize": -1,
        "bodySize": -1,
    }


def _socket_entry(socket: RecordedSocket) -> dict[str, Any]:
    entry = _entry(
        Exchange(
            Request("GET", socket.url, kind=WEBSOCKET),
            Response(101, "Switching Protocols") if socket.error is None else None,
            socket.error,
            started=socket.started,
        ),
        lambda _body, _mime: "",
    )
    entry["_webSocketMessages"] = [
        {
            "type": "send" if frame.is_sent else "receive",
            "time": frame.at,
            "opcode": TEXT_OPCODE if isinstance(frame.data, str) else _BINARY_OPCODE,
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
