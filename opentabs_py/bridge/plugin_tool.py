"""Tools that run in a page: check a call, and send it over the bridge."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.page_listing import listing_of
from opentabs_py.calling.tool import Listing, ToolCall
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.instances import Instance
from opentabs_py.core.limits import Limits
from opentabs_py.core.manifest import ManifestTool, PluginManifest
from opentabs_py.core.page_arguments import (
    INSTANCE,
    TAB_ID,
    split_instance,
    split_tab_id,
)
from opentabs_py.core.plugin_names import qualified_names
from opentabs_py.core.plugin_settings import url_pattern
from opentabs_py.core.protocol import DocumentState
from opentabs_py.core.schemas import JsonObject
from opentabs_py.core.tabs import Target

Checked: TypeAlias = tuple[Target, str, JsonObject]
"""Where a call runs, the tool's name there, and its arguments."""


class PluginTool:
    """A tool of a plugin, ready to be called.

    Args:
        pages: Where its calls run.
        plugin: The plugin it belongs to.
        tool: The plugin's description of it.
        input_limit: The largest input, in characters of JSON.

    Attributes:
        other_names: Names it can be called by, besides the listed one.
        plugin: What it belongs to in the pages.
    """

    limits: Limits | None = None
    listing: Listing
    other_names: tuple[str, ...]
    plugin: str

    def __init__(
        self, pages: Pages, plugin: PluginManifest, tool: ManifestTool, *, input_limit: int
    ) -> None:
        self.listing = listing_of(plugin, tool)
        self.other_names = qualified_names(plugin.name, tool.name)
        self.plugin = plugin.name
        self._pages = pages
        self._plugin = plugin
        self._name = tool.name
        self._arguments = ArgumentReader(self.listing.name, tool.input_schema, limit=input_limit)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return the function that runs it in a tab; see `Tool.prepare`."""
        if call.recording is not None:
            call.recording.resolve(*self.shown_as)
        target, name, arguments = self.check(call.arguments, call.owner)
        checked = replace(call, arguments=arguments)
        return partial(self._pages.call, target, name, checked)

    def foresee(self, call: ToolCall) -> DocumentState | None:
        """Return the document in which a call would run now; None if that is not known."""
        return self._pages.foresee(self.check(call.arguments, call.owner)[0])

    def bind(self, call: ToolCall, tab_id: int) -> Callable[[], Awaitable[Any]]:
        """Return the function that runs a call in this tab, or not at all; see `prepare`."""
        return self.prepare(replace(call, arguments={**call.arguments, TAB_ID: tab_id}))

    @property
    def shown_as(self) -> tuple[str, str]:
        """Whose tool it is, and its name there, for records of calls."""
        return self._plugin.name, self._name

    def check(self, given: Mapping[str, Any], client: str | None) -> Checked:
        """Return where a call runs, and its arguments.

        Raises:
            CallError: The arguments break the tool's schema.
        """
        instances = self._plugin.instances
        place = TAB_ID
        try:
            tab_id, arguments = split_tab_id(given)
            place = INSTANCE
            name, arguments = split_instance(arguments, instances.names)
        except ValueError as error:
            violations = [(place, str(error))]
            raise failures.invalid_arguments(self.listing.name, violations) from None
        patterns = self._plugin.url_patterns
        if name is not None:
            patterns = tuple(map(url_pattern, instances.urls[name]))
        instance = None if name is None else Instance(name, instances)
        target = Target(self._plugin.name, patterns, tab_id, instance, client)
        return target, self._name, self._arguments.read(arguments)
