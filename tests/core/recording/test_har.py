"""Recordings as HAR, written and read back."""

import json
from collections.abc import Mapping
from typing import Any

from opentabs_py.core.recording.exchange import (
    Event,
    Exchange,
    Frame,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
    Scrubbed,
)
from opentabs_py.core.recording.har import to_har
from opentabs_py.core.recording.har_reader import from_har

URL = "https://site.test/"
AT = 1_795_474_025.25
STREAM = Response(
    200,
    "",
    [("content-type", "text/event-stream")],
    b"data: x\n\n",
    [Event(AT, "x", "message", "1")],
)
RECORDING = Recording(
    "https://site.test/",
    [
        Exchange(
            Request("GET", "https://site.test/?a=1&a=2", [("accept", "*/*")], kind="document"),
            Response(200, "OK", [("Content-Type", "text/html; charset=utf-8")], b"<p>"),
            None,
            AT,
            0.5,
        ),
        Exchange(
            Request("POST", "https://site.test/a", [("content-type", "text/plain")], b"\xff\x00"),
            Response(302, "Found", [("location", "/b")]),
            None,
            AT + 1,
            0.25,
        ),
        Exchange(
            Request("PUT", "https://site.test/c", (), b"text"),
            Response(200, body=None),
            None,
            AT + 2,
        ),
        Exchange(Request("GET", "https://site.test/d"), None, "net::ERR_FAILED", AT + 3),
        Exchange(Request("GET", "https://site.test/e", kind="eventsource"), STREAM, None, AT + 4),
    ],
    [
        RecordedSocket("wss://site.test/refused", AT, [], "Unauthorized: 401"),
        RecordedSocket(
            "wss://site.test/s", AT + 5, [Frame(AT + 6, True, "hi"), Frame(AT + 7, False, b"\xff")]
        ),
    ],
    [
        RecordedCall("mail_list", {"n": 1}, {"items": []}, None, AT, 0.125),
        RecordedCall("mail_send", {}, None, {"code": "AUTH_ERROR", "message": "no"}, AT, 0.5),
    ],
    {"cookies": [], "origins": []},
    [Scrubbed("cookie", "sid", "cookie-1", 3)],
    {
        "cookies": [{"name": "sid", "value": "cookie-1", "domain": "site.test", "path": "/"}],
        "origins": [],
    },
)


def stored(recording: Recording) -> tuple[Any, Mapping[str, bytes]]:
    har, files = to_har(recording, folder="x.bodies", version="1.2.3")
    return json.loads(json.dumps(har)), files


def plain(exchange: Exchange) -> Exchange:
    """A request and its response whose sequences are lists."""
    sent, got = exchange.request, exchange.response
    return Exchange(
        Request(sent.method, sent.url, [*sent.headers], sent.body, sent.kind),
        None
        if got is None
        else Response(got.status, got.status_text, [*got.headers], got.body, [*got.events]),
        exchange.error,
        exchange.started,
        exchange.seconds,
    )


def test_a_recording_is_read_as_it_was_written() -> None:
    har, files = stored(RECORDING)

    back = from_har(har, files.__getitem__)

    assert [plain(each) for each in back.exchanges] == [plain(e) for e in RECORDING.exchanges]
    assert back.sockets == RECORDING.sockets
    assert back.calls == RECORDING.calls
    assert back.url == RECORDING.url
    assert back.storage_state == RECORDING.storage_state
    assert back.storage_at_end == RECORDING.storage_at_end
    assert back.scrubbed == RECORDING.scrubbed


def test_each_body_is_stored_once_under_a_name_that_says_what_it_is() -> None:
    def answer(body: bytes, mime: str) -> Exchange:
        response = Response(200, "OK", [("content-type", mime)], body)
        return Exchange(Request("GET", "https://site.test/"), response)

    mimes = ["application/json", "application/ld+json", "text/html", "text/x", "application/x", ""]
    recording = Recording("", [answer(f"{mime} ".encode(), mime) for mime in mimes] * 2)
    har, files = stored(recording)

    assert sorted(path.rpartition(".")[2] for path in files) == [
        "bin",
        "html",
        "json",
        "json",
        "txt",
        "txt",
    ]
    assert all(path.startswith("x.bodies/") for path in files)
    assert len(har["log"]["entries"]) == 12


def test_the_file_says_what_made_it() -> None:
    har, _ = stored(RECORDING)
    log = har["log"]
    assert log["version"] == "1.2"
    assert log["creator"] == {"name": "opentabs", "version": "1.2.3"}
    assert [entry["startedDateTime"] for entry in log["entries"]] == sorted(
        entry["startedDateTime"] for entry in log["entries"]
    )
    assert log["entries"][0]["request"]["queryString"] == [
        {"name": "a", "value": "1"},
        {"name": "a", "value": "2"},
    ]


