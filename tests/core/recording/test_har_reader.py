"""HARs of this and of other programs, and files that are not HARs."""

from typing import Any

import pytest

from opentabs_py.core.recording.exchange import Frame, Request, Response
from opentabs_py.core.recording.har_reader import HarError, from_har

URL = "https://site.test/"


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
    assert recording.exchanges[0].seconds == 0.0
    assert recording.calls == []
    early = {"format": 1, "url": "https://early.test/", "calls": []}
    assert from_har(har(_opentabs=early), lambda _: b"").scrubbed == []
    assert from_har(har(text), lambda _: b"").url == "https://site.test/a#part"
    assert from_har(har(), lambda _: b"").url == ""


def test_the_body_of_a_request_may_be_in_a_file() -> None:
    data = {"mimeType": "text/plain", "text": "", "params": [], "_file": "a.bin"}
    sent = {**entry(), "request": {"method": "POST", "url": URL, "postData": data}}
    [exchange] = from_har(har(sent), {"a.bin": b"\xff"}.__getitem__).exchanges
    assert exchange.request.body == b"\xff"


@pytest.mark.parametrize(
    ("mime", "body"),
    [
        ("application/x-www-form-urlencoded; charset=utf-8", b"text=a+%26+b&empty="),
        ("multipart/form-data; boundary=x", b""),
    ],
)
def test_the_fields_of_a_form_are_its_body_if_its_text_is_missing(mime: str, body: bytes) -> None:
    fields = [{"name": "text", "value": "a & b"}, {"name": "empty"}]
    data = {"mimeType": mime, "params": fields}
    sent = {**entry(), "request": {"method": "POST", "url": URL, "postData": data}}
    with_text = {**sent["request"], "postData": {**data, "text": "text=c"}}
    with_neither = {**sent["request"], "postData": {"mimeType": mime}}
    requests = [sent["request"], with_text, with_neither]
    recording = from_har(har(*({**sent, "request": each} for each in requests)), lambda _: b"")
    assert [each.request.body for each in recording.exchanges] == [body, b"text=c", b""]


def test_a_request_without_an_answer_has_failed() -> None:
    [exchange] = from_har(har(entry(status=0)), lambda _: b"").exchanges
    assert (exchange.response, exchange.error) == (None, "net::ERR_FAILED")


def with_cookie(**cookie: str) -> Any:
    stored = {"cookies": [cookie]}
    return har(_opentabs={"format": 1, "url": "", "calls": [], "storageState": stored})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, "log: field required"),
        ([], "the whole file: input should be"),
        ({"log": {"entries": [{"request": 1}]}}, "log.entries.0"),
        (har(entry(content={"text": "%", "encoding": "base64"})), "not valid base64"),
        (
            with_cookie(domain="site.test", path="/"),
            "storageState.cookies.0.name: field required",
        ),
        (
            with_cookie(name="sid", value="1", path="/"),
            "storageState.cookies.0.domain: field required",
        ),
        (
            with_cookie(name="sid", value="1", domain="site.test"),
            "storageState.cookies.0.path: field required",
        ),
        (
            har({**entry(), "request": {"method": "GET", "url": "http://["}}),
            "log.entries.0.request.url: input should be a valid url",
        ),
        (
            har({**entry(), "request": {"method": "GET", "url": "http://a:bad/"}}),
            "log.entries.0.request.url: input should be a valid url",
        ),
        (
            har({**entry(), "request": {"method": "GET", "url": "http://a/\ud83d"}}),
            "log.entries.0.request.url: input should be a valid url",
        ),
        (
            har(_opentabs={"format": 1, "url": "http://[", "calls": []}),
            "log._opentabs.url: input should be a valid url",
        ),
        (
            har(_opentabs={"format": 99, "url": "", "calls": []}),
            "of a later version; update opentabs",
        ),
    ],
)
def test_what_is_not_a_recording_is_refused(wrong: object, said: str) -> None:
    with pytest.raises(HarError, match=said):
        from_har(wrong, lambda _: b"")


