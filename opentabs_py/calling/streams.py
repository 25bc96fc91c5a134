"""The stream of a tool, and its readers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urlsplit

from opentabs_py.core.tabs.owners import SessionKey

STREAM_URI: Final = "stream://"  # what the URI of a stream begins with, before its id
STREAMS_META_KEY: Final = "opentabs/streams"  # where a result names the streams that are open


def split_uri(uri: str) -> SplitResult:
    """Return the parts of a URI; nothing for one that has none, such as `stream://[x`."""
    try:
        return urlsplit(uri)
    except ValueError:
        return urlsplit("")


def stream_address(uri: str) -> str:
    """Return the URI of a stream without the part it selects, such as `?after=3`."""
    return f"{STREAM_URI}{split_uri(uri).netloc}"


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """One update of a tool's stream.

    Attributes:
        number: Its position in the stream, from 1.
        text: The text of the update.
    """

    number: int
    text: str


class Followed(Protocol):
    """A tool's stream, as seen by the code that delivers it."""

    @property
    def id(self) -> str:
        """Its unguessable id."""
        ...

    @property
    def uri(self) -> str:
        """Its URI as an MCP resource."""
        ...

    @property
    def name(self) -> str:
        """The name that its tool gave it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it may get more updates."""
        ...

    def since(self, number: int) -> Sequence[StreamUpdate]:
        """Return the retained updates after that number, in order."""
        ...


class StreamReader(Protocol):
    """An MCP client that requests a stream."""

    @property
    def session_key(self) -> SessionKey | None:
        """The key of its session; None if it has none, when knowing a stream's id grants access."""
        ...


class StreamSource(Protocol):
    """The streams of a server, for its clients."""

    @property
    def is_served(self) -> bool:
        """Whether there is, or was, a module among the tools, so that there may be streams."""
        ...

    def of(self, reader: StreamReader) -> Sequence[Followed]:
        """Return the streams of a client's session."""
        ...

    def read(self, stream_id: str, after: int, reader: StreamReader) -> dict[str, Any]:
        """Return the retained part of a stream after a number, and the stream's state.

        Raises:
            CallRefusedError: There is no such stream, or not for that client.
        """
        ...

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call a function with the URI of each changed stream; return the unsubscriber."""
        ...
