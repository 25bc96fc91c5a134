"""The interface that a worker needs of its session."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import anyio

from opentabs_py.calling.call import THIS_PROCESS, CallOrigin, Cancellation
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.tool import ListedTools
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.trace.record import CallRecord


class SessionCaller(Protocol):
    """Calls the tools of a session: `ToolCalls`."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        /,
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        origin: CallOrigin = THIS_PROCESS,
        cancellation: Cancellation | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
        traced: bool = True,
    ) -> Any:
        """Call a tool and return its value."""
        ...


class Session(Protocol):
    """What a worker needs of the session whose tools it calls."""

    @property
    def registry(self) -> ListedTools:
        """The tools."""
        ...

    @property
    def caller(self) -> SessionCaller:
        """Calls the tools."""
        ...

    @property
    def browsers(self) -> Sequence[str]:
        """The names of its browsers."""
        ...

    @property
    def restarts(self) -> int:
        """How often its browsers were relaunched."""
        ...

    def ready(self) -> Mapping[str, int]:
        """Return in how many tabs each plugin works now."""
        ...

    def patterns(self, owner: str) -> Sequence[str]:
        """Return the URL patterns of a plugin's pages."""
        ...

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the tabs."""
        ...

    def has_tabs(self, client: SessionKey) -> bool:
        """Return whether a client has opened tabs."""
        ...

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of a client, which may have opened tabs."""
        ...
