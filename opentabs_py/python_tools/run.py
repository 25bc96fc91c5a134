"""One running call of a Python tool: its timers and its reports."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import anyio

from opentabs_py.calling.call import THIS_PROCESS, CallOrigin, ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.streams import StreamUpdate
from opentabs_py.core.limits import MESSAGE_LIMIT, Limits, Timer
from opentabs_py.core.progress import MESSAGE_MAX, ProgressReport
from opentabs_py.core.questions import Place
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import quantity
from opentabs_py.errors import CallError
from opentabs_py.python_tools.declare import Declaration
from opentabs_py.python_tools.handlers import ProgressHandlers, ToolEvent
from opentabs_py.python_tools.mailbox import Mailbox
from opentabs_py.python_tools.progress import CallReport
from opentabs_py.python_tools.stream import OUR_SESSION, Stream, Streams
from opentabs_py.python_tools.timers import RunningTimers

logger = logging.getLogger(__name__)

_NO_VALUE: Final = "the call that opened it returned no value"
WAITING: Final = 10_000  # reports waiting for the event loop; beyond that, the oldest are dropped


class NestedCaller(Protocol):
    """Calls tools by name: `ToolCalls`."""

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        /,
        *,
        observers: Sequence[CallObserver] = (),
        origin: CallOrigin = THIS_PROCESS,
    ) -> Any:
        """Call a tool and return its value."""
        ...


@dataclass(slots=True)
class ToolHost:
    """State shared by the Python tools of one server.

    Attributes:
        clock: The clock of their timers.
        limits: The default time limits.
        message_limit: The longest input or value, in characters of JSON.
        handlers: The application's handlers.
        caller: Calls other tools for them; None before there is a server.
        stream_prefix: What the ids of their streams begin with.
        streams: The streams they have opened.
    """

    clock: AlarmClock
    limits: Limits = field(default_factory=Limits)
    message_limit: int = MESSAGE_LIMIT
    handlers: ProgressHandlers = field(default_factory=ProgressHandlers)
    caller: NestedCaller | None = None
    stream_prefix: str = ""
    streams: Streams = field(init=False)

    def __post_init__(self) -> None:
        """Create the streams, on the same clock."""
        # JSON may write a character in six bytes, and there is more in a result than the updates.
        self.streams = Streams(
            self.clock, read_limit=self.message_limit // 8, id_prefix=self.stream_prefix
        )


class _NestedCallObserver(CallObserver):
    """Passes on to a call what happens in one that it makes."""

    def __init__(self, run: "ToolRun", call: ToolCall) -> None:
        self._run = run
        self._call = call

    def on_waiting(self, why: str, /) -> None:
        """Keep the outer call alive while the user thinks, and tell its caller."""
        self._run.record(CallReport("heartbeat"))
        self._call.notify_waiting(why)

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Pass the reports on."""
        for report in reports:
            self._run.record(CallReport.of_report(report))


