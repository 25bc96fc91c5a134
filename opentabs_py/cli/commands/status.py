"""`opentabs status`: which servers are running, and what they are doing."""

import time
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.options import Json
from opentabs_py.cli.server_texts import fleet_text, uptime
from opentabs_py.core.text import quantity
from opentabs_py.errors import ChainError

# Of a server's state file; the rest are secrets, or what only programs need.
SHOWN = ("name", "pid", "version", "started", "directory", "log")
STATUS = {
    "ready": "[green]ready[/]",
    "unavailable": "[yellow]not ready[/]",
    "closed": "[dim]no tab open[/]",
    "off": "[yellow]not reviewed[/]",
}


def status(
    name: Annotated[
        str | None,
        typer.Option(
            "--server", "--name", metavar="NAME", help="Only this server.  \\[default: all]"
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Show the running servers: their plugins, tabs and calls.

    Exit codes: 0 a server is running; 3 none is, or one does not answer.
    """
    from opentabs_py.cli.terminal import err, write_json
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon.state import how_to_start, is_claimed, recorded_names

    if name is None:
        names = recorded_names()
    else:
        names = [name] if is_claimed(check_name(name, "server name")) else []
    reports = [_report(each) for each in names]
    if json_:
        write_json(reports)
    elif not reports:
        none = "No server is running. Start one: opentabs start"
        err.print(none if name is None else how_to_start(name), soft_wrap=True)
    for report in reports if not json_ else ():
        _print(report)
    bad = not reports or any(report["error"] is not None for report in reports)
    raise typer.Exit(CHAIN_FAILED if bad else 0)


def _report(name: str) -> dict[str, Any]:
    """Return what a server says of itself, without its tokens."""
    from opentabs_py.daemon.local_client import LocalClient
    from opentabs_py.daemon.state import find_holder, read_state, why_unknown

    state = read_state(name)
    if state is None:
        unknown = dict.fromkeys((*SHOWN, "mcpUrl"))
        return {**unknown, "name": name, "pid": find_holder(name), "error": why_unknown(name)}
    known = {each: getattr(state, each) for each in SHOWN}
    try:
        status: dict[str, Any] = LocalClient(state).status()
    except ChainError as error:
        return {**known, "mcpUrl": state.mcp_url, "error": str(error)}
    return {**known, **status, "error": None}


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table

    from opentabs_py.cli.terminal import out

    if report["error"] is not None:
        out.print(f"[red]●[/] [bold]{report['name']}[/]: {escape(report['error'])}")
        return
    seconds = report.get("uptime", time.time() - report["started"])  # earlier versions have none
    up = uptime(seconds)
    connected = [each["name"] for each in report["browsers"] if each["connected"]]
    fleet = report["fleet"]
    if fleet is None:
        browser = _browsers(connected, of=len(report["browsers"]))
    else:
        browser = fleet_text(fleet)
    calls = f"{quantity(report['calls'], 'call')} running"
    out.print(f"[green]●[/] [bold]{report['name']}[/]  up {up}, {browser}, {calls}", soft_wrap=True)
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", min_width=8)
    rows.add_column(overflow="fold")
    rows.add_row("  pid", f"{report['pid']}, version {report['version']}")
    rows.add_row("  MCP", report["mcpUrl"])
    rows.add_row("  log", report["log"] or "standard error")
    rows.add_row("  tools", str(report["tools"]))
    for index, plugin in enumerate(report["plugins"]):
        state = STATUS.get(plugin["status"], plugin["status"])  # later versions may have more
        text = f"[cyan]{escape(plugin['name'])}[/] {escape(plugin['version'])}  {state}"
        rows.add_row(
            "  plugins" if index == 0 else "", f"{text}, {quantity(plugin['tools'], 'tool')}"
        )
    for index, worker in enumerate([] if fleet is None else fleet["workers"]):
        ready = ", ".join(f"{name} {count}" for name, count in worker["ready"].items())
        text = f"{escape(worker['name'])}  [dim]ready tabs: {escape(ready) or 'none needed'}[/]"
        rows.add_row("  workers" if index == 0 else "", text)
    for index, tab in enumerate(report["tabs"]):
        text = f"{escape(tab['title'] or '(no title)')}  [dim]{escape(tab['url'])}[/]"
        rows.add_row("  tabs" if index == 0 else "", text)
    for action in filter(None, (browser["userAction"] for browser in report["browsers"])):
        rows.add_row("  [yellow]waits[/]", escape(action))
    for reason in report["skipped"]:
        rows.add_row("  [yellow]skipped[/]", escape(reason))
    for warning in report.get("warnings", ()):  # earlier versions have none
        rows.add_row("  [yellow]warning[/]", escape(warning))
    out.print(rows)


def _browsers(connected: Sequence[str], *, of: int) -> str:
    if not connected:
        return "no browser is connected"
    return "browser connected" if of == 1 else f"connected: {', '.join(connected)}"
