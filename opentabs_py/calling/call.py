"""One call of a tool: who makes it, with what, and who is notified of what it does."""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from opentabs_py.calling.client import CallClient
from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.questions import Place
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.trace.recorder import CallRecorder

logger = logging.getLogger(__name__)


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
    """What a cancellation means for a call, set before the call is cancelled.

    Attributes:
        reason: What the tool's signal says as its reason.
        comes_in_time: Whether the tool cannot have run yet: the call waits for its user, its turn
            or its page.
    """

    reason: str = "the client cancelled it"
    comes_in_time: bool = True


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
        place: Where its user has allowed it to run; None if they were not asked about a place.
        call_id: Its id; each time it is sent to a page, it has another on the wire.
    """

    arguments: Mapping[str, Any]
    limits: Limits
    observers: tuple[CallObserver, ...] = ()
    recorder: CallRecorder | None = None
    origin: CallOrigin = THIS_PROCESS
    cancellation: Cancellation = field(default_factory=Cancellation, compare=False)
    place: Place | None = None
    call_id: str = field(default_factory=new_call_id)

    @property
    def session_key(self) -> SessionKey | None:
        """The key of the session of the MCP client that made it; None if it has none."""
        client = self.origin.client
        return None if client is None else client.session_key

    def notify_sent(self) -> None:
        """Notify the observers that the call is on its way."""
        self._notify(lambda observer: observer.on_sent())

    def notify_begun(self) -> None:
        """Notify the observers that the tool starts."""
        self._notify(lambda observer: observer.on_begun())

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
