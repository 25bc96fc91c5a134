"""Long messages in short frames.

A message longer than `CHUNK` characters would hold up everything behind it, and Chrome's
Port refuses more than 64 MiB. It travels as several text frames, each

    ~ DOCUMENT_ID STREAM MARK PART

with no spaces between: a tilde, the 32 hex digits of the document it is from or for, 8 hex
digits that identify one long message of that document, `+` (more follows) or `.` (this is the
last), and a part of the message's text. No JSON text begins with a tilde.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from opentabs_py.errors import ProtocolError

CHUNK = 256 * 1024  # characters; the fastest part size measured for 16 MiB over a Port
WHOLE = 1024 * 1024  # characters; a message up to this length is sent as one frame
STREAM = 33  # characters before the number of the long message
HEADER = 42  # characters before the part


def split(text: str, document_id: str, stream: int) -> Iterator[str]:
    """Split a message into frames; a short one is its own frame."""
    if len(text) <= WHOLE:
        yield text
        return
    head = f"~{document_id}{stream & 0xFFFFFFFF:08x}"
    last = (len(text) - 1) // CHUNK * CHUNK
    for start in range(0, last, CHUNK):
        yield f"{head}+{text[start : start + CHUNK]}"
    yield f"{head}.{text[last:]}"


class Assembler:
    """Joins the frames of one connection; make a new one for a new connection.

    A document sends the parts of a message one after the other, so it has at most one unfinished
    message. When it begins another, the rest of that one never comes.

    Args:
        limit: The longest message accepted, in characters.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._unfinished: dict[str, _Partial] = {}  # by document

    def feed(self, frame: str) -> str | None:
        """Receive a frame and return the message it completes, if any.

        Raises:
            ProtocolError: The frame is malformed, or its message is over the limit; the rest of
                that is ignored. All others continue.
        """
        if not frame.startswith("~"):
            if len(frame) > self._limit:
                raise ProtocolError(f"a message of {len(frame)} characters is over the limit")
            return frame
        if len(frame) < HEADER or frame[HEADER - 1] not in "+.":
            raise ProtocolError("a chunk's header is malformed")
        document_id, stream = frame[1:STREAM], frame[STREAM : HEADER - 1]
        is_last, part = frame[HEADER - 1] == ".", frame[HEADER:]
        message = self._unfinished.pop(document_id, None)
        if message is None or message.stream != stream:
            message = _Partial(stream)
        if not is_last:
            self._unfinished[document_id] = message
        was_refused = message.size > self._limit
        message.size += len(part)
        if message.size > self._limit:
            message.parts.clear()
            if was_refused:
                return None
            raise ProtocolError(f"a chunked message is over the limit of {self._limit} characters")
        message.parts.append(part)
        return "".join(message.parts) if is_last else None

    def keep(self, document_ids: Iterable[str]) -> None:
        """Drop the unfinished messages of all other documents, which are gone."""
        if self._unfinished:
            for gone in self._unfinished.keys() - set(document_ids):
                del self._unfinished[gone]


@dataclass(slots=True)
class _Partial:
    stream: str
    parts: list[str] = field(default_factory=list[str])
    size: int = 0
