"""`opentabs demo`: run the whole chain with one command."""

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.options import Headed, Json
from opentabs_py.errors import OpenTabsError

if TYPE_CHECKING:
    from opentabs_py.core.trace.record import CallRecord

TOOL = "demo_export_messages"
ARGUMENTS = {"channelId": "general"}


def demo(headed: Headed = None, json_: Json = False) -> None:
    """Watch a tool export a chat from inside a web page, with live progress.

    Serves a small chat site, launches Chromium with the extension, loads the demo plugin and calls
    its tool through a real MCP client. Nothing is simulated.
    """
    from opentabs_py.cli.call_outcome import describe
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import write_json

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
        write_json({**document, "seconds": seconds, "error": describe(error)})
        code = CHAIN_FAILED
    raise typer.Exit(code)


async def _demo(*, headed: bool | None, as_json: bool) -> int:
    from opentabs_py.cli.call_over_mcp import CLIENT_MODULES, call_over_mcp
    from opentabs_py.cli.terminal import progress_bar, write_json
    from opentabs_py.config.settings import demo_settings
    from opentabs_py.core.trace.record import CallRecord
    from opentabs_py.demo import create_demo_site, demo_plugin_dir
    from opentabs_py.server.http.serve import serve_locally
    from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
    from opentabs_py.session.session import OpenTabs

    began = time.perf_counter()
    settings = demo_settings(headed=headed)
    records: list[CallRecord] = []
    with progress_bar("Starting Chromium", quiet=as_json) as bar:
        async with (
            serve_locally(create_demo_site()) as site,
            OpenTabs(
                plugins=[demo_plugin_dir()],
                settings=settings,
                while_launching=partial(load_sdk_soon, *CLIENT_MODULES),
            ) as tabs,
        ):
            bar.say("Opening the demo chat")
            await tabs.open(site)
            tabs.observe(records.append)
            bar.say("Calling the tool")
            outcome, _ = await call_over_mcp(tabs.mcp_url, TOOL, ARGUMENTS, bar.update)
            received = time.time()
            sent = received - outcome["seconds"]
    record = records[0].with_stamps({"client.sent": sent, "client.received": received})
    spans = record.waterfall().spans
    document: dict[str, Any] = {
        "ok": not outcome["isError"],
        "tool": TOOL,
        "progress": outcome["progress"],
        "result": outcome["structuredContent"],
        "hops": [{"hop": span.hop, "ms": round(span.seconds * 1000, 2)} for span in spans],
        "seconds": round(time.perf_counter() - began, 3),
    }
    if not document["ok"]:
        document["error"] = outcome["error"]
    if as_json:
        write_json(document)
    else:
        _show(document, outcome, record)
    return 0 if document["ok"] else CHAIN_FAILED


def _show(document: Mapping[str, Any], outcome: Mapping[str, Any], record: "CallRecord") -> None:
    from opentabs_py.cli.terminal import out
    from opentabs_py.tracing.waterfall import render

    for report in document["progress"]:
        done = f"{report['progress']:g}/{report['total']:g}" if report["total"] else ""
        text = escape(report["message"] or "")
        out.print(f"  [dim]{report['at']:5.2f} s[/]  [cyan]{done:>6}[/]  {text}")
    if not document["ok"]:
        out.print(escape(outcome["content"][0]["text"]))
        out.print(render(record, width=out.width))
        return
    result = document["result"]
    out.print(
        f"\n[bold green]✓[/] [bold]{TOOL}[/] returned {result['total']} messages. The last three:"
    )
    for message in result["messages"][-3:]:
        out.print(f"    [bold]{escape(message['author'])}[/] {escape(message['text'])}")
    out.print("\nWhere the time of the call went:")
    out.print(render(record, width=out.width))
    out.print(
        "[dim]The last hop includes a 20 ms pause, which keeps clients from losing progress, and "
        "the client's validation of the result.[/]"
    )
    out.print(f"\n[dim]{document['seconds']} s in total.[/]")
