"""The callable tools, by their MCP names."""

import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.calling.tool import CallClient, Listing, Output, ServedTool, ToolCall
from opentabs_py.core import failures
from opentabs_py.core.arguments import MAX_FAULTS
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.manifest import PluginManifest
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.schemas import Checker
from opentabs_py.core.text import shorten, visible
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.core.trace.recorder import CallRecording
from opentabs_py.errors import ConfigError, ToolFailedError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ToolRegistry:
    """Finds tools, runs them, and checks their results.

    Attributes:
        limits: The default timers of calls.
        record_values: Keep arguments and results, truncated, in the records of calls.
        strict_output: Fail a call whose value does not match the tool's output schema; otherwise
            that is only logged, once per tool.
        debug: Send the stack traces of errors to MCP clients.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.
        on_page_report: Called with the name, the id and the reports of every call of a page tool;
            must not block or raise. Python tools have their own handlers.
    """

    def __init__(
        self,
        bridge: Bridge,
        *,
        limits: Limits,
        input_limit: int,
        strict_output: bool = False,
        debug: bool = False,
    ) -> None:
        self.limits = limits
        self.record_values = False
        self.strict_output = strict_output
        self.debug = debug
        self.read_stack: Callable[[str, str], Awaitable[str]] | None = None
        self.on_page_report: Callable[[str, str, Sequence[ProgressReport]], None] | None = None
        self._bridge = bridge
        self._input_limit = input_limit
        self._others: dict[str, ServedTool] = {}
        self._of_pages: list[PageTool] = []
        self._tools: dict[str, ServedTool] = {}
        self._by_other_names: dict[str, PageTool] = {}
        self._listed: tuple[ServedTool, ...] = ()
        self._outputs: dict[str, Checker] = {}
        self._warned: set[str] = set()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._observers: dict[object, Callable[[CallRecord], None]] = {}
        self._start_observers: dict[object, Callable[[RecordSoFar], None]] = {}

    def set_plugins(self, manifests: Iterable[PluginManifest]) -> None:
        """Serve the tools of these plugins, instead of any other page tools."""
        self._of_pages = [
            PageTool(self._bridge, manifest, tool, input_limit=self._input_limit)
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

    def add_tools(self, tools: Iterable[ServedTool]) -> None:
        """Serve these tools as well, for the lifetime of this registry.

        Raises:
            ConfigError: Two tools have the same name.
        """
        for tool in tools:
            name, owner = tool.listing.name, tool.listing.owner
            if (other := self._tools.get(name) or self._others.get(name)) is not None:
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
        tools = [*of_pages, *names.values()]
        self._listed = tuple(sorted(tools, key=lambda tool: tool.listing.name))
        self._tools = {tool.listing.name: tool for tool in self._listed}
        self._by_other_names = {name: tool for tool in of_pages for name in tool.other_names}
        for name in self._by_other_names.keys() & names.keys():
            logger.warning(
                "%s is a Python tool; call the plugin %s's tool as %s",
                name,
                self._by_other_names[name].listing.owner,
                self._by_other_names[name].listing.name,
            )
        self._outputs = {
            name: Checker(schema)
            for name, tool in self._tools.items()
            if (schema := tool.listing.output_schema)
        }
        self._warned.clear()
        if [_seen(tool.listing) for tool in self.tools] != before:
            for listener in list(self._listeners.values()):
                listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function, which must not raise, whenever the tools that clients see change.

        Returns:
            The unsubscriber.
        """
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

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
        token = object()
        self._observers[token] = observer
        if on_start is not None:
            self._start_observers[token] = on_start

        def end() -> None:
            self._observers.pop(token, None)
            self._start_observers.pop(token, None)

        return end

    @property
    def tools(self) -> Sequence[ServedTool]:
        """All tools, sorted by name; the same object until they change."""
        return self._listed

    def get(self, name: str) -> ServedTool | None:
        """Return a tool by its MCP name, or a plugin's tool by `plugin__tool`; None if unknown.

        `plugin__tool` is the convention of others in the ecosystem; it is not listed.
        """
        return self._tools.get(name) or self._by_other_names.get(name)

    def find(self, name: str) -> ServedTool:
        """Return a tool by a name that `get` knows.

        Raises:
            CallRefusedError: There is no such tool; the text suggests similar names.
        """
        tool = self.get(name)
        if tool is None:
            raise failures.unknown_tool(name, difflib.get_close_matches(name, self._tools, n=2))
        return tool

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a tool's arguments; None if there is no such tool."""
        tool = self.get(name)
        return None if tool is None else tool.listing.input_schema

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        on_log: Callable[[Sequence[LogEntry]], None] | None = None,
        on_sent: Callable[[], None] | None = None,
        client: CallClient | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Call a tool by its name and return its value: a JSON value, or an `Output`.

        Args:
            name: As in `tools/list`, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Timers to use instead of the server's.
            on_progress: Called with each batch of reports, in order; must not block or raise.
            on_log: Called with what the plugin logs in the page meanwhile; must not block or raise.
            on_sent: Called once the call is on its way to its page; must not block or raise.
            client: The MCP client that makes the call.
            call_id: The call's id; a new one by default.

        Raises:
            CallRefusedError: No such tool, or the arguments break its schema or the limit.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: With `strict_output`, its value does not match its output schema.
        """
        tool = self.get(name)
        name = name if tool is None else tool.listing.name
        own = None if tool is None else tool.limits
        call = ToolCall(
            arguments, limits or own or self.limits, on_progress, on_log, on_sent, client=client
        )
        if call_id is not None:
            call = replace(call, call_id=call_id)
        if not self._observers:
            return await self._run(name, call)
        recording = CallRecording(
            call_id=call.call_id,
            name=name,
            limits=call.limits,
            now=self._bridge.instant(),
            arguments=arguments if self.record_values else None,
        )
        so_far: RecordSoFar = lambda: recording.so_far(self._bridge.instant())  # noqa: E731
        self._notify(self._start_observers, so_far)
        try:
            value = await self._run(name, replace(call, recording=recording))
        except BaseException as error:
            self._notify(self._observers, recording.fail(error, self._bridge.instant()))
            raise
        self._notify(self._observers, recording.succeed(value, self._bridge.instant()))
        return value

    async def _run(self, name: str, call: ToolCall) -> Any:
        tool = self.find(name)
        if self.on_page_report is not None and isinstance(tool, PageTool):
            call = _reporting(name, call, self.on_page_report)
        try:
            value = await tool.run(call)
        except ToolFailedError as error:
            if isinstance(tool, PageTool):
                await self._note_stack(tool.listing, error)
            raise
        self._check_output(name, value)
        return value

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

    def _notify(self, observers: Mapping[object, Callable[[T], None]], news: T) -> None:
        for observer in list(observers.values()):
            try:
                observer(news)
            except Exception:
                # Observing a call must not change how it ends.
                logger.exception("A call observer failed")

    def _check_output(self, name: str, value: Any) -> None:
        checker = self._outputs.get(name)
        if checker is None or not (self.strict_output or name not in self._warned):
            return
        if isinstance(value, Output):
            value = value.structured
        faults = checker.faults(value, most=MAX_FAULTS)
        if not faults:
            return
        error = failures.result_breaks_schema(name, faults, value)
        if self.strict_output:
            raise error
        self._warned.add(name)
        logger.warning("%s", shorten(str(error), 500))


def _reporting(
    name: str, call: ToolCall, tell: Callable[[str, str, Sequence[ProgressReport]], None]
) -> ToolCall:
    on_progress = call.on_progress

    def take(reports: Sequence[ProgressReport]) -> None:
        tell(name, call.call_id, reports)
        if on_progress is not None:
            on_progress(reports)

    return replace(call, on_progress=take)


def _seen(listing: Listing) -> Listing:
    """Return the parts of a listing that clients see; they do not see the owner."""
    output = listing.output_schema if listing.promises_object else None
    return replace(listing, owner="", output_schema=output)
