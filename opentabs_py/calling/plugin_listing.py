"""The entry of a plugin's tool in the tool list."""

from opentabs_py.calling.listing import Listing
from opentabs_py.core.page_arguments import listed_schema
from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest


def plugin_tool_listing(plugin: PluginManifest, tool: ManifestTool) -> Listing:
    """Return the public description of a plugin's tool."""
    return Listing(
        name=mcp_name(plugin.name, tool.name),
        owner=plugin.name,
        title=tool.display_name,
        description=tool.description,
        input_schema=listed_schema(tool.input_schema, plugin.instances.names),
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        summary=tool.summary or "",
        group=tool.group or "",
        icon=tool.icon,
        needs_tab=True,
    )
