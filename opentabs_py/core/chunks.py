"""Long messages in short frames.

A message longer than `CHUNK` characters would hold up everything behind it, and Chrome's
Port refuses more than 64 MiB. It travels as several text frames, each

    ~ DOCUMENT_ID STREAM MARK PART

with no spaces between: a tilde, the 32 hex digits of the document it is from or for, 8 hex
digits that identify one long message of that document, `+` (more follows) or `.` (this is the
last), and a part of the message's text. No JSON text begins with a tilde.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from opentabs_py.errors import ProtocolError

CHUNK = 256 * 1024  # characters; the fastest part size measured for 16 MiB over a Port
WHOLE = 1024 * 1024  # characters; a message up to this length is sent as one frame
REFUSED = 1024  # how many refused messages are known, until their last parts come
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

    Args:
        limit: The longest message accepted, in characters.
        streams: How many unfinished messages may be open at once. Beyond that, the one that
            has waited longest for its next part is dropped: its document is most likely gone.
    """

    def __init__(self, *, limit: int, streams: int = 64) -> None:
        self._limit = limit
        self._streams = streams
        self._open: dict[str, _Partial] = {}  # the most recently updated comes last
        self._refused: dict[str, None] = {}  # the latest last

    def feed(self, frame: str) -> str | None:
        """Receive a frame and return the message it completes, if any.

        Raises:
            ProtocolError: The frame is malformed, or a message was dropped: this one, over
                the limit, or one that waited too long. All others continue.
        """
        if not frame.startswith("~"):
            if len(frame) > self._limit:
                raise ProtocolError(f"a message of {len(frame)} characters is over the limit")
            return frame
        if len(frame) < HEADER or frame[HEADER - 1] not in "+.":
            raise ProtocolError("a chunk's header is malformed")
        key, is_last, part = frame[1 : HEADER - 1], frame[HEADER - 1] == ".", frame[HEADER:]
        if key in self._refused:
            if is_last:
                del self._refused[key]
            return None
        message = self._open.pop(key, None) or _Partial()
        message.parts.append(part)
        message.size += len(part)
        if message.size > self._limit:
            if not is_last:
                self._refuse(key)
            raise ProtocolError(f"a chunked message is over the limit of {self._limit} characters")
        if is_last:
            return "".join(message.parts)
        self._open[key] = message
        if len(self._open) > self._streams:
            oldest = next(iter(self._open))
            del self._open[oldest]
            self._refuse(oldest)
            raise ProtocolError(f"more than {self._streams} messages are unfinished")
        return None

    def _refuse(self, key: str) -> None:
        self._refused[key] = None
        if len(self._refused) > REFUSED:  # the last parts of most never come: their page has gone
            del self._refused[next(iter(self._refused))]


@dataclass(slots=True)
class _Partial:
    parts: list[str] = field(default_factory=list[str])
    size: int = 0
