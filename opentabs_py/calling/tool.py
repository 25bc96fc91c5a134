"""A served tool, wherever it runs: what clients see of it, and how to call it."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, runtime_checkable

from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.consent import GatedTool, Standing
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.questions import Answer, Place, Question
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.trace.recorder import CallRecorder

if TYPE_CHECKING:  # loading it takes as long as starting a browser
    from mcp import types

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listing:
    """The tool's public description.

    Attributes:
        name: Its unique MCP name.
        owner: The plugin or Python module it belongs to; also the logger name of its logs.
        title: Its name for users.
        description: What it does, for agents.
        input_schema: JSON Schema of its arguments.
        output_schema: JSON Schema of its value, of any type; None if it has none.
        annotations: MCP's hints, for example `{"readOnlyHint": true}`.
        summary: What it does, in a few words.
        group: What it belongs to, within its plugin.
        icon: The name of its Lucide icon.
        needs_tab: Whether it runs in a page, so that a tab of its plugin's site has to be open.
        is_of_page: Whether a page registered it itself, so that all of this is supplied by the page
            and not verified, and it is listed only while such a page is open.
        meta: More about it for programs, under `_meta`.
    """

    name: str
    owner: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None
    summary: str = ""
    group: str = ""
    icon: str = ""
    needs_tab: bool = False
    is_of_page: bool = False
    meta: dict[str, Any] | None = None

    @property
    def promises_object(self) -> bool:
        """Whether its output schema says that its value is an object."""
        return self.output_schema is not None and self.output_schema.get("type") == "object"

    @property
    def is_read_only(self) -> bool:
        """Whether its annotations say that it changes nothing."""
        return (self.annotations or {}).get("readOnlyHint") is True

    def gated(self, standing: Standing) -> GatedTool:
        """Return what decides whether its calls may run, given what the user said of its plugin.

        For this package's own use.
        """
        return GatedTool(self.owner, self.name, self.is_read_only, standing)

    def describe(self, *, output_schema: bool = True) -> dict[str, Any]:
        """Return the tool as it is in the answer to `tools/list`."""
        described: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        # A root other than an object makes initialize-era clients refuse the whole list.
        if self.promises_object and output_schema:
            described["outputSchema"] = self.output_schema
        if self.annotations is not None:
            described["annotations"] = self.annotations
        if self.meta is not None:
            described["_meta"] = self.meta
        return described


@dataclass(frozen=True, slots=True)
class Output:
    """A tool's result that is more than a JSON value: MCP content.

    Attributes:
        content: What the model reads, in order.
        structured: The same for programs, if it is an object.
        meta: Data only for programs, under `_meta`.
    """

    content: "tuple[types.ContentBlock, ...]"
    structured: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None


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


class Asker(Protocol):
    """Asks the user of an MCP client, through that client."""

    @property
    def is_immediate(self) -> bool:
        """Whether `ask` returns or raises at once, because the client repeats the call."""
        ...

    @property
    def asked_tab(self) -> int | None:
        """If `ask` is immediate: the tab that the answered question named."""
        ...

    async def ask(self, question: Question, /) -> Answer | None:
        """Return their answer; None if they cannot be asked after all.

        Raises:
            CallError: The client has to repeat the call with the answer.
        """
        ...


class CallClient(StreamReader, Protocol):
    """The MCP client that made a call: where its logs, questions and progress go."""

    @property
    def name(self) -> str | None:
        """The name and version that it reports; None if it does not."""
        ...

    @property
    def takes_links(self) -> bool:
        """Whether it reads resource links in a result."""
        ...

    @property
    def asker(self) -> Asker | None:
        """Asks its user; None if it cannot."""
        ...

    def follow(self, stream: Followed) -> None:
        """Send all the stream's updates, from first to last. Must not block or raise."""
        ...

    def wake(self) -> None:
        """Handle a change in a followed stream. Must not block or raise."""
        ...


def new_call_id() -> str:
    """Return an unguessable id for a call."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Who makes a call; by default, code in this process.

    Attributes:
        client: The MCP client.
        name: Who it is for users, such as "claude-code 2.1.0" or "opentabs call".
        allowed_by: The user who makes it themselves, so that no prompt is needed.
        is_nested: Whether a running tool makes it, rather than the client itself.
    """

    client: CallClient | None = None
    name: str | None = None
    allowed_by: str | None = None
    is_nested: bool = False

    @classmethod
    def of(cls, client: CallClient) -> Self:
        """Return the origin of a client's own call."""
        return cls(client, client.name)


THIS_PROCESS: Final = CallOrigin()


@dataclass(slots=True)
class Cancellation:
    """The reason for a cancellation, set before the call is cancelled.

    Attributes:
        reason: For its tool, as the reason of its signal.
    """

    reason: str = "the client cancelled it"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool, as its caller requests it.

    Attributes:
        arguments: The caller's arguments, unchecked.
        limits: Its time limits.
        observers: Are notified of what it does.
        recorder: Records when it passes each hop; None if no observer needs it.
        origin: Who makes it.
        cancellation: Why it is cancelled, if it is.
        call_id: Its id; each time it is sent to a page, it has another on the wire.
    """

    arguments: Mapping[str, Any]
    limits: Limits
    observers: tuple[CallObserver, ...] = ()
    recorder: CallRecorder | None = None
    origin: CallOrigin = THIS_PROCESS
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False)
    call_id: str = field(default_factory=new_call_id)

    @property
    def session_key(self) -> SessionKey | None:
        """The key of the session of the MCP client that made it; None if it has none."""
        client = self.origin.client
        return None if client is None else client.session_key

    def notify_sent(self) -> None:
        """Notify the observers that the call is on its way."""
        self._notify(lambda observer: observer.on_sent())

    def notify_waiting(self, why: str) -> None:
        """Notify the observers that the call waits for the user."""
        self._notify(lambda observer: observer.on_waiting(why))

    def notify_progress(self, reports: Sequence[ProgressReport]) -> None:
        """Pass a batch of reports to the observers."""
        self._notify(lambda observer: observer.on_reports(reports))

    def notify_log(self, entries: Sequence[LogEntry]) -> None:
        """Pass log entries to the observers."""
        self._notify(lambda observer: observer.on_log(entries))

    def _notify(self, notify: Callable[[CallObserver], None]) -> None:
        for observer in self.observers:
            try:
                notify(observer)
            except Exception:  # a bug of the observer's, for which no call should end
                logger.exception("An observer of a call failed")


class Tool(Protocol):
    """A tool that can be listed and called."""

    @property
    def listing(self) -> Listing:
        """The tool's public description; the same object as long as it is served."""
        ...

    @property
    def limits(self) -> Limits | None:
        """The tool's own time limits; None for the server's."""
        ...

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return the function that makes it.

        That function returns the tool's value, JSON or an `Output`, or raises a `CallError`. It may
        be called again only if the tool did not start, because its user had to sign in.

        Raises:
            CallRefusedError: The arguments break its schema or the size limit.
        """
        ...


@runtime_checkable
class PlacedTool(Protocol):
    """A tool whose calls run in a tab, so that a question to the user can say in which."""

    async def find_place(self, call: ToolCall) -> Place:
        """Return where a call would run now, as far as that is known."""
        ...

    def in_tab(self, call: ToolCall, tab_id: int) -> ToolCall:
        """Return a call that runs in this tab, or not at all.

        Raises:
            ChainError: The tab is gone.
        """
        ...


class ListedTools(Protocol):
    """The tools that clients see in a list, such as a `ToolRegistry`."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools, sorted by name; the same object until they change."""
        ...

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools change; return the unsubscriber."""
        ...
