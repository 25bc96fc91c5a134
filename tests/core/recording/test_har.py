"""Recordings as HAR, and back."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

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
from opentabs_py.core.recording.har import HarError, from_har, to_har

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
        RecordedSocket(
            "wss://site.test/s", AT + 5, [Frame(AT + 6, True, "hi"), Frame(AT + 7, False, b"\xff")]
        )
    ],
    [
        RecordedCall("mail_list", {"n": 1}, {"items": []}, None, AT, 0.125),
        RecordedCall("mail_send", {}, None, {"code": "AUTH_ERROR", "message": "no"}, AT, 0.5),
    ],
    {"cookies": [], "origins": []},
    [Scrubbed("cookie", "sid", "cookie-1", 3)],
    {"cookies": [{"name": "sid", "value": "cookie-1"}], "origins": []},
)


def stored(recording: Recording) -> tuple[Any, Mapping[str, bytes]]:
    har, files = to_har(recording, folder="x.bodies", version="1.2.3")
    return json.loads(json.dumps(har)), files


def plain(exchange: Exchange) -> Exchange:
    """An exchange whose sequences are lists."""
    sent, got = exchange.request, exchange.response
    return Exchange(
        Request(sent.method, sent.url, [*sent.headers], sent.body, sent.kind),
        None
        if got is None
        else Response(got.status, got.status_text, [*got.headers], got.body, [*got.events]),
        exchange.error,
        exchange.started,
        exchange.duration,
    )


def test_a_recording_comes_back_as_it_was() -> None:
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


def entry(**response: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-11-23T12:00:00.000Z",
        "request": {"method": "get", "url": "https://site.test/a#part"},
        "response": {"status": 200, **response},
    }


def har(*entries: Any, **own: Any) -> dict[str, Any]:
    return {"log": {"version": "1.2", "entries": [*entries], **own}}


def test_a_har_of_another_program_is_read() -> None:
    text = entry(content={"text": "plain", "mimeType": "text/plain"})
    coded = entry(content={"text": "/w==", "encoding": "base64"})
    document = {**entry(), "_resourceType": "document"}

    recording = from_har(har(text, coded, document), lambda _: b"")

    assert [e.response and e.response.body for e in recording.exchanges] == [b"plain", b"\xff", b""]
    assert recording.url == "https://site.test/a#part"
    assert recording.exchanges[0].request == Request("GET", "https://site.test/a", [])
    assert recording.calls == []
    assert from_har(har(text), lambda _: b"").url == "https://site.test/a#part"
    assert from_har(har(), lambda _: b"").url == ""


def test_a_request_without_an_answer_has_failed() -> None:
    [exchange] = from_har(har(entry(status=0)), lambda _: b"").exchanges
    assert (exchange.response, exchange.error) == (None, "net::ERR_FAILED")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "log: field required"),
        ({"log": {"entries": [{"request": 1}]}}, "log.entries.0"),
        (har(entry(content={"text": "%", "encoding": "base64"})), "not valid base64"),
        (
            har(_opentabs={"format": 99, "url": "", "calls": []}),
            "of a later version; update opentabs",
        ),
    ],
)
def test_what_is_not_a_recording_is_refused(wrong: object, said: str) -> None:
    with pytest.raises(HarError, match=said):
        from_har(wrong, lambda _: b"")
