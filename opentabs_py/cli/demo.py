"""`opentabs demo`: the whole chain at work, in one command."""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import typer
from rich.markup import escape

from opentabs_py.cli.codes import CHAIN_FAILED
from opentabs_py.cli.options import Headed, Json
from opentabs_py.errors import OpenTabsError

TOOL = "demo_export_messages"
ARGUMENTS = {"channelId": "general"}


def demo(headed: Headed = None, json_: Json = False) -> None:
    """Watch a tool inside a web page export a chat, with live progress.

    Serves a small chat site, launches Chromium with the extension, loads the demo plugin and
    calls its tool through a real MCP client: every hop is the real one.
    """
    from opentabs_py.cli.call import describe
    from opentabs_py.cli.run import run

    began = time.perf_counter()
    try:
        code = run(lambda: _demo(headed=headed, as_json=json_))
    except OpenTabsError as error:
        if not json_:
            raise
        seconds = round(time.perf_counter() - began, 3)
        document: dict[str, Any] = {
            "ok": False,
            "tool": TOOL,
            "progress": [],
            "result": None,
            "hops": [],
        }
        print(json.dumps({**document, "seconds": seconds, "error": describe(error)}))  # noqa: T201
        code = CHAIN_FAILED
    raise typer.Exit(code)


async def _demo(*, headed: bool | None, as_json: bool) -> int:
    from opentabs_py.cli.call import call_over_mcp
    from opentabs_py.cli.terminal import progress_bar
    from opentabs_py.config import demo_settings
    from opentabs_py.core.trace import waterfall
    from opentabs_py.demo import create_demo_site, demo_plugin_dir
    from opentabs_py.server.http import serve_http
    from opentabs_py.server.listen import bind
    from opentabs_py.session import OpenTabs

    began = time.perf_counter()
    settings = demo_settings(headed=headed)
    stamps: dict[str, float] = {}

    def keep(_name: str, traced: Mapping[str, float]) -> None:
        stamps.update(traced)

    listener = bind("127.0.0.1", 0)
    site = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    with progress_bar("Starting Chromium", quiet=as_json) as bar:
        async with (
            serve_http(create_demo_site(), listener),
            OpenTabs(plugins=[demo_plugin_dir()], settings=settings) as tabs,
        ):
            bar.say("Opening the demo chat")
            await tabs.open(site)
            tabs.toolbox.on_trace = keep
            bar.say("Calling the tool")
            outcome, _ = await call_over_mcp(tabs.mcp_url, TOOL, ARGUMENTS, bar.update)
            stamps["client.received"] = time.time() * 1000
            stamps["client.sent"] = stamps["client.received"] - outcome["seconds"] * 1000
    hops = [{"hop": span.hop, "ms": round(span.ms, 2)} for span in waterfall(stamps)]
    document = {
        "ok": not outcome["isError"],
        "tool": TOOL,
        "progress": outcome["progress"],
        "result": outcome["structuredContent"],
        "hops": hops,
        "seconds": round(time.perf_counter() - began, 3),
    }
    if not document["ok"]:
        document["error"] = outcome["error"]
    if as_json:
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
    else:
        _show(document, outcome)
    return 0 if document["ok"] else CHAIN_FAILED


def _show(document: Mapping[str, Any], outcome: Mapping[str, Any]) -> None:
    from rich.table import Table

    from opentabs_py.cli.terminal import out

    for report in document["progress"]:
        done = f"{report['progress']:g}/{report['total']:g}" if report["total"] else ""
        text = escape(report["message"] or "")
        out.print(f"  [dim]{report['at']:5.2f} s[/]  [cyan]{done:>6}[/]  {text}")
    if not document["ok"]:
        out.print(escape(outcome["content"][0]["text"]))
        return
    result = document["result"]
    out.print(f"\n[bold green]✓[/] [bold]{TOOL}[/] gave {result['total']} messages, at the end:")
    for message in result["messages"][-3:]:
        out.print(f"    [bold]{escape(message['author'])}[/] {escape(message['text'])}")
    longest = max((hop["ms"] for hop in document["hops"] if hop["hop"] != "tool"), default=1.0)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("hop")
    table.add_column("ms", justify="right")
    table.add_column("")
    for hop in document["hops"]:
        is_tool = hop["hop"] == "tool"
        width = 24 if is_tool else round(24 * hop["ms"] / max(longest, 0.01))
        bar = f"[{'magenta' if is_tool else 'cyan'}]{'━' * max(width, 1)}[/]"
        table.add_row(hop["hop"], f"{hop['ms']:.2f}", bar)
    out.print("\nWhere the time of the call went (the tool's own bar is cut):")
    out.print(table)
    out.print("[dim]Of the last hop, 20 ms are a pause that keeps clients from losing progress.[/]")
    out.print(f"\n[dim]{document['seconds']} s from command to end.[/]")
