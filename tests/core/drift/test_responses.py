"""Which responses of a site count."""

import json

from opentabs_py.core.drift.responses import Responses, responses_of
from opentabs_py.core.recording.exchange import (
    Event,
    Exchange,
    Frame,
    RecordedCall,
    RecordedSocket,
    Recording,
    Request,
    Response,
)
from tests.core.drift.samples import HOME, JSON, called, got, recording


def found(*parts: Exchange | RecordedCall) -> dict[str, Responses]:
    return {str(each): responses for each, responses in responses_of(recording(*parts)).items()}


def test_responses_are_those_of_the_site_and_of_calls() -> None:
    responses = found(
        got("/api", 1, at=20),
        got("https://api.example.com/", 1, at=20),
        got("https://ads.example.org/", 1, at=20),
        got("https://data.example.org/", 1, at=5),
        got("/logo.png", 1, kind="image"),
        called(),
    )

    assert [*responses] == [
        "GET /api",
        "GET https://api.example.com/",
        "GET https://data.example.org/",
    ]


def test_a_request_belongs_to_the_call_during_which_it_was_sent() -> None:
    calls = [RecordedCall("a", started=1, seconds=1), RecordedCall("b", started=3, seconds=1)]
    times = (0.5, 1.5, 2.1, 2.9, 3.0, 4.2, 9.0)
    traffic = Recording(HOME, [got(f"/{at}", at=at) for at in times], calls=calls)

    responses = responses_of(traffic)

    assert [[*each.tools] for each in responses.values()] == [
        [],
        ["a"],
        ["a"],
        [],
        ["b"],
        ["b"],
        [],
    ]


def test_only_successful_responses_are_samples() -> None:
    responses = found(
        got("/api", {"a": 1}),
        got("/api", {"error": 1}, status=404),
        got("/api", status=304),
        got("/api", {}, status=204),
    )["GET /api"]

    assert responses.samples == [{"a": 1}, {}]
    assert responses.statuses == {200, 404, 204}
    assert responses.works


def test_what_is_not_what_it_says_is_of_another_type() -> None:
    broken = Exchange(Request("GET", HOME), Response(200, "", JSON, b"{"), started=1)
    empty = Exchange(Request("GET", HOME), Response(200, "", JSON, b""), started=1)
    text = Exchange(
        Request("GET", HOME), Response(200, "", [("content-type", "text/csv")], b"a"), started=1
    )

    assert found(broken)["GET /"].media == {"another type"}
    assert found(text)["GET /"].media == {"another type"}
    assert found(empty)["GET /"].media == set()


def test_a_request_without_a_response_has_failed() -> None:
    responses = found(Exchange(Request("GET", HOME), None, started=1))["GET /"]

    assert (responses.statuses, responses.failures, responses.works) == (
        {0},
        {"no response"},
        False,
    )


def test_messages_of_an_event_stream_are_responses_by_their_name() -> None:
    events = [Event(1, '{"a": 1}', "note"), Event(2, "not JSON", "note"), Event(3, "[]")]
    stream = Exchange(
        Request("GET", f"{HOME}events", kind="eventsource"),
        Response(200, "", [("content-type", "text/event-stream")], b"", events),
        started=1,
    )

    responses = found(stream, called())

    assert {name: each.samples for name, each in responses.items()} == {
        "message /events note": [{"a": 1}],
        "message /events message": [[]],
    }
    assert [*responses["message /events note"].tools] == ["t"]


def test_messages_of_a_websocket_are_responses_by_their_type() -> None:
    frames = [
        Frame(1, True, '{"type": "hello"}'),
        Frame(2, False, json.dumps({"type": "note", "a": 1})),
        Frame(3, False, json.dumps({"type": "Text of a person", "event": "seen"})),
        Frame(4, False, b"\0"),
        Frame(5, False, "pong"),
        Frame(6, False, "[1]"),
    ]
    sockets = [
        RecordedSocket("wss://else.example.org/", 1, frames),
        RecordedSocket("wss://example.com/live?x", 1, frames),
    ]

    responses = responses_of(Recording(HOME, sockets=sockets))

    assert [str(each) for each in responses] == [
        "message /live note",
        "message /live seen",
        "message /live",
    ]
    assert [each.samples for each in responses.values()][2] == [[1]]
    assert [each.statuses for each in responses.values()] == [{200}] * 3
    assert [each.media for each in responses.values()] == [{"JSON"}] * 3
