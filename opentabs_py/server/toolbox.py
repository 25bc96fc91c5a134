"""The tools that can be called, by their MCP names."""

import difflib
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from opentabs_py.bridge import Bridge, TabCall
from opentabs_py.core import failures
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.plugins import (
    PluginManifest,
    PluginTool,
    input_schema_with_tab,
    mcp_name,
    split_tab_id,
)
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.recording import CallRecording, Instant
from opentabs_py.core.records import CallRecord
from opentabs_py.core.schemas import Checker
from opentabs_py.core.text import shorten

logger = logging.getLogger(__name__)

MAX_FAULTS = 5  # of one call's arguments; an agent mends them one at a time anyway


@dataclass(frozen=True, slots=True)
class PageTool:
    """A tool that runs in a page, ready to be listed and called.

    Attributes:
        name: Its MCP name.
        input_schema: What clients see: the tool's own with `tabId` added.
        arguments: Checks arguments, `tabId` taken out.
        output: Checks what the tool gives, where its schema says anything of it.
    """

    name: str
    plugin: PluginManifest
    tool: PluginTool
    input_schema: dict[str, Any]
    arguments: Checker
    output: Checker | None

    @property
    def promises_object(self) -> bool:
        """Whether its output schema says that its value is an object."""
        schema = self.tool.output_schema
        return schema is not None and schema.get("type") == "object"

    @property
    def listed_schemas(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The schemas that clients see, of input and output."""
        # An output's whose root is not an object makes initialize-era clients refuse the list.
        return self.input_schema, self.tool.output_schema if self.promises_object else None

    @property
    def listing(self) -> tuple[object, ...]:
        """All of it that clients see."""
        tool = self.tool
        return (
            self.name,
            tool.display_name,
            tool.description,
            tool.annotations,
            *self.listed_schemas,
        )


class Toolbox:
    """Finds a tool, checks the call, and has the bridge make it.

    Attributes:
        limits: The timers of calls that bring none of their own.
        record_values: Keep arguments and results in the records of calls, cut to a bound.
        strict_output: Fail a call whose value breaks the tool's output schema; otherwise that is
            logged, once for each tool.
    """

    def __init__(
        self, bridge: Bridge, *, limits: Limits, input_limit: int, strict_output: bool = False
    ) -> None:
        self.limits = limits
        self.record_values = False
        self.strict_output = strict_output
        self._bridge = bridge
        self._input_limit = input_limit
        self._tools: dict[str, PageTool] = {}
        self._listed: tuple[PageTool, ...] = ()
        self._warned: set[str] = set()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._observers: dict[object, Callable[[CallRecord], None]] = {}

    def set_plugins(self, manifests: Iterable[PluginManifest]) -> None:
        """Serve the tools of these plugins and no others."""
        before = [tool.listing for tool in self.tools]
        tools = (_page_tool(manifest, tool) for manifest in manifests for tool in manifest.tools)
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        self._listed = tuple(self._tools.values())
        self._warned.clear()
        if [tool.listing for tool in self.tools] != before:
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
    def tools(self) -> Sequence[PageTool]:
        """All tools, by name; the same object until they change."""
        return self._listed

    def find(self, name: str) -> PageTool:
        """Give a tool by its MCP name.

        Raises:
            CallRefusedError: There is none; the text says which names are near.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise failures.unknown_tool(name, difflib.get_close_matches(name, self._tools, n=2))
        return tool

    def plugin_of(self, name: str) -> str | None:
        """Give the name of the plugin that a tool is of; None when there is no such tool."""
        return self._tools[name].plugin.name if name in self._tools else None

    def promises_object(self, name: str) -> bool:
        """Whether a tool's output schema says that its value is an object."""
        return name in self._tools and self._tools[name].promises_object

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        on_log: Callable[[Sequence[LogEntry]], None] | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Any:
        """Call a tool by its MCP name and give its value, a JSON value.

        Args:
            name: As `tools/list` names it.
            arguments: With or without `tabId`.
            limits: Other timers than the server's.
            on_progress: Is given each batch of reports, in order; must not block or raise.
            on_log: Is given what the plugin logs in that page meanwhile; the same.
            on_sent: Is called once the call is on its way to its page; the same.

        Raises:
            CallRefusedError: No such tool, or the arguments break its schema or the limit.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: With `strict_output`, its value breaks its output schema.
        """
        limits = limits or self.limits
        if not self._observers:
            tool, call = self._check(name, arguments, limits, on_progress, on_log)
            value = await self._bridge.call(replace(call, on_sent=on_sent))
            self._check_output(tool, value)
            return value
        recording = CallRecording(
            call_id=secrets.token_hex(16),
            name=name,
            limits=limits,
            now=self._bridge.instant(),
            arguments=arguments if self.record_values else None,
        )
        try:
            page_tool = self._tools.get(name)
            if page_tool is not None:
                recording.resolve(page_tool.plugin.name, page_tool.tool.name)
            tool, call = self._check(name, arguments, limits, on_progress, on_log)
            call = replace(_recorded(call, recording, self._bridge.instant), on_sent=on_sent)
            value = await self._bridge.call(call)
            self._check_output(tool, value)
        except BaseException as error:
            self._tell(recording.fail(error, self._bridge.instant()))
            raise
        self._tell(recording.succeed(value, self._bridge.instant()))
        return value

    def _tell(self, record: CallRecord) -> None:
        for observer in list(self._observers.values()):
            try:
                observer(record)
            except Exception:
                # What looks at a call must not change how it ends.
                logger.exception("An observer of calls failed")

    def _check(
        self,
        name: str,
        arguments: Mapping[str, Any],
        limits: Limits,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None,
        on_log: Callable[[Sequence[LogEntry]], None] | None,
    ) -> tuple[PageTool, TabCall]:
        page_tool = self.find(name)
        try:
            tab_id, checked = split_tab_id(arguments)
        except ValueError as error:
            raise failures.invalid_arguments(name, [("tabId", str(error))]) from None
        try:
            size = len(to_json(checked))  # before the check, which would not bear any depth
        except PydanticSerializationError as error:
            raise failures.invalid_arguments(name, [("", f"they are no JSON: {error}")]) from None
        if size > self._input_limit:
            raise failures.input_too_large(name, size, self._input_limit)
        faults = page_tool.arguments.faults(checked, most=MAX_FAULTS)
        if faults:
            raise failures.invalid_arguments(name, faults)
        return page_tool, TabCall(
            plugin=page_tool.plugin.name,
            tool=page_tool.tool.name,
            arguments=checked,
            tab_id=tab_id,
            patterns=page_tool.plugin.url_patterns,
            limits=limits,
            on_progress=on_progress,
            on_log=on_log,
        )

    def _check_output(self, tool: PageTool, value: Any) -> None:
        if tool.output is None or not (self.strict_output or tool.name not in self._warned):
            return
        faults = tool.output.faults(value, most=MAX_FAULTS)
        if not faults:
            return
        error = failures.result_breaks_schema(tool.name, faults, value)
        if self.strict_output:
            raise error
        self._warned.add(tool.name)
        logger.warning("%s", shorten(str(error), 500))


def _recorded(call: TabCall, recording: CallRecording, instant: Callable[[], Instant]) -> TabCall:
    def take_progress(reports: Sequence[ProgressReport]) -> None:
        recording.take_progress(reports, instant())
        if call.on_progress is not None:
            call.on_progress(reports)

    def take_logs(entries: Sequence[LogEntry]) -> None:
        recording.take_logs(entries, instant())
        if call.on_log is not None:
            call.on_log(entries)

    return replace(call, on_progress=take_progress, on_log=take_logs, recording=recording)


def _page_tool(manifest: PluginManifest, tool: PluginTool) -> PageTool:
    return PageTool(
        name=mcp_name(manifest.name, tool.name),
        plugin=manifest,
        tool=tool,
        input_schema=input_schema_with_tab(tool),
        arguments=Checker(tool.input_schema),
        output=Checker(tool.output_schema) if tool.output_schema else None,
    )
