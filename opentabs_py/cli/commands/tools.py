"""`opentabs tools`: list the available tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.fleet_options import WorkerSelection, how_to_use_no_fleet, named_by
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import (
    Fresh,
    Json,
    PluginOptions,
    ServerName,
    gather_settings,
    is_on_command_line,
    refuse_server,
)
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.calling.listing import Listing
    from opentabs_py.config.fleet import FleetOptions
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.consent import Standing
    from opentabs_py.plugins.plugin import Plugin
    from opentabs_py.session.session import OpenTabs


@dataclass(frozen=True)
class _Row:
    listing: "Listing"
    owned_by: Literal["plugin", "module"]

    def document(self) -> dict[str, Any]:
        each = self.listing
        return {
            "name": each.name,
            self.owned_by: each.owner,
            "title": each.title,
            "description": each.description,
            "inputSchema": each.input_schema,
            "outputSchema": each.output_schema,
        }


@grouped
def tools(
    ctx: typer.Context,
    plugins: PluginOptions,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS", help="Only tools that match any of these words, the best first."
        ),
    ] = None,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost",
            help="Show about how many tokens each tool costs a model that reads the list (usually "
            "within 10 %), and how to save some.",
        ),
    ] = False,
    server: ServerName = None,
    fresh: Fresh = False,
    json_: Json = False,
    *,
    fleet: WorkerSelection,
) -> None:
    """List the available tools as MCP clients see them. Does not start a browser.

    Lists the tools of the running server, if there is one (`opentabs start`), unless you pass
    --plugin, --plugins, --tools or --set, or the current directory is a plugin. In the directory of
    a plugin, --server NAME lists the tools of that server.

    With --nats, lists the tools of a fleet's workers.
    """
    from opentabs_py.plugins.load import is_plugin

    named = {
        "--plugin": plugins.plugin,
        "--plugins": plugins.plugins,
        "--tools": plugins.tools_,
        "--set": plugins.set_,
    }
    nats = fleet.fleet_options()
    refuse_server(ctx, {"--fresh": fresh, named_by(ctx): nats, **named})
    if nats and (fresh or plugins.is_given):
        raise ConfigError(
            f"With {named_by(ctx)}, the tools are those of the workers. Leave out --fresh and the "
            f"options that name plugins or tools, or {how_to_use_no_fleet(ctx)}."
        )
    is_here = is_plugin(Path()) and not is_on_command_line(ctx, "server")
    rows: list[_Row] | None = None
    if nats:
        rows = _of_fleet(nats)
    elif not (fresh or plugins.is_given or is_here):
        rows = _of_server(server)
    is_broken = False
    if rows is None:
        rows, is_broken = _configured(plugins)
    rows.sort(key=lambda row: row.listing.name)
    nothing = (
        "No tools. Pass the directory of a built plugin (--plugin DIR), or the file of Python "
        "tools (--tools FILE)."
    )
    if search is not None:
        rows = _matching(rows, search)
        nothing = "No tool matches. Try other words, or leave out --search."
    _show(rows, cost=cost, as_json=json_, nothing=nothing)
    raise typer.Exit(CHAIN_FAILED if is_broken else 0)


def _configured(plugins: PluginOptions) -> tuple[list[_Row], bool]:
    """Return the tools of the settings, and whether all of their plugins are broken."""
    from opentabs_py.cli.plugin_warnings import print_skipped
    from opentabs_py.plugins.folders import load_configured
    from opentabs_py.plugins.load import refuse_unknown_plugins

    settings = gather_settings(plugins)
    loaded, skipped = load_configured(settings)
    refuse_unknown_plugins(settings.plugin_settings, loaded, skipped)
    print_skipped(skipped)
    standings = _standings(loaded, settings)
    _warn_of_off(standings)
    in_pages = [*_of_plugins(loaded), *_of_hands(settings)]
    of_python = _of_python(plugins.load_tools())
    about_tabs = _about_tabs()
    _refuse_namesakes([*in_pages, *about_tabs, *of_python])
    work_in_pages = in_pages or settings.webmcp
    rows = [*in_pages, *(about_tabs if work_in_pages else ()), *of_python]
    return _turned_on(rows, settings, standings), bool(skipped and not loaded)


def _show(rows: Sequence[_Row], *, cost: bool, as_json: bool, nothing: str) -> None:
    """Print tools, or what they cost; if there are none, print `nothing` to stderr."""
    from opentabs_py.cli.costs import write_costs
    from opentabs_py.cli.terminal import err, write_json

    if cost and (rows or as_json):
        write_costs([row.listing for row in rows], as_json=as_json)
    elif as_json:
        write_json([row.document() for row in rows])
    elif rows:
        _print([row.listing for row in rows])
    else:
        err.print(nothing)


def _print(listings: "Sequence[Listing]") -> None:
    from opentabs_py.cli.terminal import new_table, out
    from opentabs_py.core.page_arguments import TAB_ID

    table = new_table("tool", "arguments", "what it does")
    for each in listings:
        schema = each.input_schema
        required = schema.get("required", [])
        hidden = TAB_ID if each.needs_tab else None  # as all tools of plugins have it
        names = [name for name in schema.get("properties", {}) if name != hidden]
        arguments = ", ".join(name if name in required else f"{name}?" for name in names)
        what = each.summary or each.description.partition("\n")[0]
        table.add_row(f"[cyan]{each.name}[/]", escape(arguments), escape(what))
    out.print(table)


def _refuse_namesakes(rows: Sequence[_Row]) -> None:
    """Refuse tools that a server would not serve together.

    Raises:
        ConfigError: Two have the same name.
    """
    from opentabs_py.core.plugin_names import same_name

    owners: dict[str, str] = {}
    for row in rows:
        name, owner = row.listing.name, row.listing.owner
        if name in owners:
            raise same_name(name, f"one from {owners[name]}, one from {owner}")
        owners[name] = owner


def _matching(rows: Sequence[_Row], query: str) -> list[_Row]:
    from opentabs_py.server.tools.search import ToolSearch

    by_name = {row.listing.name: row for row in rows}
    return [by_name[each.name] for each in ToolSearch(row.listing for row in rows).find(query)]


def _of_server(name: str | None) -> list[_Row] | None:
    """Return the tools of a running server, and warn about what it skipped.

    Returns:
        None if no server is named and the default one is not running.
    """
    from opentabs_py.calling.listing import Listing
    from opentabs_py.cli.plugin_warnings import warn_of_server
    from opentabs_py.daemon.local_client import LocalClient
    from opentabs_py.daemon.state import find_state

    state = find_state(name)
    if state is None:
        return None
    client = LocalClient(state)
    warn_of_server(client.status())
    return [
        _Row(Listing(**each["listing"]), "plugin" if each["isOfPlugin"] else "module")
        for each in client.tools()
    ]


def _of_fleet(nats: "FleetOptions") -> list[_Row]:
    """Return the tools of a fleet's workers.

    Raises:
        FleetError: NATS cannot be reached, or refuses the connection.
        ChainError: No worker takes calls.
    """
    from opentabs_py.cli.run import run
    from opentabs_py.session.session import OpenTabs

    rows: list[_Row] = []

    async def read() -> int:
        async with OpenTabs(nats=nats, settings=gather_settings().for_own_use()) as tabs:
            if (why := tabs.internals.fleet.why_empty()) is not None:
                raise why
            rows.extend(_of_session(tabs))
        return 0

    if code := run(read):
        raise typer.Exit(code)
    return rows


def _of_session(tabs: "OpenTabs") -> list[_Row]:
    status = tabs.internals.registry.status
    return [_Row(each, "module" if status(each.owner) is None else "plugin") for each in tabs.tools]


def _standings(plugins: Sequence["Plugin"], settings: "Settings") -> "Mapping[str, Standing]":
    from opentabs_py.config.paths import data_dir
    from opentabs_py.consent.reviews import Reviews
    from opentabs_py.session.plugins.standings import find_standings

    return find_standings(plugins, settings, Reviews(data_dir() / "reviews"))


def _warn_of_off(standings: "Mapping[str, Standing]") -> None:
    """Warn about the plugins that are off until they are reviewed."""
    from opentabs_py.cli.terminal import warn
    from opentabs_py.session.plugins.standings import why_off

    for name, standing in standings.items():
        if (why := why_off(name, standing)) is not None:
            warn(why)


def _turned_on(
    rows: Sequence[_Row], settings: "Settings", standings: "Mapping[str, Standing]"
) -> list[_Row]:
    """Return the tools that are not off, and warn about permissions that name none."""
    from opentabs_py.cli.terminal import warn
    from opentabs_py.core.consent import decide, report_unknown

    tools = [row.listing.gated(standings.get(row.listing.owner, "named")) for row in rows]
    for text in report_unknown(settings.permissions, tools):
        warn(text)
    return [
        row
        for row, tool in zip(rows, tools, strict=True)
        if decide(settings.permissions, tool).permission != "off"
    ]


def _of_plugins(plugins: Sequence[Any]) -> list[_Row]:
    from opentabs_py.calling.plugin_listing import plugin_tool_listing

    return [
        _Row(plugin_tool_listing(plugin.manifest, tool), "plugin")
        for plugin in plugins
        for tool in plugin.manifest.tools
    ]


def _about_tabs() -> list[_Row]:
    from opentabs_py.server.tools.tab_tools import CLOSE, LIST, OPEN

    return [_Row(each, "module") for each in (LIST, OPEN, CLOSE)]


def _of_hands(settings: "Settings") -> list[_Row]:
    if not settings.hands:
        return []
    from opentabs_py.bridge.pages import Pages
    from opentabs_py.calling.clock import AlarmClock
    from opentabs_py.session.tools.hands import create_hands

    clock = AlarmClock()
    _, tools = create_hands((), Pages((), clock=clock), settings, clock, None, ())
    return [_Row(tool.listing, "module") for tool in tools]


def _of_python(given: Sequence[Any]) -> list[_Row]:
    if not given:
        return []
    from opentabs_py.calling.clock import AlarmClock
    from opentabs_py.python_tools.collection import PythonTools
    from opentabs_py.python_tools.run import ToolHost

    tools = PythonTools(given, ToolHost(AlarmClock())).tools
    return [_Row(tool.listing, "module") for tool in tools]