class ToolRun:
    """A running call. It handles reports from other threads on the event loop, in order.

    Attributes:
        call_id: The call's id.
        tool: The tool's name.
        client: The MCP client that made it, if one did.
        scope: Cancelled when a timer ends the call.
        timeout: The error of the timer that ended it, if one did.
        cancelled: Whether it ended without a value, so that no caller waits for it any longer.
        is_over: Whether it has ended, in any way.
    """

    def __init__(self, host: ToolHost, tool: str, call: ToolCall, declaration: Declaration) -> None:
        self.call_id = call.call_id
        self.tool = tool
        self.client = call.origin.client
        self.scope = anyio.CancelScope()
        self.host = host
        self._call = call
        self._declaration = declaration
        self._mailbox: Mailbox[CallReport] = Mailbox(self._receive, size=WAITING)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._calling: set[Future[Any]] = set()  # from threads
        self._within: set[anyio.CancelScope] = set()  # the same calls, on the event loop
        self._streams: list[Stream] = []
        self._seq = 0
        self._timers = RunningTimers(host.clock, call.limits, self._time_out)
        self.timeout: CallError | None = None
        self.cancelled = False
        self.is_over = False

    # --- for the tool ---

    @property
    def stream_session(self) -> SessionKey | None:
        """The key of the session that owns its streams; see `Opener.stream_session`."""
        return OUR_SESSION if self.client is None else self.client.session_key

    @property
    def place(self) -> Place | None:
        """Where its user has allowed it to run; None if they were not asked about a place."""
        return self._call.place

    def record(self, report: CallReport) -> None:
        """Receive a report of the tool, from any thread; ignored after the end."""
        if not self.is_over:
            self._mailbox.put(report)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call; its reports count as this call's as well."""
        self._refuse_if_over(name)
        if self.host.caller is None:
            raise RuntimeError(f"{self.tool} cannot call {name}: no server is running.")
        observers = [_NestedCallObserver(self, self._call)]
        return await self.host.caller.call(
            name,
            arguments,
            observers=observers,
            origin=replace(self._call.origin, allowed_by=None, is_nested=True),
        )

    def call_from_thread(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call, and wait for it in a thread."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("This is the event loop's thread: await progress.call(...) here.")
        self._refuse_if_over(name)
        call = self._call_for_thread(name, arguments)
        calling = asyncio.run_coroutine_threadsafe(call, self._loop)
        self._calling.add(calling)
        if self.is_over:  # perhaps since before it was added
            calling.cancel()
        try:
            return calling.result()
        finally:
            self._calling.discard(calling)

    def _refuse_if_over(self, name: str) -> None:
        if self.is_over:
            raise RuntimeError(f"The call of {self.tool} has ended, so it cannot call {name}.")

    async def _call_for_thread(self, name: str, arguments: Mapping[str, Any]) -> Any:
        with anyio.CancelScope() as scope:
            self._within.add(scope)
            try:
                return await self.call(name, arguments)
            except Exception:
                if not scope.cancel_called:
                    raise
            finally:
                self._within.discard(scope)
        raise asyncio.CancelledError  # whatever came of it: its thread no longer waits

    def open_stream(self, name: str, limits: Limits) -> Stream:
        """Open a stream that belongs to this call, from any thread."""
        stream = self.host.streams.open(name, self, limits, self._loop)
        self._streams.append(stream)
        if self.cancelled:  # perhaps since before it was added
            stream.end(_NO_VALUE)
        return stream

    def handle_update(self, update: StreamUpdate) -> None:
        """Receive an update of a stream, even after the call has returned."""
        if not self.is_over:
            self._timers.record_activity()
        report = CallReport("stream", update.text, update.text[:MESSAGE_MAX], float(update.number))
        self._pass_on(report)

    # --- for the caller ---

    @property
    def open_streams(self) -> list[Stream]:
        """The streams that it opened and that are still open."""
        return [stream for stream in self._streams if stream.is_open]

    def flush(self) -> None:
        """Process what threads have reported so far."""
        self._mailbox.empty()
        for stream in self._streams:
            stream.pass_on()

    def end(self, *, has_value: bool) -> None:
        """End the call: ignore further reports, and stop the timers."""
        self.cancelled = not has_value
        self.is_over = True
        self._timers.stop()
        if not has_value:  # its client never hears of them
            for stream in self._streams:
                stream.end(_NO_VALUE)
        for scope in self._within:
            scope.cancel()
        for calling in list(self._calling):
            calling.cancel()  # its thread does not wait until the other call has ended
        if self._mailbox.dropped:
            dropped = quantity(self._mailbox.dropped, "report")
            logger.warning("%s reported too fast: dropped %s", self.tool, dropped)

    def _time_out(self, timer: Timer) -> None:
        declared = getattr(self._declaration, timer) == getattr(self._call.limits, timer)
        self.timeout = self._timers.error(declared=declared)
        self.cancelled = True  # before the tool can look
        self.scope.cancel()

    def _receive(self, report: CallReport) -> None:
        if self.is_over:
            return
        self._timers.record_activity()
        if report.kind != "heartbeat":
            self._pass_on(report)

    def _pass_on(self, report: CallReport) -> None:
        seq = self._seq
        self._seq += 1
        try:
            self._emit(seq, report)
        except Exception:
            logger.exception("Could not deliver a report of %s", self.tool)

    def _emit(self, seq: int, report: CallReport) -> None:
        self.host.handlers.notify(ToolEvent(self.tool, self.call_id, seq, report))
        # A client receives the updates of streams themselves.
        is_for_clients = report.kind != "yield" and (report.kind != "stream" or self.client is None)
        if self.is_over or not is_for_clients or not report.says_something:
            return
        self._call.notify_progress(
            [ProgressReport(seq, report.progress, report.total, report.message)]
        )


current_run: contextvars.ContextVar[ToolRun | None] = contextvars.ContextVar(
    "current_run", default=None
)
"""The running call, in its own task and thread; None elsewhere."""
