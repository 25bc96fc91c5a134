"""The tools that can be called, by their MCP names."""

import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentabs_py.bridge import Bridge
from opentabs_py.core import failures
from opentabs_py.core.arguments import MAX_FAULTS
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.plugins import PluginManifest
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.recording import CallRecording
from opentabs_py.core.records import CallRecord
from opentabs_py.core.schemas import Checker
from opentabs_py.core.text import shorten, visible
from opentabs_py.errors import ConfigError, ToolFailedError
from opentabs_py.served import CallClient, Listing, Output, ServedTool, ToolCall
from opentabs_py.server.page_tool import PageTool

logger = logging.getLogger(__name__)


class Toolbox:
    """Finds a tool, has it run, and looks at what it gives.

    Attributes:
        limits: The timers of calls that bring none of their own.
        record_values: Keep arguments and results in the records of calls, cut to a bound.
        strict_output: Fail a call whose value breaks the tool's output schema; otherwise that is
            logged, once for each tool.
        debug: Send MCP clients the stacks of errors.
        read_stack: Returns a plugin's stack in lines of its source, given the plugin's name and the
            stack as the page sent it.
        on_page_report: Called with the name, the id and the reports of every call of a page tool;
            must not block or raise. Python tools have handlers of their own.
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

    def set_plugins(self, manifests: Iterable[PluginManifest]) -> None:
        """Serve the tools of these plugins and no others of pages."""
        self._of_pages = [
            PageTool(self._bridge, manifest, tool, input_limit=self._input_limit)
            for manifest in manifests
            for tool in manifest.tools
        ]
        for tool in self._of_pages:
            if (name := tool.listing.name) in self._others:
                logger.error(
                    "The plugin %s has a tool %s, and so has Python: the plugin's is left out",
                    tool.listing.owner,
                    name,
                )
        self._list()

    def add_tools(self, tools: Iterable[ServedTool]) -> None:
        """Serve these tools too, as long as this is there.

        Raises:
            ConfigError: One has the name of another.
        """
        for tool in tools:
            name, owner = tool.listing.name, tool.listing.owner
            if (other := self._tools.get(name) or self._others.get(name)) is not None:
                raise ConfigError(
                    f"Two tools are called {name}: one of {other.listing.owner}, one of {owner}. "
                    'Give one another name: @tool(name="...").'
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
                "%s is a tool in Python; call the tool of the plugin %s as %s",
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
        """Call a function, which must not raise, whenever clients would see other tools.

        Returns:
            What ends that.
        """
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def observe(self, observer: Callable[[CallRecord], None]) -> Callable[[], None]:
        """Give a function the record of every call that ends from now on, however it ends.

        It is called before the caller has the result, in the caller's task, and must not block.
        While nobody observes, calls are not traced.

        Returns:
            What ends that.
        """
        token = object()
        self._observers[token] = observer

        def end() -> None:
            self._observers.pop(token, None)

        return end

    @property
    def tools(self) -> Sequence[ServedTool]:
        """All tools, by name; the same object until they change."""
        return self._listed

    def get(self, name: str) -> ServedTool | None:
        """Return a tool by its MCP name, or else a plugin's by `plugin__tool`; None if none has it.

        `plugin__tool` is how others in the ecosystem name tools; it is not listed.
        """
        return self._tools.get(name) or self._by_other_names.get(name)

    def find(self, name: str) -> ServedTool:
        """Return a tool by a name that `get` knows.

        Raises:
            CallRefusedError: There is none; the text says which names are near.
        """
        tool = self.get(name)
        if tool is None:
            raise failures.unknown_tool(name, difflib.get_close_matches(name, self._tools, n=2))
        return tool

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Give the JSON Schema of a tool's arguments; None when there is no such tool."""
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
        on_recording: Callable[[Callable[[], CallRecord]], None] | None = None,
        client: CallClient | None = None,
        call_id: str | None = None,
    ) -> Any:
        """Call a tool by its name and return its value: a JSON value, or an `Output`.

        Args:
            name: As `tools/list` names it, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Other timers than the server's.
            on_progress: Is given each batch of reports, in order; must not block or raise.
            on_log: Is given what the plugin logs in that page meanwhile; the same.
            on_sent: Is called once the call is on its way to its page; the same.
            on_recording: Is given what returns the call's record so far, if somebody observes.
            client: The MCP client that makes it.
            call_id: The call's id; a fresh one when not given.

        Raises:
            CallRefusedError: No such tool, or the arguments break its schema or the limit.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: With `strict_output`, its value breaks its output schema.
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
        if on_recording is not None:
            on_recording(lambda: recording.so_far(self._bridge.instant()))
        try:
            value = await self._run(name, replace(call, recording=recording))
        except BaseException as error:
            self._tell(recording.fail(error, self._bridge.instant()))
            raise
        self._tell(recording.succeed(value, self._bridge.instant()))
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
        """Put an error's stack into lines of the plugin's source, and log it."""
        stack = error.detail.stack
        if stack is None:
            return
        if self.read_stack is not None:
            stack = await self.read_stack(tool.owner, stack)
            error.detail = replace(error.detail, stack=stack)
        # A code is one that the tool chose, for its caller to read.
        level = logging.WARNING if error.detail.code == "INTERNAL_ERROR" else logging.DEBUG
        log = logging.getLogger(f"opentabs_py.plugin.{tool.owner}")
        log.log(level, "%s threw %s", tool.name, visible(stack))

    def _tell(self, record: CallRecord) -> None:
        for observer in list(self._observers.values()):
            try:
                observer(record)
            except Exception:
                # What looks at a call must not change how it ends.
                logger.exception("An observer of calls failed")

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
    """Give what of a tool clients see; the owner is not told."""
    output = listing.output_schema if listing.promises_object else None
    return replace(listing, owner="", output_schema=output)
