"""One call of a Python tool while it runs: its timers, and all that it tells."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import anyio

from opentabs_py.clock import AlarmClock
from opentabs_py.connection import wall_clock
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.recording import Instant
from opentabs_py.errors import CallError
from opentabs_py.served import CallClient, Frame, ToolCall
from opentabs_py.tools.declare import Timeouts
from opentabs_py.tools.loop import Mailbox
from opentabs_py.tools.observers import Event, Observers
from opentabs_py.tools.progress import MESSAGE_LIMIT, Told
from opentabs_py.tools.stream import Stream, Streams
from opentabs_py.tools.timers import Timers, Which

logger = logging.getLogger(__name__)

WAITING: Final = 10_000  # what threads told and the loop has not taken yet; then the oldest go


class Caller(Protocol):
    """What calls tools by their names: a `Toolbox`."""

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        client: CallClient | None = None,
    ) -> Any:
        """Call a tool and give its value."""
        ...


@dataclass(slots=True)
class ToolHost:
    """What the Python tools of one server share.

    Attributes:
        clock: What their timers run on.
        limits: The timers of a tool that has none of its own.
        message_limit: The longest input or value, in bytes of JSON.
        observers: The application's handlers.
        caller: What they call other tools with; None before there is a server.
        streams: Those that they have opened.
    """

    clock: AlarmClock
    limits: Limits = field(default_factory=Limits)
    message_limit: int = 64 * 1024 * 1024
    observers: Observers = field(default_factory=Observers)
    caller: Caller | None = None
    streams: Streams = field(init=False)

    def __post_init__(self) -> None:
        """Make the streams, on the same clock."""
        self.streams = Streams(self.clock)


class ToolRun:
    """A call under way. What it is told in other threads it takes on the event loop, in order.

    Attributes:
        call_id: The call's own.
        tool: The tool's name.
        client: The MCP client that made it, if one did.
        scope: Cancelled when a timer ends the call.
    """

    def __init__(self, host: ToolHost, tool: str, call: ToolCall) -> None:
        self.call_id = call.call_id
        self.tool = tool
        self.client = call.client
        self.scope = anyio.CancelScope()
        self.host = host
        self._on_progress = call.on_progress
        self._recording = call.recording
        self._mailbox: Mailbox[Told] = Mailbox(self._receive, size=WAITING)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._calling: set[Future[Any]] = set()  # from threads
        self._streams: list[Stream] = []
        self._seq = 0
        self._timers = Timers(host.clock, call.limits, self._time_out)
        self._timed_out: Which | None = None
        self._is_over = False
        self._is_cancelled = False

    # --- for the tool ---

    @property
    def session(self) -> str | None:
        """The session that its streams are of; None where its client has none."""
        return "" if self.client is None else self.client.owner

    @property
    def cancelled(self) -> bool:
        """Whether it ended without a value, so that nobody waits for it any more."""
        return self._is_cancelled

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._is_over

    def take(self, told: Told) -> None:
        """Take what the tool tells, from any thread; after its end, nothing."""
        if not self._is_over:
            self._mailbox.put(told)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call; its reports are this call's too."""
        if self._is_over or self.host.caller is None:
            raise RuntimeError(f"The call of {self.tool} has ended, so it can call {name} no more.")

        def relay(reports: Sequence[ProgressReport]) -> None:
            for report in reports:
                self.take(Told.of_report(report))

        return await self.host.caller.call(name, arguments, on_progress=relay, client=self.client)

    def call_from_thread(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call, and wait for it in a thread."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("This is the event loop's thread: await progress.call(...) here.")
        calling = asyncio.run_coroutine_threadsafe(self.call(name, arguments), self._loop)
        self._calling.add(calling)
        if self._is_over:  # since before it was put there, perhaps
            calling.cancel()
        try:
            return calling.result()
        finally:
            self._calling.discard(calling)

    def open_stream(self, name: str, timeouts: Timeouts) -> Stream:
        """Open a stream of this call's, from any thread."""
        limits = timeouts.in_place_of(self.host.limits)
        stream = self.host.streams.open(name, self, limits, self._loop)
        self._streams.append(stream)
        return stream

    def take_frame(self, frame: Frame) -> None:
        """Take an update of a stream, also after the call has returned."""
        if not self._is_over:
            self._timers.hear()
        told = Told("stream", frame.text, frame.text[:MESSAGE_LIMIT], float(frame.number))
        self._pass_on(told)

    # --- for who runs it ---

    @property
    def open_streams(self) -> list[Stream]:
        """The streams that it has opened and that go on."""
        return [stream for stream in self._streams if stream.is_open]

    def timeout(self) -> CallError | None:
        """Give why a timer ended it, if one did."""
        return None if self._timed_out is None else self._timers.error(self._timed_out)

    def flush(self) -> None:
        """Take what threads have told so far."""
        self._mailbox.empty()
        for stream in self._streams:
            stream.pass_on()

    def end(self, *, has_value: bool) -> None:
        """Nothing is told any more; timers stop."""
        self._is_cancelled = not has_value
        self._is_over = True
        self._timers.stop()
        if not has_value:  # its client never hears of them
            for stream in self._streams:
                stream.end("the call that opened it gave no value")
        for calling in list(self._calling):
            calling.cancel()
        if self._mailbox.dropped:
            logger.warning("%s told too much: %d dropped", self.tool, self._mailbox.dropped)

    def _time_out(self, which: Which) -> None:
        self._timed_out = which
        self._is_cancelled = True  # before the tool can look
        self.scope.cancel()

    def _receive(self, told: Told) -> None:
        if self._is_over:
            return
        self._timers.hear()
        if told.kind != "heartbeat":
            self._pass_on(told)

    def _pass_on(self, told: Told) -> None:
        seq = self._seq
        self._seq += 1
        try:
            self._tell(seq, told)
        except Exception:
            logger.exception("What %s told could not be passed on", self.tool)

    def _tell(self, seq: int, told: Told) -> None:
        self.host.observers.tell(Event(self.tool, self.call_id, seq, told))
        # Of its streams a client is sent the frames themselves.
        is_for_clients = told.kind != "yield" and (told.kind != "stream" or self.client is None)
        if self._is_over or not is_for_clients or not told.says_something:
            return
        reports = [ProgressReport(seq, told.progress, told.total, told.message)]
        if self._recording is not None:
            now = Instant(wall=wall_clock(), steady=self.host.clock.now())
            self._recording.take_progress(reports, now)
        if self._on_progress is not None:
            self._on_progress(reports)


current_run: contextvars.ContextVar[ToolRun | None] = contextvars.ContextVar(
    "current_run", default=None
)
"""The call that is being run, in its own task and thread; None elsewhere."""
