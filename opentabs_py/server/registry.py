"""Run the tools of a server: record their calls, ask before them, check their results."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.check import OutputCheck
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import CallObserver, ProgressObserver, Recorder, instant
from opentabs_py.calling.plugin_log import plugin_logger
from opentabs_py.calling.tool import CallClient, Cancellation, Listing, Tool, ToolCall, new_call_id
from opentabs_py.consent.gate import Gate
from opentabs_py.core import codes, failures
from opentabs_py.core.consent import Decision
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs import PluginStatus
from opentabs_py.core.text import visible
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.core.trace.recorder import CallRecording
from opentabs_py.errors import CallError, ChainError, ToolFailedError
from opentabs_py.server.call_permits import CallPermits
from opentabs_py.server.served_tools import ServedTools

logger = logging.getLogger(__name__)

_CALLER_ENDED = "the tool that called it no longer waits for it"


class _Running:
    """A running call, and the error that ended it, if its caller did not."""

    __slots__ = ("cancellation", "error", "scope")

    def __init__(self, cancellation: Cancellation) -> None:
        self.cancellation = cancellation
        self.scope = anyio.CancelScope()
        self.error: CallError | None = None


class ToolRegistry(ServedTools):
    """The tools of a server, whose calls it runs.

    Args:
        pages: Where plugin tools run.
        limits: The default timers of calls.
        status: Returns the status of a plugin; by default, across the tabs of `pages`.
        input_limit: The largest input, in characters of JSON.
        strict_output: Fail calls whose value does not match the tool's output schema.
        debug: Send the stack traces of errors to MCP clients.
        beside_pages: Tools of our own that are served whenever plugin tools are; with hands among
            them, always.
        gate: Decides which calls may run; by default, all may.

    Attributes:
        limits: The default timers of calls.
        gate: Decides which calls may run. Tools that it turns off are not listed.
        output: Checks the values that tools return.
        debug: Send the stack traces of errors to MCP clients.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.
        on_page_report: Called with the name, the id and each report of every call of a plugin tool;
            must not block or raise. Python tools have their own handlers.
    """

    def __init__(
        self,
        pages: Pages,
        *,
        limits: Limits,
        status: Callable[[str], PluginStatus] | None = None,
        input_limit: int,
        strict_output: bool = False,
        debug: bool = False,
        beside_pages: Sequence[Tool] = (),
        gate: Gate | None = None,
    ) -> None:
        super().__init__(
            pages, input_limit=input_limit, status=status, beside_pages=beside_pages, gate=gate
        )
        self.limits = limits
        self._excerpts: dict[object, Excerpts] = {}  # the last counts
        self._no_values = Excerpts()
        self.output = OutputCheck(strict=strict_output)
        self.debug = debug
        self.read_stack: Callable[[str, str], Awaitable[str]] | None = None
        self.on_page_report: Callable[[str, str, ProgressReport], None] | None = None
        self._clock = pages.clock
        self._running: dict[str, _Running] = {}
        self._started: Listeners[[RecordSoFar]] = Listeners("calls")
        self._ended: Listeners[[CallRecord]] = Listeners("calls")
        self._ended_untraced: Listeners[[CallRecord]] = Listeners("calls")

    def _list(self) -> None:
        self.output.clear()
        super()._list()

    def observe(
        self,
        observer: Callable[[CallRecord], None],
        *,
        on_start: Callable[[RecordSoFar], None] | None = None,
        traced: bool = True,
    ) -> Callable[[], None]:
        """Call a function with the record of every call that ends from now on, however it ends.

        It is called before the caller gets the result, in the caller's task, and must not block.
        Calls are traced if some observer wants that.

        Args:
            observer: Receives each record.
            on_start: Called in the same way when a call begins, with a function that returns its
                record so far.
            traced: Whether the records should say when the call passed each hop, and without
                `on_start`, what it reported and what its plugin logged. That costs each call some
                time.

        Returns:
            A function that ends the observation.
        """
        ends = [(self._ended if traced else self._ended_untraced).subscribe(observer)]
        if on_start is not None:
            ends.append(self._started.subscribe(on_start))

        def end() -> None:
            for each in ends:
                each()

        return end

    def keep_values(self, excerpts: Excerpts) -> Callable[[], None]:
        """Keep arguments and results in the records of calls that begin from now on.

        Args:
            excerpts: Truncates them, and masks secrets.

        Returns:
            A function that stops this. If several callers ask for values, the most recent one's
            excerpts apply.
        """
        token = object()
        self._excerpts[token] = excerpts

        def end() -> None:
            self._excerpts.pop(token, None)

        return end

    @property
    def running(self) -> int:
        """How many calls run now, or wait for the user to allow them."""
        return len(self._running)

    def cancel(self, call_id: str, *, by: str) -> bool:
        """End a running call; its tool is notified, and its caller receives an error.

        Args:
            call_id: The call's id.
            by: Who ends it, for example "the user, in the console".

        Returns:
            Whether it was running.
        """
        return self.end(call_id, failures.cancelled_by(by), reason=f"cancelled by {by}")

    def end(self, call_id: str, error: CallError, *, reason: str) -> bool:
        """End a running call with an error; its tool is notified.

        Args:
            call_id: The call's id.
            error: What its caller receives.
            reason: What its tool receives.

        Returns:
            Whether it was running.
        """
        running = self._running.get(call_id)
        if running is None:
            return False
        if running.error is None:
            running.error, running.cancellation.reason = error, reason
            running.scope.cancel()
        return True

    async def call(
        self,
        tool: Tool | str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        client: CallClient | None = None,
        client_name: str | None = None,
        call_id: str | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
        traced: bool = True,
        allowed_by: str | None = None,
        is_nested: bool = False,
    ) -> Any:
        """Call a tool and return its value: a JSON value, or an `Output`.

        Args:
            tool: The tool, or its name as in `tools/list`, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Timers to use instead of the server's.
            observers: Are notified of what the call does.
            client: The MCP client that makes the call.
            client_name: Who makes the call; by default, the client's name.
            call_id: The call's id, which no running call may have; a new one by default.
            on_record: Called with its record when it has ended, before this returns.
            traced: Whether that record should say when the call passed each hop.
            allowed_by: The user who makes the call, so that no prompt is needed.
            is_nested: Whether a running tool makes the call.

        Raises:
            CallRefusedError: No such tool, the arguments break its schema or the limit, or the user
                does not allow it.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: Its value does not match its output schema; see `OutputCheck`.
        """
        if call_id in self._running:
            raise failures.id_in_use(call_id)
        found = self.get(tool) if isinstance(tool, str) else tool
        name = str(tool) if found is None else found.listing.name
        own = None if found is None else found.limits
        call = ToolCall(
            arguments,
            limits or own or self.limits,
            tuple(observers),
            client=client,
            client_name=client_name or (None if client is None else client.name),
            is_nested=is_nested,
            cancellation=Cancellation(_CALLER_ENDED) if is_nested else Cancellation(),
            call_id=call_id or new_call_id(),
        )
        is_traced = bool(self._ended) or (on_record is not None and traced)
        if not (is_traced or self._ended_untraced or on_record is not None):
            return await self._run(found, name, call, allowed_by)
        excerpts = next(reversed(self._excerpts.values()), None)
        recording = CallRecording(
            call_id=call.call_id,
            name=name,
            limits=call.limits,
            now=instant(self._clock),
            arguments=None if excerpts is None else arguments,
            client=call.client_name,
            excerpts=excerpts or self._no_values,
            is_traced=is_traced,
        )
        # Whoever wants to know of its start may look at it while it runs.
        is_watched = is_traced or bool(self._started)
        recorders = (Recorder(recording, self._clock),) if is_watched else ()
        call = replace(call, recording=recording, observers=(*recorders, *call.observers))
        self._started.notify(lambda: recording.so_far(instant(self._clock)))
        try:
            value = await self._run(found, name, call, allowed_by)
        except BaseException as error:
            self._notify_ended(recording.fail(error, instant(self._clock)), on_record)
            raise
        self._notify_ended(recording.succeed(value, instant(self._clock)), on_record)
        return value

    def _notify_ended(
        self, record: CallRecord, on_record: Callable[[CallRecord], None] | None
    ) -> None:
        if on_record is not None:
            on_record(record)
        self._ended.notify(record)
        self._ended_untraced.notify(record)

    async def _run(
        self, tool: Tool | None, name: str, call: ToolCall, allowed_by: str | None
    ) -> Any:
        if tool is None:
            raise self._unknown(name)
        if self.on_page_report is not None and tool.listing.needs_tab:
            report = partial(self.on_page_report, name, call.call_id)
            call = replace(call, observers=(*call.observers, ProgressObserver(report)))
        make = tool.prepare(call)
        running = self._running[call.call_id] = _Running(call.cancellation)
        value = None
        try:
            with running.scope:
                value = await self._make(tool, call, allowed_by, make)
        except ToolFailedError as error:
            if tool.listing.needs_tab:
                await self._note_stack(tool.listing, error)
            raise
        finally:
            del self._running[call.call_id]
        if running.scope.cancelled_caught:
            assert running.error is not None  # only `end` cancels it
            raise running.error
        self.output.check(tool.listing, value)
        return value

    def _decision(self, name: str) -> Decision:
        decided = self._decisions.get(name)
        if decided is None:  # the tool has left the list since it was looked up
            raise self._unknown(name)
        return decided

    async def _make(
        self, tool: Tool, call: ToolCall, allowed_by: str | None, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Make a call once it is allowed; if its user has to sign in first, make it then."""
        name = tool.listing.name
        decided = self._decisions.get(name)
        if decided is None or decided.permission != "auto":
            permits = self._permits(tool)
            permit = await permits.wait_allowed(call, allowed_by, partial(self._decision, name))
            allowed_by, bound = permit.by, permits.bind(call, permit)
            if bound is not call:
                call, make = bound, tool.prepare(bound)
        if call.recording is not None:
            call.recording.allow(allowed_by or "auto")
        try:
            return await make()
        except ChainError as error:
            await self._permits(tool).sign_in(call, error)
            return await make()

    def _permits(self, tool: Tool) -> CallPermits:
        return CallPermits(self.gate, self._pages, tool, self._gated(tool.listing))

    async def _note_stack(self, tool: Listing, error: ToolFailedError) -> None:
        """Map an error's stack trace to the plugin's source, and log it."""
        stack = error.detail.stack
        if stack is None:
            return
        if self.read_stack is not None:
            stack = await self.read_stack(tool.owner, stack)
            error.detail = replace(error.detail, stack=stack)
        # With a code, the tool raised the error deliberately, for its caller to read.
        level = logging.WARNING if error.detail.code == codes.INTERNAL_ERROR else logging.DEBUG
        plugin_logger(tool.owner).log(level, "%s threw %s", tool.name, visible(stack))