def test_an_entry_is_written_as_the_specification_says() -> None:
    headers = [("Content-Type", "image/png"), ("Location", "/b")]
    sent = Request("POST", f"{URL}?a=&b=1", [("content-type", "text/plain")], b"\xff", "xhr")
    exchange = Exchange(sent, Response(302, "Found", headers, b"abc"), "net::ERR", AT, 0.25)
    har, files = stored(Recording(URL, [exchange]))
    [written] = har["log"]["entries"]
    [file] = files
    assert written == {
        "startedDateTime": "2026-11-23T22:47:05.250+00:00",
        "time": 250.0,
        "request": {
            "method": "POST",
            "url": f"{URL}?a=&b=1",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [{"name": "content-type", "value": "text/plain"}],
            "queryString": [{"name": "a", "value": ""}, {"name": "b", "value": "1"}],
            "headersSize": -1,
            "bodySize": 1,
            "postData": {"mimeType": "text/plain", "text": "/w==", "_encoding": "base64"},
        },
        "response": {
            "status": 302,
            "statusText": "Found",
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [
                {"name": "Content-Type", "value": "image/png"},
                {"name": "Location", "value": "/b"},
            ],
            "content": {"size": 3, "mimeType": "image/png", "_file": file},
            "redirectURL": "/b",
            "headersSize": -1,
            "bodySize": -1,
            "_error": "net::ERR",
        },
        "cache": {},
        "timings": {"send": 0, "wait": 250.0, "receive": 0},
        "_resourceType": "xhr",
    }
    assert file == "x.bodies/ba7816bf8f01cfea4141.png"  # of the SHA-256 of the body
    assert har["log"]["pages"] == []


def test_what_did_not_come_is_written_so() -> None:
    lost = Exchange(Request("GET", URL), Response(200, body=None))
    none = Exchange(Request("GET", URL), None, "net::ERR_FAILED")
    har, files = stored(Recording(URL, [lost, none]))
    first, second = (each["response"] for each in har["log"]["entries"])
    assert first["content"] == {"size": -1, "mimeType": "", "_lost": True}
    assert (second["status"], second["_error"]) == (0, "net::ERR_FAILED")
    assert second["content"] == {"size": 0, "mimeType": ""}
    assert second["redirectURL"] == ""
    assert "_error" not in first
    assert files == {}


def test_times_are_written_in_milliseconds_to_the_microsecond() -> None:
    exchange = Exchange(Request("GET", URL), Response(200), None, AT, 0.001_234_567)
    har, _ = stored(Recording(URL, [exchange]))
    [written] = har["log"]["entries"]
    assert (written["time"], written["timings"]["wait"]) == (1.235, 1.235)


def test_requests_and_websockets_are_written_in_the_order_they_began() -> None:
    exchanges = [Exchange(Request("GET", f"{URL}{at}"), None, "x", at) for at in (1.0, 3.0)]
    sockets = [RecordedSocket(f"{URL}{at}", at) for at in (2.0, 0.0)]
    har, _ = stored(Recording(URL, exchanges, sockets))
    urls = [each["request"]["url"] for each in har["log"]["entries"]]
    assert urls == [f"{URL}{at}" for at in (0.0, 1.0, 2.0, 3.0)]


def test_requests_stay_in_the_order_in_which_the_page_made_them() -> None:
    exchanges = [
        Exchange(Request("GET", f"{URL}{name}"), None, "x", at)
        for name, at in (("a", 2.0), ("b", 1.0))
    ]
    har, _ = stored(Recording(URL, exchanges, [RecordedSocket(f"{URL}c", 1.5)]))
    urls = [each["request"]["url"] for each in har["log"]["entries"]]
    assert urls == [f"{URL}{name}" for name in "cab"]


def test_messages_are_written_as_chrome_writes_them() -> None:
    har, _ = stored(RECORDING)
    stream, socket = har["log"]["entries"][-2:]
    assert stream["_eventSourceMessages"] == [
        {"time": AT, "eventName": "message", "eventId": "1", "data": "x"}
    ]
    assert socket["_resourceType"] == "websocket"
    assert socket["request"]["method"] == "GET"
    assert (socket["response"]["status"], socket["response"]["statusText"]) == (
        101,
        "Switching Protocols",
    )
    assert socket["_webSocketMessages"] == [
        {"type": "send", "time": AT + 6, "opcode": 1, "data": "hi"},
        {"type": "receive", "time": AT + 7, "opcode": 2, "data": "/w=="},
    ]
