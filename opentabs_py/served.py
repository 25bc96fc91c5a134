"""A tool as it is served, wherever it runs: what clients see of it, and how it is called."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.recording import CallRecording


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
    """

    arguments: Mapping[str, Any]
    limits: Limits
    on_progress: Callable[[Sequence[ProgressReport]], None] | None = None
    on_log: Callable[[Sequence[LogEntry]], None] | None = None
    on_sent: Callable[[], None] | None = None
    recording: CallRecording | None = None
    client: Any = None


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
        """Check a call, make it, and give the tool's value.

        Raises:
            CallRefusedError: The arguments break its schema or the limit.
            CallError: It gave no value.
        """
        ...
