"""Tools of plugins: check a call, and say which pages can take it."""

from collections.abc import Mapping
from typing import Any

from opentabs_py.bridge.in_page_tool import Checked, InPageTool
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.plugin_listing import plugin_tool_listing
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.page_arguments import split_instance, split_tab_id
from opentabs_py.core.plugin_names import qualified_names
from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest
from opentabs_py.core.plugins.settings import url_pattern
from opentabs_py.core.sites.instances import Instance
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import Target


class PluginTool(InPageTool):
    """A tool of a plugin, ready to be called.

    Args:
        pages: Where its calls run.
        plugin: The plugin it belongs to.
        tool: The plugin's description of it.
        message_limit: The longest input, in characters of JSON.
    """

    def __init__(
        self, pages: Pages, plugin: PluginManifest, tool: ManifestTool, *, message_limit: int
    ) -> None:
        super().__init__(pages)
        self.listing = plugin_tool_listing(plugin, tool)
        self.other_names = qualified_names(plugin.name, tool.name)
        self.plugin = plugin.name
        self._plugin = plugin
        self._name = tool.name
        self._arguments = ArgumentReader(
            self.listing.name, tool.input_schema, limit=message_limit, in_page=True
        )

    @property
    def shown_as(self) -> tuple[str, str]:
        """Whose tool it is, and its name there, for records of calls."""
        return self._plugin.name, self._name

    def check(self, given: Mapping[str, Any], client: SessionKey | None) -> Checked:
        """Return where a call runs, and its arguments.

        Raises:
            CallError: The arguments break the tool's schema.
        """
        instances = self._plugin.instances
        tab_id, arguments = split_tab_id(self.listing.name, given)
        name, arguments = split_instance(self.listing.name, arguments, instances.names)
        patterns = self._plugin.url_patterns
        if name is not None:
            patterns = tuple(map(url_pattern, instances.urls[name]))
        instance = None if name is None else Instance(name, instances)
        target = Target(self._plugin.name, patterns, tab_id, instance, client)
        return target, self._name, self._arguments.read(arguments)
