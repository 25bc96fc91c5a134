"""Rewrite the SDK's responses on their way out: insert prepared parts, and avoid needless streams.

The SDK answers each request of the initialize era with an event stream, although most have no event
but the answer. And it validates, copies and serializes each result several times, which takes a
second for a list of 2,400 tools: a handler can leave a part out, and have it inserted here.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import Message, Scope

_SLOT: Final = "opentabs.prepared"
_EVENT: Final = b"event: message\r\ndata: "
_EVENT_END: Final = b"\r\n\r\n"
# A JSON-RPC response as the SDK writes it, alone or in an event. Requests to the client have an id
# too, but a method follows it.
_ANSWER: Final = re.compile(
    rb'(?:event: message\r\ndata: )?\{"jsonrpc":"2\.0","id":(?:-?\d+|"(?:[^"\\]|\\.)*+"|null),'
    rb'"(?:result|error)":'
)


@dataclass(slots=True)
class Prepared:
    """A part of an answer that is already JSON.

    Attributes:
        placeholder: What the SDK writes in its place; the first occurrence is replaced.
        content: The JSON.
    """

    placeholder: bytes = b""
    content: bytes = b""


def offer_slot(scope: Scope) -> Prepared:
    """Let the handler of a request prepare a part of its answer."""
    slot = scope[_SLOT] = Prepared()
    return slot


def find_slot(request: object) -> Prepared | None:
    """Return where to put a prepared part; None if the transport cannot insert it."""
    slot = request.scope.get(_SLOT) if isinstance(request, Request) else None
    return slot if isinstance(slot, Prepared) else None


class Rewriter:
    """Rewrites the messages of one HTTP response.

    Holds back its head until the first part of its body, which decides: an event stream whose first
    event is the answer becomes a JSON document.

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
        if not self.answered and _ANSWER.match(body):
            self.answered = True
            body = self._insert(body)
        head, self._head = self._head, None
        if head is None:
            return ({**message, "body": body},)
        if self.answered and body.startswith(_EVENT):
            self._ended = True  # what follows is the stream's end
            body = body[len(_EVENT) : -len(_EVENT_END)]
            headers = MutableHeaders(raw=list(head["headers"]))
            headers["content-type"] = "application/json"
            return self._whole(head, headers, body)
        if self._slot.content and self.answered:
            return self._whole(head, MutableHeaders(raw=list(head["headers"])), body)
        return head, message

    def _whole(self, head: Message, headers: MutableHeaders, body: bytes) -> Iterable[Message]:
        headers["content-length"] = str(len(body))
        last: Message = {"type": "http.response.body", "body": body, "more_body": False}
        return {**head, "headers": headers.raw}, last

    def _insert(self, body: bytes) -> bytes:
        slot = self._slot
        return body.replace(slot.placeholder, slot.content, 1) if slot.content else body
