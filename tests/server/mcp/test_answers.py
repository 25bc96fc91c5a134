"""The SDK's responses, rewritten: no event is too long, and prepared parts are inserted."""

import json
import weakref
from typing import Any

import pytest
from starlette.types import Message

from opentabs_py.server.mcp.answers import Prepared, Rewriter, TextInParts

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def head(**headers: str) -> Message:
    raw = [(name.encode().replace(b"_", b"-"), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": 200, "headers": raw}


def body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


def event(content: bytes) -> Message:
    return body(b"event: message\r\ndata: " + content + b"\r\n\r\n")


def rewrite(*messages: Message, slot: Prepared | None = None) -> list[Message]:
    rewriter = Rewriter(slot or Prepared())
    return [each for message in messages for each in rewriter.feed(message)]


def prepared(*contents: bytes) -> Prepared:
    slot = Prepared()
    slot.fill(b'"tools":[]', *map(TextInParts, contents))
    return slot


@pytest.mark.parametrize("value", ["", 'a "b" \\ c\n', "\u00e9\u2028\U0001f600", '"\\' * 1_000_000])
def test_a_text_in_quotes_is_a_json_string_of_it(value: str) -> None:
    text = TextInParts(json.dumps([value], ensure_ascii=False).encode(), quoted=True)
    whole = b"".join(text)
    assert json.loads(json.loads(whole)) == [value]
    assert len(whole) == len(text)
    assert max(map(len, text)) <= 2 * 1024 * 1024


def test_a_text_is_not_kept_once_it_was_sent() -> None:
    text = TextInParts(b"a text")
    sent = weakref.ref(text)
    slot = Prepared()
    slot.fill(b'"tools":[]', text)
    del text

    assert b"".join(slot.parts()) == b"a text"

    assert sent() is None


STREAM = head(content_type="text/event-stream", mcp_session_id="s")
END = body(b"", more=False)


def headers(message: Message) -> dict[bytes, bytes]:
    return dict(message["headers"])


LONG = b'"tools":["' + b"x" * 600_000 + b'"]'


def test_an_answer_that_is_too_long_for_an_event_is_sent_as_a_document() -> None:
    answer = ANSWER.replace(b'"tools":[]', LONG)
    first, content = rewrite(STREAM, event(answer), END)
    assert headers(first) == {
        b"content-type": b"application/json",
        b"content-length": str(len(answer)).encode(),
        b"mcp-session-id": b"s",
    }
    assert content == body(answer, more=False)


def test_a_short_answer_in_a_stream_stays_as_it_is() -> None:
    messages = [STREAM, event(ANSWER), END]
    assert rewrite(*messages) == messages


def test_a_stream_that_ends_with_its_answer_ends_when_a_part_was_put_in() -> None:
    last = {**event(ANSWER), "more_body": False}
    *_, end = rewrite(STREAM, event(PROGRESS), last, slot=prepared(b'"tools":[1]'))
    assert end["more_body"] is False


@pytest.mark.parametrize("other", [event(PROGRESS), event(REQUEST), body(b": ping\r\n\r\n")])
def test_a_stream_with_another_event_first_stays_as_it_is(other: Message) -> None:
    messages = [STREAM, other, event(ANSWER), END]
    assert rewrite(*messages) == messages


def test_a_streams_head_is_sent_with_its_first_event() -> None:
    rewriter = Rewriter(Prepared())
    assert list(rewriter.feed(STREAM)) == []
    assert list(rewriter.feed(event(PROGRESS))) == [STREAM, event(PROGRESS)]


def test_an_empty_response_stays_as_it_is() -> None:
    accepted: dict[str, Any] = {**head(), "status": 202}
    assert rewrite(accepted, END) == [accepted, END]


@pytest.mark.parametrize(
    "messages",
    [
        (STREAM, event(ANSWER), END),
        (head(content_type="application/json", content_length="46"), body(ANSWER, more=False)),
    ],
)
def test_a_prepared_part_replaces_its_place_and_the_length_fits(
    messages: tuple[Message, ...],
) -> None:
    content = LONG
    first, *parts = rewrite(*messages, slot=prepared(content))
    expected = ANSWER.replace(b'"tools":[]', content)
    assert b"".join(each["body"] for each in parts) == expected
    assert [each["more_body"] for each in parts] == [True, True, False]
    assert headers(first)[b"content-length"] == str(len(expected)).encode()


def test_a_prepared_part_is_put_into_the_answer_of_a_stream_too() -> None:
    slot = prepared(b'"tools":[1]')
    _, _, *parts = rewrite(STREAM, body(b": ping\r\n\r\n"), event(ANSWER), END, slot=slot)
    expected = event(ANSWER.replace(b"[]", b"[1]"))["body"]
    assert b"".join(each["body"] for each in parts) == expected
    assert [each["more_body"] for each in parts] == [True, True, True, False]


def test_an_error_instead_of_the_answer_is_left_as_it_is() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'
    document = head(content_type="application/json", content_length=str(len(error)))
    _, content = rewrite(document, body(error, more=False), slot=prepared(b"[1]"))
    assert content["body"] == error
