"""The callable tools, by their MCP names."""

import difflib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from opentabs_py.bridge.browsers import Pages
from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.calling.check import OutputCheck
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import CallObserver, ProgressObserver, Recorder, instant
from opentabs_py.calling.tool import CallClient, Listing, Tool, ToolCall, new_call_id
from opentabs_py.core import failures
from opentabs_py.core.limits import Limits
from opentabs_py.core.manifest import PluginManifest
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs import PluginStatus
from opentabs_py.core.text import visible
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.core.trace.recorder import CallRecording
from opentabs_py.errors import CallRefusedError, ConfigError, ToolFailedError
from opentabs_py.server.search import ToolSearch

logger = logging.getLogger(__name__)


class OtherwiseNamed(Tool, Protocol):
    """A tool that can also be called by other names than the listed one."""

    @property
    def other_names(self) -> Collection[str]:
        """These names."""
        ...


class ToolRegistry:
    """Finds tools, runs them, and checks their results.

    Args:
        pages: Where page tools run.
        limits: The default timers of calls.
        status: Returns the status of a plugin; by default, across the tabs of `pages`.
        input_limit: The largest input, in characters of JSON.
        strict_output: Fail calls whose value does not match the tool's output schema.
        debug: Send the stack traces of errors to MCP clients.
        beside_pages: Tools of our own that are served whenever page tools are.

    Attributes:
        limits: The default timers of calls.
        record_values: Keep arguments and results, truncated, in the records of calls.
        output: Checks the values that tools return.
        debug: Send the stack traces of errors to MCP clients.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.
        on_page_report: Called with the name, the id and the reports of every call of a page tool;
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
    ) -> None:
        self.limits = limits
        self.record_values = False
        self.output = OutputCheck(strict=strict_output)
        self.debug = debug
        self.read_stack: Callable[[str, str], Awaitable[str]] | None = None
        self.on_page_report: Callable[[str, str, Sequence[ProgressReport]], None] | None = None
        self._pages = pages
        self._clock = pages.clock
        self._status = status
        self._input_limit = input_limit
        self._beside_pages = {tool.listing.name: tool for tool in beside_pages}
        self._others: dict[str, Tool] = {}
        self._of_pages: list[OtherwiseNamed] = []
        self._tools: dict[str, Tool] = {}
        self._by_other_names: dict[str, Tool] = {}
        self._listed: tuple[Tool, ...] = ()
        self._search: ToolSearch | None = None  # built when first asked
        self._running = 0
        self._listeners: Listeners[[]] = Listeners("changes of the tool list")
        self._started: Listeners[[RecordSoFar]] = Listeners("calls")
        self._ended: Listeners[[CallRecord]] = Listeners("calls")

    def set_plugins(self, manifests: Iterable[PluginManifest]) -> None:
        """Serve the tools of these plugins, instead of any other page tools."""
        self._of_pages = [
            PageTool(self._pages, manifest, tool, input_limit=self._input_limit)
            for manifest in manifests
            for tool in manifest.tools
        ]
        for tool in self._of_pages:
            if (name := tool.listing.name) in self._others:
                logger.error(
                    "The plugin %s and Python both have a tool %s; the plugin's is left out",
                    tool.listing.owner,
                    name,
                )
        self._list()

    def set_remote(self, tools: Iterable[OtherwiseNamed]) -> None:
        """Serve these tools of a fleet's workers, instead of any other page tools."""
        self._of_pages = [*tools]
        self._list()

    def add_tools(self, tools: Iterable[Tool]) -> None:
        """Serve these tools as well, for the lifetime of this registry.

        Raises:
            ConfigError: Two tools have the same name.
        """
        for tool in tools:
            name, owner = tool.listing.name, tool.listing.owner
            other = self._tools.get(name) or self._others.get(name) or self._beside_pages.get(name)
            if other is not None:
                raise ConfigError(
                    f"Two tools are named {name}: one from {other.listing.owner}, one from "
                    f'{owner}. Rename one: @tool(name="...").'
                )
            self._others[name] = tool
        self._list()

    def _list(self) -> None:
        before = [_seen(tool.listing) for tool in self.tools]
        names = self._others
        of_pages = [tool for tool in self._of_pages if tool.listing.name not in names]
        beside = self._beside_pages.values() if of_pages else ()
        tools = [*of_pages, *beside, *names.values()]
        self._listed = tuple(sorted(tools, key=lambda tool: tool.listing.name))
        self._tools = {tool.listing.name: tool for tool in self._listed}
        self._search = None
        self._by_other_names = {name: tool for tool in of_pages for name in tool.other_names}
        for name in self._by_other_names.keys() & names.keys():
            logger.warning(
                "%s is a Python tool; call the plugin %s's tool as %s",
                name,
                self._by_other_names[name].listing.owner,
                self._by_other_names[name].listing.name,
            )
        self.output.set_tools(tool.listing for tool in self._listed)
        if [_seen(tool.listing) for tool in self.tools] != before:
            self._listeners.notify()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools that clients see change; return the unsubscriber."""
        return self._listeners.subscribe(listener)

    def observe(
        self,
        observer: Callable[[CallRecord], None],
        *,
        on_start: Callable[[RecordSoFar], None] | None = None,
    ) -> Callable[[], None]:
        """Call a function with the record of every call that ends from now on, however it ends.

        It is called before the caller gets the result, in the caller's task, and must not block.
        Without observers, calls are not traced.

        Args:
            observer: Receives each record.
            on_start: Called in the same way when a call begins, with a function that returns its
                record so far.

        Returns:
            A function that ends the observation.
        """
        ends = [self._ended.subscribe(observer)]
        if on_start is not None:
            ends.append(self._started.subscribe(on_start))

        def end() -> None:
            for each in ends:
                each()

        return end

    @property
    def running(self) -> int:
        """How many calls run now."""
        return self._running

    @property
    def tools(self) -> Sequence[Tool]:
        """All tools, sorted by name; the same object until they change."""
        return self._listed

    def get(self, name: str) -> Tool | None:
        """Return a tool by its MCP name, or a plugin's tool by `plugin__tool`; None if unknown.

        `plugin__tool` is the convention of others in the ecosystem; it is not listed.
        """
        return self._tools.get(name) or self._by_other_names.get(name)

    def find(self, name: str) -> Tool:
        """Return a tool by a name that `get` knows.

        Raises:
            CallRefusedError: There is no such tool; the text suggests similar names.
        """
        tool = self.get(name)
        if tool is None:
            raise self._unknown(name)
        return tool

    def search(self, query: str) -> list[Listing]:
        """Return the tools that match any word of a query, the best first."""
        if self._search is None:
            self._search = ToolSearch(tool.listing for tool in self._listed)
        return self._search.find(query)

    def status(self, owner: str) -> PluginStatus | None:
        """Return the status of a plugin across its tabs; None for tools that need no tab."""
        if any(tool.listing.owner == owner and tool.listing.needs_tab for tool in self._of_pages):
            find = self._status or self._pages.tabs.status
            return find(owner)
        return None

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a tool's arguments; None if there is no such tool."""
        tool = self.get(name)
        return None if tool is None else tool.listing.input_schema

    async def call(
        self,
        tool: Tool | str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        client: CallClient | None = None,
        call_id: str | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
    ) -> Any:
        """Call a tool and return its value: a JSON value, or an `Output`.

        Args:
            tool: The tool, or its name as in `tools/list`, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Timers to use instead of the server's.
            observers: Are notified of what the call does.
            client: The MCP client that makes the call.
            call_id: The call's id; a new one by default.
            on_record: Called with its record when it has ended, before this returns.

        Raises:
            CallRefusedError: No such tool, or the arguments break its schema or the limit.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: Its value does not match its output schema; see `OutputCheck`.
        """
        found = self.get(tool) if isinstance(tool, str) else tool
        name = str(tool) if found is None else found.listing.name
        own = None if found is None else found.limits
        call = ToolCall(
            arguments,
            limits or own or self.limits,
            tuple(observers),
            client=client,
            call_id=call_id or new_call_id(),
        )
        if not self._ended and on_record is None:
            return await self._run(found, name, call)
        recording = CallRecording(
            call_id=call.call_id,
            name=name,
            limits=call.limits,
            now=instant(self._clock),
            arguments=arguments if self.record_values else None,
        )
        recorder = Recorder(recording, self._clock)
        call = replace(call, recording=recording, observers=(recorder, *call.observers))
        self._started.notify(lambda: recording.so_far(instant(self._clock)))
        try:
            value = await self._run(found, name, call)
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

    async def _run(self, tool: Tool | None, name: str, call: ToolCall) -> Any:
        if tool is None:
            raise self._unknown(name)
        if self.on_page_report is not None and tool.listing.needs_tab:
            report = partial(self.on_page_report, name, call.call_id)
            call = replace(call, observers=(*call.observers, ProgressObserver(report)))
        self._running += 1
        try:
            value = await tool.run(call)
        except ToolFailedError as error:
            if tool.listing.needs_tab:
                await self._note_stack(tool.listing, error)
            raise
        finally:
            self._running -= 1
        self.output.check(tool.listing, value)
        return value

    def _unknown(self, name: str) -> CallRefusedError:
        return failures.unknown_tool(name, difflib.get_close_matches(name, self._tools, n=2))

    async def _note_stack(self, tool: Listing, error: ToolFailedError) -> None:
        """Map an error's stack trace to the plugin's source, and log it."""
        stack = error.detail.stack
        if stack is None:
            return
        if self.read_stack is not None:
            stack = await self.read_stack(tool.owner, stack)
            error.detail = replace(error.detail, stack=stack)
        # With a code, the tool raised the error deliberately, for its caller to read.
        level = logging.WARNING if error.detail.code == "INTERNAL_ERROR" else logging.DEBUG
        log = logging.getLogger(f"opentabs_py.plugin.{tool.owner}")
        log.log(level, "%s threw %s", tool.name, visible(stack))


def _seen(listing: Listing) -> Listing:
    """Return the parts of a listing that are in the list of tools."""
    output = listing.output_schema if listing.promises_object else None
    return replace(listing, owner="", summary="", group="", output_schema=output)
