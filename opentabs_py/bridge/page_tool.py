"""Tools that run in a page: check a call, and send it over the bridge."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from opentabs_py.bridge.bridge import Bridge, TabCall
from opentabs_py.calling.tool import Listing, ToolCall
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.instances import Instance
from opentabs_py.core.manifest import (
    PluginManifest,
    PluginTool,
    mcp_name,
    qualified_names,
)
from opentabs_py.core.page_arguments import (
    INSTANCE,
    TAB_ID,
    listed_schema,
    split_instance,
    split_tab_id,
)
from opentabs_py.core.plugin_settings import url_pattern
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.recorder import CallRecording, Instant


class PageTool:
    """A tool of a plugin, ready to be called.

    Args:
        bridge: Carries its calls to a page.
        plugin: The plugin it belongs to.
        tool: The plugin's description of it.
        input_limit: The largest input, in bytes of JSON.

    Attributes:
        other_names: Names it can be called by, besides the listed one.
    """

    limits: Limits | None = None

    def __init__(
        self, bridge: Bridge, plugin: PluginManifest, tool: PluginTool, *, input_limit: int
    ) -> None:
        self.listing = Listing(
            name=mcp_name(plugin.name, tool.name),
            owner=plugin.name,
            title=tool.display_name,
            description=tool.description,
            input_schema=listed_schema(tool.input_schema, plugin.instances.names),
            output_schema=tool.output_schema,
            annotations=tool.annotations,
        )
        self.other_names = qualified_names(plugin.name, tool.name)
        self._bridge = bridge
        self._plugin = plugin
        self._name = tool.name
        self._arguments = ArgumentReader(self.listing.name, tool.input_schema, limit=input_limit)

    async def run(self, call: ToolCall) -> Any:
        """Run the tool in a tab and return its JSON value; see `ServedTool.run`."""
        if call.recording is not None:
            call.recording.resolve(self._plugin.name, self._name)
        tab_call = self._check(call)
        if call.recording is not None:
            tab_call = _recorded(tab_call, call.recording, self._bridge.instant)
        return await self._bridge.call(tab_call)

    def _check(self, call: ToolCall) -> TabCall:
        instances = self._plugin.instances
        place = TAB_ID
        try:
            tab_id, arguments = split_tab_id(call.arguments)
            place = INSTANCE
            name, arguments = split_instance(arguments, instances.names)
        except ValueError as error:
            faults = [(place, str(error))]
            raise failures.invalid_arguments(self.listing.name, faults) from None
        patterns = self._plugin.url_patterns
        if name is not None:
            patterns = tuple(map(url_pattern, instances.urls[name]))
        return TabCall(
            plugin=self._plugin.name,
            tool=self._name,
            arguments=self._arguments.read(arguments),
            tab_id=tab_id,
            patterns=patterns,
            instance=None if name is None else Instance(name, instances),
            limits=call.limits,
            on_progress=call.on_progress,
            on_log=call.on_log,
            on_sent=call.on_sent,
        )


def _recorded(call: TabCall, recording: CallRecording, instant: Callable[[], Instant]) -> TabCall:
    def record_progress(reports: Sequence[ProgressReport]) -> None:
        recording.record_progress(reports, instant())
        if call.on_progress is not None:
            call.on_progress(reports)

    def record_logs(entries: Sequence[LogEntry]) -> None:
        recording.record_logs(entries, instant())
        if call.on_log is not None:
            call.on_log(entries)

    return replace(call, on_progress=record_progress, on_log=record_logs, recording=recording)
