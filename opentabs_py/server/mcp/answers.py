"""Rewrite the SDK's responses on their way out: insert prepared parts, and avoid long events.

The SDK validates, copies and serializes each result several times, which takes a second for a list
of 2,400 tools: a handler can leave a part out, and have it inserted here. And it answers each
request of the initialize era with an event stream, whose events must not be long: its own client
refuses them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import Message, Scope

_SLOT: Final = "opentabs.prepared"
_EVENT: Final = b"event: message\r\ndata: "
_EVENT_END: Final = b"\r\n\r\n"
_PART: Final = 1024 * 1024  # bytes; as much as is copied at once
_EVENT_MAX: Final = 512 * 1024  # bytes; the SDK's client refuses events over 1 MiB
# A JSON-RPC response as the SDK writes it, alone or in an event. Requests to the client have an id
# too, but a method follows it.
_ANSWER: Final = re.compile(
    rb'(?:event: message\r\ndata: )?\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?>(?:[^"\\]|\\.)*)"|null),'
    rb'"(?:result|error)":'
)


@dataclass(slots=True)
class Prepared:
    """A part of an answer that is already JSON.

    Attributes:
        placeholder: What the SDK writes in its place; the first occurrence is replaced.
        length: The size of the JSON, in bytes.
        left: How much of it has not been sent yet.
    """

    placeholder: bytes = b""
    length: int = 0
    left: int = 0
    _texts: Iterable["TextInParts"] = ()

    def fill(self, placeholder: bytes, *texts: "TextInParts") -> None:
        """Prepare texts to be sent one after the other."""
        self.placeholder = placeholder
        self.length = self.left = sum(map(len, texts))
        self._texts = texts

    def parts(self) -> Iterator[bytes]:
        """Yield the JSON in parts, each made as soon as the client has read most of the last."""
        # Not kept: the SDK holds the request until cyclic garbage is collected.
        texts, self._texts = self._texts, ()
        for part in chain.from_iterable(texts):
            self.left -= len(part)
            yield part


class TextInParts:
    """Text to be sent in short parts.

    Args:
        content: The text, in UTF-8.
        quoted: Send it as a JSON string; it must itself be JSON, so that it has no control
            characters.
    """

    def __init__(self, content: bytes, *, quoted: bool = False) -> None:
        self._content = content
        self._quoted = quoted

    def __len__(self) -> int:
        escapes = self._content.count(b'"') + self._content.count(b"\\") + 2 if self._quoted else 0
        return len(self._content) + escapes

    def __iter__(self) -> Iterator[bytes]:
        if self._quoted:
            yield b'"'
        for start in range(0, len(self._content), _PART):
            part = self._content[start : start + _PART]
            if self._quoted:
                part = part.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
            yield part
        if self._quoted:
            yield b'"'


def offer_slot(scope: Scope) -> Prepared:
    """Let the handler of a request prepare a part of its answer."""
    slot = scope[_SLOT] = Prepared()
    return slot


def find_slot(request: object) -> Prepared | None:
    """Return where to put a prepared part; None if the transport cannot insert it.

    Args:
        request: What the transport gave the SDK with the message: the slot itself over stdio.
    """
    slot = request.scope.get(_SLOT) if isinstance(request, Request) else request
    return slot if isinstance(slot, Prepared) else None


def count_left(scope: Scope) -> int:
    """Return how many bytes of a request's prepared part wait for the client."""
    slot = scope.get(_SLOT)
    return slot.left if isinstance(slot, Prepared) else 0


class Rewriter:
    """Rewrites the messages of one HTTP response.

    Holds back its head until the first part of its body, which decides: an event stream whose first
    event is the answer, and too long for an event, becomes a JSON document.

    Attributes:
        answered: Whether the answer has passed, or begun to.
    """

    def __init__(self, slot: Prepared) -> None:
        self._slot = slot
        self._head: Message | None = None
        self._ended = False
        self.answered = False

    def feed(self, message: Message) -> Iterable[Message]:
        """Receive the SDK's next message, and return those to send."""
        if message["type"] == "http.response.start":
            self._head = message
            return ()
        if message["type"] != "http.response.body" or self._ended:
            return () if self._ended else (message,)
        body: bytes = message.get("body", b"")
        head, self._head = self._head, None
        if self.answered or not _ANSWER.match(body):
            return (message,) if head is None else (head, message)
        self.answered = True
        more = bool(message.get("more_body", False))
        answer = _Answer.read(body, self._slot)
        is_event = body.startswith(_EVENT)
        if head is None:
            return answer.messages(more=more)
        if is_event and len(answer) <= _EVENT_MAX:
            return chain((head,), answer.messages(more=more))
        headers = MutableHeaders(raw=list(head["headers"]))
        if is_event:
            self._ended = True  # what follows is the stream's end
            answer = _Answer.read(body[len(_EVENT) : -len(_EVENT_END)], self._slot)
            headers["content-type"] = "application/json"
            more = False
        headers["content-length"] = str(len(answer))
        return chain(({**head, "headers": headers.raw},), answer.messages(more=more))


@dataclass(frozen=True, slots=True)
class _Answer:
    """A body with an answer, around its prepared part if it has one."""

    before: bytes
    prepared: Prepared | None
    after: bytes

    @classmethod
    def read(cls, body: bytes, slot: Prepared) -> "_Answer":
        if not slot.placeholder or slot.placeholder not in body:
            return cls(body, None, b"")
        before, _, after = body.partition(slot.placeholder)
        return cls(before, slot, after)

    def __len__(self) -> int:
        prepared = 0 if self.prepared is None else self.prepared.length
        return len(self.before) + prepared + len(self.after)

    def messages(self, *, more: bool) -> Iterator[Message]:
        yield _body(self.before, more=more or self.prepared is not None)
        if self.prepared is not None:
            yield from map(_body, self.prepared.parts())
            yield _body(self.after, more=more)


def _body(content: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}
