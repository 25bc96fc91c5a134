"""A tool as it is served, wherever it runs: what clients see of it, and how it is called."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.recording import CallRecording

if TYPE_CHECKING:  # it takes as long to load as a browser to start
    from mcp import types


@dataclass(frozen=True, slots=True)
class Listing:
    """What is told of a tool.

    Attributes:
        name: Its MCP name, which no other tool has.
        owner: The plugin, or the Python module, that it is of; its logs bear this name.
        title: Its name for people.
        description: What it does, for agents.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its value, of any type; None when it promises nothing.
        annotations: MCP's hints, as in `{"readOnlyHint": true}`.
    """

    name: str
    owner: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None

    @property
    def promises_object(self) -> bool:
        """Whether its output schema says that its value is an object."""
        return self.output_schema is not None and self.output_schema.get("type") == "object"


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool gave that is more than a JSON value: MCP's own content.

    Attributes:
        content: What the model reads, in order.
        structured: The same for programs, if it is an object.
        meta: What is for programs alone, under `_meta`.
    """

    content: "tuple[types.ContentBlock, ...]"
    structured: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Frame:
    """One update of a tool's stream.

    Attributes:
        number: Its place in the stream, from 1.
        text: What it says.
    """

    number: int
    text: str


class Followed(Protocol):
    """A tool's stream, as who delivers it sees it."""

    @property
    def id(self) -> str:
        """Its name, which nobody can guess."""
        ...

    @property
    def name(self) -> str:
        """The name that its tool gave it."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether more may come."""
        ...

    def since(self, number: int) -> Sequence[Frame]:
        """Give the frames after that number that are kept still, in order."""
        ...


class Reader(Protocol):
    """An MCP client that asks for a stream."""

    @property
    def owner(self) -> str | None:
        """Its session; None for a client that has none, whose right to a stream is its id."""
        ...


class StreamSource(Protocol):
    """The streams of a server, for its clients."""

    def of(self, reader: Reader) -> Sequence[Followed]:
        """Give the streams of a client's session."""
        ...

    def read(self, stream_id: str, after: int, reader: Reader) -> dict[str, Any]:
        """Give what is kept of a stream behind a number, and what became of it.

        Raises:
            CallRefusedError: There is none, or not for that client.
        """
        ...

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call a function with the address of each stream that changes; gives what ends that."""
        ...


class CallClient(Reader, Protocol):
    """The MCP client that made a call, as the call's streams see it."""

    @property
    def takes_links(self) -> bool:
        """Whether it reads links to resources in a result."""
        ...

    def follow(self, stream: Followed) -> None:
        """Have the stream's frames sent, from its first to its last. Must not block or raise."""
        ...

    def wake(self) -> None:
        """A stream that it follows has changed. Must not block or raise."""
        ...


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as its caller asks for it.

    Attributes:
        arguments: As the caller gave them, unchecked.
        limits: Its timers.
        on_progress: Called with each batch of reports, in order. Must not block or raise.
        on_log: Called with what the tool's plugin logs meanwhile. Must not block or raise.
        on_sent: Called once the call is on its way. Must not block or raise.
        recording: Takes when the call passes each hop; None when nobody looks on.
        client: The MCP client that made it; None for a call from within this process.
        call_id: Its own; of a page tool's call, until it is sent.
    """

    arguments: Mapping[str, Any]
    limits: Limits
    on_progress: Callable[[Sequence[ProgressReport]], None] | None = None
    on_log: Callable[[Sequence[LogEntry]], None] | None = None
    on_sent: Callable[[], None] | None = None
    recording: CallRecording | None = None
    client: CallClient | None = None
    call_id: str = field(default_factory=lambda: secrets.token_hex(16))


class ServedTool(Protocol):
    """A tool that can be listed and called."""

    @property
    def listing(self) -> Listing:
        """What is told of it; the same object as long as it is served."""
        ...

    @property
    def limits(self) -> Limits | None:
        """Timers of its own; None for the server's."""
        ...

    async def run(self, call: ToolCall) -> Any:
        """Check a call, make it, and give the tool's value: of JSON, or an `Output`.

        Raises:
            CallRefusedError: The arguments break its schema or the limit.
            CallError: It gave no value.
        """
        ...
