"""`opentabs tools`: what can be called."""

import json

import typer
from rich.markup import escape

from opentabs_py.cli.codes import CHAIN_FAILED
from opentabs_py.cli.options import Json, PluginDirs, PluginSettings, gather_settings


def tools(plugin: PluginDirs = None, set_: PluginSettings = None, json_: Json = False) -> None:
    """List the tools of the plugins, as MCP clients see them. Starts no browser."""
    from rich.table import Table

    from opentabs_py.cli.terminal import err, out, tell_quarantined
    from opentabs_py.core.plugins import input_schema_with_tab, mcp_name
    from opentabs_py.plugins.load import load_plugins, refuse_unknown_plugins

    settings = gather_settings(plugin, set_)
    plugins, quarantined = load_plugins(settings.plugins, settings.settings)
    refuse_unknown_plugins(settings.settings, plugins, quarantined)
    tell_quarantined(quarantined)
    listed = sorted(
        (
            (mcp_name(p.manifest.name, tool.name), p.manifest.name, tool)
            for p in plugins
            for tool in p.manifest.tools
        ),
        key=lambda row: row[0],
    )
    if json_:
        document = [
            {
                "name": name,
                "plugin": owner,
                "title": tool.display_name,
                "description": tool.description,
                "inputSchema": input_schema_with_tab(tool),
                "outputSchema": tool.output_schema,
            }
            for name, owner, tool in listed
        ]
        typer.echo(json.dumps(document, ensure_ascii=False))
    elif listed:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("tool", "arguments", "what it does"):
            table.add_column(column, overflow="fold")
        for name, _, tool in listed:
            required = tool.input_schema.get("required", [])
            properties = tool.input_schema.get("properties", {})
            assert isinstance(required, list)
            assert isinstance(properties, dict)
            arguments = ", ".join(p if p in required else f"{p}?" for p in properties)
            what = escape(tool.summary or tool.description)
            table.add_row(f"[cyan]{name}[/]", escape(arguments), what)
        out.print(table)
    else:
        err.print("No tools. Name a built plugin's directory: opentabs tools --plugin DIR")
    raise typer.Exit(CHAIN_FAILED if quarantined and not plugins else 0)
