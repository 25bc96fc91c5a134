"""The calls in one browser's pages that have timed out, and how their tools end after that."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import anyio

from opentabs_py.core import protocol
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.errors import CallTimeoutError

KEPT: Final = 1000  # calls; a tool that ignores its signal may run for ever


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A call of a plugin's tool that has timed out.

    Attributes:
        call_id: Its id.
        plugin: The plugin's name.
        tool: The tool's name in the plugin.
        reason: What the tool's signal says as its reason.
        time: When, in seconds of the event loop's clock.
    """

    call_id: str
    plugin: str
    tool: str
    reason: str
    time: float


class TimedOutCalls:
    """Remembers the calls of plugins' tools that have timed out, until their tools end.

    Attributes:
        on_timed_out: Called when a call has timed out.
        on_stopped: Called when its tool ends after that, with how it ended.
    """

    def __init__(self) -> None:
        self.on_timed_out: Callable[[TimedOut], object] = _ignore
        self.on_stopped: Callable[[TimedOut, protocol.StoppedParams], object] = _ignore
        self._calls: dict[str, TimedOut] = {}  # by their ids on the wire

    def add(self, request: protocol.DispatchParams, call_id: str, error: CallTimeoutError) -> None:
        """Remember a call, unless its tool is a page's own.

        Args:
            request: What its page was sent.
            call_id: Its id.
            error: The error with which it ended.
        """
        if request.plugin == PAGE:
            return
        if len(self._calls) >= KEPT:
            del self._calls[next(iter(self._calls))]
        now = anyio.current_time()
        timed_out = TimedOut(call_id, request.plugin, request.tool, str(error), now)
        self._calls[request.call_id] = timed_out
        self.on_timed_out(timed_out)

    def handle_stopped(self, params: protocol.StoppedParams) -> None:
        """Handle the end of a tool whose call was cancelled."""
        timed_out = self._calls.pop(params.call_id, None)
        if timed_out is not None:
            self.on_stopped(timed_out, params)

    def handle_late(self, message: protocol.Message) -> None:
        """Handle a message about a call, which may be the end of a tool before it was cancelled."""
        if not self._calls:
            return
        match message:
            case protocol.ToolResult(params=params):
                started, stack = True, None
            case protocol.ToolErrored(params=params):
                started, stack = params.error.started, params.error.stack or ""
            case _:
                return
        stopped = protocol.StoppedParams(
            document_id=params.document_id, call_id=params.call_id, started=started, stack=stack
        )
        self.handle_stopped(stopped)


def _ignore(*_: object) -> None:
    pass