def test_an_entry_of_another_program_may_say_more_and_less() -> None:
    sent = {"method": "post", "url": "https://site.test/a", "postData": {"mimeType": "text/plain"}}
    failed = {**entry(status=0, _error="net::ERR_ABORTED"), "request": sent, "time": 1500}
    frames = [{"type": "receive", "time": 1.5, "opcode": 1, "data": "hi"}]
    socket = {**entry(), "_webSocketMessages": frames, "_resourceType": "other"}
    broken = entry(_error="net::ERR_CONTENT_LENGTH_MISMATCH", content={"_lost": True})

    recording = from_har(har(failed, socket, broken), lambda _: b"")

    assert recording.exchanges[0].request == Request("POST", "https://site.test/a", [])
    assert recording.exchanges[0].response is None
    assert recording.exchanges[0].error == "net::ERR_ABORTED"
    assert recording.exchanges[0].started == 1_795_435_200
    assert recording.exchanges[0].seconds == 1.5
    assert recording.exchanges[1].response == Response(200, "", [], None, [])
    assert recording.exchanges[1].error == "net::ERR_CONTENT_LENGTH_MISMATCH"
    assert [each.frames for each in recording.sockets] == [[Frame(1.5, False, "hi")]]


def test_the_first_document_is_the_address_of_a_recording() -> None:
    def at(url: str, kind: str) -> dict[str, Any]:
        return {**entry(), "request": {"method": "GET", "url": url}, "_resourceType": kind}

    early, page, later = (
        at("https://a/", "xhr"),
        at("https://b/", "document"),
        at("https://c/", "document"),
    )
    assert from_har(har(early, page, later), lambda _: b"").url == "https://b/"
    assert from_har(har(early), lambda _: b"").url == "https://a/"


def test_a_websocket_without_messages_is_recorded() -> None:
    recording = from_har(har({**entry(), "_resourceType": "websocket"}), lambda _: b"")
    assert [each.frames for each in recording.sockets] == [[]]
    assert recording.exchanges == []


def asked(url: str, mime: str = "", to: str = "", **more: Any) -> dict[str, Any]:
    """A request as other programs record it, for what `sec-fetch-dest` says."""
    sent: dict[str, Any] = {"method": "GET", "url": url, "headers": []}
    if to:
        sent["headers"] = [{"name": "Sec-Fetch-Dest", "value": to}]
    headers = [{"name": "Content-Type", "value": mime}] if mime else []
    return {**entry(headers=headers), "request": sent, **more}


@pytest.mark.parametrize(
    ("mime", "to", "kind"),
    [
        ("application/json", "document", "document"),
        ("text/html", "iframe", "document"),
        ("text/html", "empty", "fetch"),
        ("text/css", "style", "stylesheet"),
        ("text/javascript", "script", "script"),
        ("text/html; charset=utf-8", "", "document"),
        ("text/css", "", "stylesheet"),
        ("image/png", "", "image"),
        ("application/json", "", "fetch"),
        ("", "", "fetch"),
    ],
)
def test_the_kind_of_a_request_that_a_har_does_not_name_is_that_of_its_destination_or_response(
    mime: str, to: str, kind: str
) -> None:
    [exchange] = from_har(har(asked(URL, mime, to)), lambda _: b"").exchanges
    assert exchange.request.kind == kind


def test_a_recording_begins_with_a_page_not_with_a_frame_or_an_extension() -> None:
    others = [
        asked("chrome-extension://a/x.html", "text/html"),
        asked("https://widget.test/", "text/html", "iframe"),
        asked("https://site.test/api"),
    ]
    page = asked(URL, "text/html", "document")
    urls = [from_har(har(*each), lambda _: b"").url for each in ([*others, page], others)]
    assert urls == [URL, "https://site.test/api"]
    assert from_har(har(*others[:2]), lambda _: b"").url == "https://widget.test/"
