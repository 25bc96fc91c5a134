"""A tool that is served, wherever it runs, and what its calls return."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.core.limits import Limits
from opentabs_py.core.questions import Place
from opentabs_py.errors import CallError

if TYPE_CHECKING:  # loading it takes as long as starting a browser
    from mcp import types


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

    def in_place(self, call: ToolCall, place: Place) -> ToolCall:
        """Return a call that runs in this place, which has a tab, or not at all.

        Raises:
            ChainError: The tab is gone.
        """
        ...

    async def wait_gone(self, place: Place) -> CallError:
        """Wait until no call can run in this place any more; return the error for a call there."""
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
