"""`opentabs tools`: list the available tools."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import typer
from rich.markup import escape

from opentabs_py.cli.codes import CHAIN_FAILED
from opentabs_py.cli.options import (
    Json,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    ToolSources,
    gather_settings,
    gather_tools,
)


@dataclass(frozen=True)
class _Row:
    document: dict[str, Any]
    what: str


def tools(
    plugin: PluginDirs = None,
    plugins: PluginFolders = None,
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    json_: Json = False,
) -> None:
    """List the available tools as MCP clients see them. Does not start a browser."""
    from rich.table import Table

    from opentabs_py.cli.terminal import err, out, print_quarantined, write_json
    from opentabs_py.core.page_arguments import TAB_ID
    from opentabs_py.plugins.folders import Sources
    from opentabs_py.plugins.load import load_plugins, refuse_unknown_plugins

    settings = gather_settings(plugin, plugins, set_)
    sources = Sources(settings.plugins, settings.plugin_folders)
    loaded, quarantined = load_plugins(sources.plugins(), settings.settings)
    refuse_unknown_plugins(settings.settings, loaded, quarantined)
    print_quarantined(quarantined)
    rows = [*_of_pages(loaded), *_of_python(gather_tools(tools_))]
    rows.sort(key=lambda row: row.document["name"])
    if json_:
        write_json([row.document for row in rows])
    elif rows:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("tool", "arguments", "what it does"):
            table.add_column(column, overflow="fold")
        for row in rows:
            schema = row.document["inputSchema"]
            required = schema.get("required", [])
            names = [name for name in schema.get("properties", {}) if name != TAB_ID]
            arguments = ", ".join(name if name in required else f"{name}?" for name in names)
            table.add_row(f"[cyan]{row.document['name']}[/]", escape(arguments), escape(row.what))
        out.print(table)
    else:
        err.print("No tools. Pass the directory of a built plugin: opentabs tools --plugin DIR")
    raise typer.Exit(CHAIN_FAILED if quarantined and not loaded else 0)


def _of_pages(plugins: Sequence[Any]) -> list[_Row]:
    from opentabs_py.core.manifest import mcp_name
    from opentabs_py.core.page_arguments import listed_schema

    return [
        _Row(
            {
                "name": mcp_name(plugin.manifest.name, tool.name),
                "plugin": plugin.manifest.name,
                "title": tool.display_name,
                "description": tool.description,
                "inputSchema": listed_schema(tool.input_schema, plugin.manifest.instances.names),
                "outputSchema": tool.output_schema,
            },
            tool.summary or tool.description,
        )
        for plugin in plugins
        for tool in plugin.manifest.tools
    ]


def _of_python(given: Sequence[Any]) -> list[_Row]:
    if not given:
        return []
    from opentabs_py.calling.clock import AlarmClock
    from opentabs_py.python_tools.collection import PythonTools
    from opentabs_py.python_tools.run import ToolHost

    listings = [tool.listing for tool in PythonTools(given, ToolHost(AlarmClock())).tools]
    return [
        _Row(
            {
                "name": each.name,
                "module": each.owner,
                "title": each.title,
                "description": each.description,
                "inputSchema": each.input_schema,
                "outputSchema": each.output_schema,
            },
            each.description.partition("\n")[0],
        )
        for each in listings
    ]
