"""The calls in one browser's pages: the shell around the dispatch core.

It feeds the core with what arrives, sends what the core wants sent, and wakes the core at its next
deadline. It decides nothing about a call's life.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import anyio
from anyio.abc import TaskStatus

from opentabs_py.bridge.connection import Connection
from opentabs_py.bridge.timed_out import TimedOutCalls
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import MS, Clock
from opentabs_py.calling.observer import instant
from opentabs_py.core import dispatch, protocol
from opentabs_py.core.trace.hops import BEGUN
from opentabs_py.core.trace.recorder import CallRecorder
from opentabs_py.errors import CallTimeoutError

# s; `tool.settled` may wait this long: results are then acknowledged together, and delay no call
SETTLED_AFTER = 0.05


@dataclass(slots=True)
class _Waiter:
    call: ToolCall
    plugin: str
    document_id: str
    outcome: asyncio.Future[dispatch.Succeeded | dispatch.Failed]  # much cheaper than an event


class PageCalls:
    """The running calls, and the connection they use at the moment.

    Args:
        clock: The clock of the calls' timers.

    Attributes:
        dispatch: The core's state.
        boot_id: Identifies the connected service worker's current run; None if disconnected.
        timed_out: The calls that have timed out, until their tools end.
    """

    def __init__(self, clock: Clock) -> None:
        self.dispatch = dispatch.Dispatch()
        self._clock = clock
        self.timed_out = TimedOutCalls()
        self._waiters: dict[str, _Waiter] = {}
        self._connection: Connection | None = None
        self.boot_id: str | None = None
        self._settled_due = False
        self._sleeping_until = inf
        self._deadline_moved = anyio.Event()

    # --- for callers ---

    async def call(
        self,
        document: protocol.DocumentState,
        plugin: str,
        tool: str,
        call: ToolCall,
        *,
        began: float | None = None,
    ) -> Any:
        """Run a plugin's tool in a document; see `Bridge.call` and `Dispatch.call`."""
        request = protocol.DispatchParams(
            document_id=document.document_id,
            call_id=secrets.token_hex(16),  # its own for each document that a call is sent to
            plugin=plugin,
            tool=tool,
            input=dict(call.arguments),
            trace=call.recorder is not None and call.recorder.is_traced,
        )
        outcome = asyncio.get_running_loop().create_future()
        self._waiters[request.call_id] = _Waiter(call, plugin, document.document_id, outcome)
        if call.recorder is not None:
            call.recorder.record_dispatch(document, self.boot_id, instant(self._clock))
            if request.trace and self._connection is not None:
                self._connection.ping()
        try:
            now = self._clock.now()
            self.dispatch.call(request, document.tab_id, call.limits, now, began=began)
            self._turn()
            call.notify_sent()
            if self._connection is not None:
                with anyio.CancelScope() as flushing:
                    # An extension that does not read must not outlast the call's timers.
                    outcome.add_done_callback(lambda _: flushing.cancel())
                    await self._connection.flush()
            ended = await outcome
        except anyio.get_cancelled_exc_class():
            self.dispatch.cancel(request.call_id, call.cancellation.reason)
            self._turn()
            raise
        finally:
            del self._waiters[request.call_id]
        if isinstance(ended, dispatch.Failed):
            if isinstance(ended.error, CallTimeoutError):
                self.timed_out.add(request, call.call_id, ended.error)
            raise ended.error
        return ended.value

    @property
    def running(self) -> int:
        """How many calls are running."""
        return len(self._waiters)

    async def settle(self) -> None:
        """Wait until every caller whose call has ended has received the outcome."""
        while any(waiter.outcome.done() for waiter in self._waiters.values()):
            await anyio.lowlevel.checkpoint()

    async def wait_idle(self) -> None:
        """Wait until no call is running."""
        while running := [each.outcome for each in self._waiters.values()]:
            await asyncio.wait(running)
            await self.settle()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Wake the core at its deadlines, until cancelled."""
        task_status.started()
        while True:
            deadline = self.dispatch.next_deadline()
            self._sleeping_until = inf if deadline is None else deadline
            self._deadline_moved = anyio.Event()
            await self._clock.wait(self._deadline_moved, self._sleeping_until)
            self.dispatch.handle_timer(self._clock.now())
            self._turn()

    # --- what happens ---

    def handle_connected(self, connection: Connection, hello: protocol.HelloParams) -> None:
        """Handle an extension's hello; its connection replaces any other."""
        self._connection = connection
        self.boot_id = hello.boot_id
        self._record_link()
        self.dispatch.connection_resumed(
            hello.documents,
            hello.tab_ids,
            self._clock.now(),
            crashed=hello.crashed,
            fresh=hello.fresh,
        )
        self._turn()

    def handle_disconnected(self) -> None:
        """Handle the end of the connection."""
        self._connection = self.boot_id = None
        self.dispatch.connection_lost()
        self._turn()
        self._record_link()

    def handle_tabs(self, state: protocol.TabsParams) -> None:
        """Handle a snapshot of all tabs."""
        self.dispatch.documents_changed(
            state.documents, state.tab_ids, self._clock.now(), crashed=state.crashed
        )
        self._turn()

    def handle_browser_gone(self) -> None:
        """Handle the browser's exit: every page is gone, and no call will be answered."""
        self.dispatch.documents_changed([], [], self._clock.now())
        self._turn()

    def handle(
        self,
        connection: Connection,
        message: protocol.ToolProgress
        | protocol.ToolResult
        | protocol.ToolErrored
        | protocol.ToolLost,
    ) -> None:
        """Handle a message about a call."""
        recorder = self._recorder(message.params.call_id)
        if recorder is not None and recorder.is_traced:
            match message:
                case protocol.ToolResult() | protocol.ToolErrored():
                    self._stamp(recorder, connection, message.params.stamps or {})
                    recorder.record_passed("server.received", instant(self._clock))
                case _:
                    pass
        self.dispatch.receive(message, self._clock.now())
        self._turn()
        self.timed_out.handle_late(message)

    def handle_stamps(self, connection: Connection, params: protocol.StampParams) -> None:
        """Record when a traced call passed the service worker."""
        waiter = self._waiters.get(params.call_id)
        if waiter is not None and waiter.call.recorder is not None:
            self._stamp(waiter.call.recorder, connection, params.stamps)
            if BEGUN in params.stamps:
                waiter.call.notify_begun()

    def handle_log(self, params: protocol.LogParams) -> None:
        """Pass what a plugin logged to the observers of its calls in that page."""
        for waiter in self._waiters.values():
            if (waiter.document_id, waiter.plugin) == (params.document_id, params.plugin):
                waiter.call.notify_log(params.entries)

    def _stamp(
        self, recorder: CallRecorder, connection: Connection, stamps: Mapping[str, float]
    ) -> None:
        for name, at in stamps.items():
            recorder.record_stamp(name, at / MS + connection.clock_offset)

    def _recorder(self, call_id: str) -> CallRecorder | None:
        waiter = self._waiters.get(call_id)
        return None if waiter is None else waiter.call.recorder

    def _record_link(self) -> None:
        for waiter in self._waiters.values():
            if waiter.call.recorder is not None and waiter.call.recorder.is_traced:
                waiter.call.recorder.record_link(self.boot_id, instant(self._clock))

    # --- between core and callers ---

    def _turn(self) -> None:
        """Carry out what the core decided; call it after every input, before the next await."""
        # Callers first: they wait for the result, but nothing waits for its acknowledgement.
        for event in self.dispatch.drain_events():
            waiter = self._waiters.get(event.call_id)
            if waiter is None:
                continue
            if isinstance(event, dispatch.Progressed):
                if event.dropped and waiter.call.recorder is not None:
                    waiter.call.recorder.record_dropped(event.dropped)
                waiter.call.notify_progress(event.reports)
            elif not waiter.outcome.done():  # cancelled, but not yet removed
                waiter.outcome.set_result(event)
        self._send(self.dispatch.drain_messages())
        if self.dispatch.has_settled and not self._settled_due:
            self._settled_due = True
            asyncio.get_running_loop().call_later(SETTLED_AFTER, self._send_settled)
        deadline = self.dispatch.next_deadline()
        if deadline is not None and deadline < self._sleeping_until:
            self._deadline_moved.set()

    def _send(self, messages: Sequence[protocol.ToExtension]) -> None:
        if self._connection is None:
            return  # they are repeated, or obsolete, at the next hello
        for message in messages:
            if isinstance(message, protocol.ToolDispatch) and message.params.trace:
                recorder = self._recorder(message.params.call_id)
                if recorder is not None:
                    recorder.record_passed("server.sent", instant(self._clock))
            self._connection.send(message)

    def _send_settled(self) -> None:
        self._settled_due = False
        self._send(self.dispatch.drain_settled())
