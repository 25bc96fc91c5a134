"""Call the tools of a registry: ask before their calls, and check their results."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import THIS_PROCESS, CallOrigin, Cancellation, ToolCall, new_call_id
from opentabs_py.calling.check import OutputCheck
from opentabs_py.calling.listing import Listing
from opentabs_py.calling.observer import CallObserver, ProgressObserver
from opentabs_py.calling.plugin_log import plugin_logger
from opentabs_py.calling.tool import Tool
from opentabs_py.core import codes, failures
from opentabs_py.core.arguments import check_names
from opentabs_py.core.consent import Decision
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.text import visible
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ChainError, ToolFailedError
from opentabs_py.server.tools.call_questions import CallQuestions
from opentabs_py.server.tools.call_records import CallRecords
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.running_calls import RunningCalls

logger = logging.getLogger(__name__)

_CALLER_ENDED = "the tool that called it no longer waits for it"


class ToolCalls:
    """The calls of the tools of a server.

    Args:
        registry: The tools.
        pages: Where plugin tools run.
        limits: The default time limits of calls.
        strict_output: Fail calls whose value does not match the tool's output schema.
        debug: Send the stack traces of errors to MCP clients.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.

    Attributes:
        registry: The tools.
        limits: The default time limits of calls.
        running: The calls that run now.
        records: The records of calls.
        output: Checks the values that tools return.
        debug: Send the stack traces of errors to MCP clients.
        on_other_report: Called with the name, the id and each report of every call of a tool that
            is not a Python tool of this process; must not block or raise. Those have their own
            handlers.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        pages: Pages,
        *,
        limits: Limits,
        strict_output: bool = False,
        debug: bool = False,
        read_stack: Callable[[str, str], Awaitable[str]] | None = None,
    ) -> None:
        self.registry = registry
        self._pages = pages
        self.limits = limits
        self.running = RunningCalls()
        self.records = CallRecords(pages.clock)
        self.output = OutputCheck(strict=strict_output)
        self.debug = debug
        self._read_stack = read_stack
        self.on_other_report: Callable[[str, str, ProgressReport], None] | None = None
        registry.subscribe(self.output.clear)

    async def call(
        self,
        tool: Tool | str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        origin: CallOrigin = THIS_PROCESS,
        call_id: str | None = None,
        cancellation: Cancellation | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
        traced: bool = True,
    ) -> Any:
        """Call a tool and return its value: a JSON value, or an `Output`.

        Args:
            tool: The tool, or its name as in `tools/list`, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Time limits to use instead of the server's.
            observers: Are notified of what the call does.
            origin: Who makes the call.
            call_id: The call's id, which no running call may have; a new one by default.
            cancellation: Holds the reason for a cancellation; read when the call is cancelled.
            on_record: Called with its record when it has ended, before this returns.
            traced: Whether that record should say when the call passed each hop.

        Raises:
            CallRefusedError: No such tool, the arguments break its schema or the limit, or the user
                does not allow it.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: Its value does not match its output schema; see `OutputCheck`.
        """
        if call_id is not None and call_id in self.running:
            raise failures.id_in_use(call_id)
        found = self.registry.get(tool) if isinstance(tool, str) else tool
        name = str(tool) if found is None else found.listing.name
        own = None if found is None else found.limits
        call = ToolCall(
            arguments,
            limits or own or self.limits,
            tuple(observers),
            origin=origin,
            cancellation=cancellation
            or (Cancellation(_CALLER_ENDED) if origin.is_nested else Cancellation()),
            call_id=call_id or new_call_id(),
        )
        with self.records.record(name, call, on_record=on_record, traced=traced) as in_progress:
            in_progress.value = await self._call(found, name, in_progress.call)
        return in_progress.value

    async def _call(self, tool: Tool | None, name: str, call: ToolCall) -> Any:
        if tool is None:
            raise self.registry.unknown(name)
        check_names(tool.listing.name, call.arguments)
        if self.on_other_report is not None and not self.registry.is_python(tool.listing.name):
            report = partial(self.on_other_report, name, call.call_id)
            call = replace(call, observers=(*call.observers, ProgressObserver(report)))
        run = tool.prepare(call)
        try:
            with self.running.add(name, call):
                value = await self._run_allowed(tool, call, run)
        except ToolFailedError as error:
            if tool.listing.needs_tab:
                await self._map_stack(tool.listing, error)
            raise
        self.output.check(tool.listing, value)
        return value

    def _decision(self, name: str) -> Decision:
        decided = self.registry.decision(name)
        if decided is None:  # the tool has left the list since it was looked up
            raise self.registry.unknown(name)
        return decided

    async def _run_allowed(
        self, tool: Tool, call: ToolCall, run: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Run a call once it is allowed; if its user has to sign in first, run it then."""
        name, allowed_by = tool.listing.name, call.origin.allowed_by
        decided = self.registry.decision(name)
        if decided is None or decided.permission != "auto":
            questions = self._questions(tool)
            permit = await questions.wait_allowed(call, partial(self._decision, name))
            allowed_by, bound = permit.by, questions.bind(call, permit)
            if bound is not call:
                call, run = bound, tool.prepare(bound)
        if call.recorder is not None:
            call.recorder.record_allowed(allowed_by or "auto")
        cancellation = call.cancellation
        try:
            cancellation.comes_in_time = False
            return await run()
        except ChainError as error:
            cancellation.comes_in_time = True
            await self._questions(tool).sign_in(call, error)
            cancellation.comes_in_time = False
            return await run()

    def _questions(self, tool: Tool) -> CallQuestions:
        gated = self.registry.gated(tool.listing)
        return CallQuestions(self.registry.gate, self._pages, tool, gated)

    async def _map_stack(self, tool: Listing, error: ToolFailedError) -> None:
        """Map an error's stack trace to the plugin's source, and log it."""
        stack = error.detail.stack
        if stack is None:
            return
        if self._read_stack is not None:
            stack = await self._read_stack(tool.owner, stack)
            error.detail = replace(error.detail, stack=stack)
        # With a code, the tool raised the error deliberately, for its caller to read.
        level = logging.WARNING if error.detail.code == codes.INTERNAL_ERROR else logging.DEBUG
        plugin_logger(tool.owner).log(level, "%s threw %s", tool.name, visible(stack))
