"""What a call needs of the MCP client that made it."""

from typing import Protocol

from opentabs_py.calling.streams import Followed, StreamReader
from opentabs_py.core.questions import Answer, Place, Question


class Asker(Protocol):
    """Asks the user of an MCP client, through that client."""

    @property
    def is_immediate(self) -> bool:
        """Whether `ask` returns or raises at once, because the client repeats the call."""
        ...

    @property
    def asked_place(self) -> Place | None:
        """If `ask` is immediate: the place that the answered question named."""
        ...

    async def ask(self, question: Question, /) -> Answer:
        """Return their answer.

        Raises:
            CallError: They cannot be asked after all, or the client has to repeat the call with
                the answer.
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
    def reads_streams(self) -> bool:
        """Whether it can read a stream as a resource."""
        ...

    @property
    def uses_gateway(self) -> bool:
        """Whether it calls every tool through `opentabs_call`."""
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
