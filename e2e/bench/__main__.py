"""`make bench`: how fast the chain is on one warm Chromium, compared with a floor.

This is not a test: no duration fails it, only a lost, duplicated or reordered report.

Each round runs every workload once, so that a noisy minute affects all of them alike. A workload
returns one number per round (a median, if it repeats something); the table shows the median, the
minimum and the maximum of these numbers.

The MCP client, the server and this program share one process and one event loop, both for our
server and for the bare one that it is compared with. The other hops are compared with a prototype
(`floor/`), whose server runs in this process too, with its own browser: the two run a workload in
turn, and the browser that is not measured idles.
"""

import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Annotated

import anyio
import typer

from e2e.bench import browsers, hands, hop1, many, people, webmcp
from e2e.bench.page import serve_site
from e2e.bench.starts import builds, cold_start, ends, kit_runs
from e2e.bench.table import Measurement, rounds_shown, show, to_document
from e2e.bench.warm import AT_ONCE, BIG, ECHOES, FLOOD, LONG_FLOOD, warm_bench
from e2e.bench.webmcp import webmcp_bench
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.config.settings import load_settings

UVLOOP = {"use_uvloop": sys.platform != "win32"}

MEASUREMENTS = {
    "first_result": Measurement(
        "fresh process to first result", "s", beside="first_floor", at_most=1.5
    ),
    "command": Measurement("`opentabs call`, from command to end", "s"),
    "ping": Measurement("ping to the service worker and back", "ms", "0.37–0.55"),
    "echo": Measurement(
        f"echo, server to page and back, p50 of {ECHOES}", "ms", beside="echo_floor", at_most=1.4
    ),
    "echo_over_ping": Measurement("  of which hops 3–5 and our own work", "ms"),
    "mcp": Measurement("echo at an MCP client over HTTP, p50", "ms", beside="mcp_floor"),
    "mcp_above": Measurement(
        "  above a Python tool on the same server", "ms", beside="mcp_above_floor", at_most=1.5
    ),
    "legacy": Measurement("echo at an initialize-era client, p50", "ms", beside="legacy_floor"),
    "legacy_above": Measurement(
        "  above a Python tool on the same server",
        "ms",
        beside="legacy_above_floor",
        at_most=1.5,
    ),
    **hop1.MEASUREMENTS,
    "cancel": Measurement("a client's cancellation to the page's signal", "ms", at_most=100),
    "legacy_cancel": Measurement("  of an initialize-era client", "ms", at_most=100),
    "one_at_once": Measurement("calls, one at a time", "/s", beside="one_floor", at_least=350),
    "many_at_once": Measurement(
        f"calls, {AT_ONCE} at once", "/s", beside="many_floor", at_least=700
    ),
    "flood": Measurement(
        f"{FLOOD:,} reports in a loop, all there, in order",
        "/s",
        beside="flood_floor",
        at_least=5e4,
    ),
    "long_flood": Measurement(f"{LONG_FLOOD:,} reports in a loop, all there, in order", "/s"),
    "other_tab": Measurement("worst call in another tab during a flood", "ms", at_most=50),
    "same_tab": Measurement("worst call in the same tab during a flood", "ms"),
    "report": Measurement(
        "one report, page to server, p50", "ms", beside="report_floor", at_most=1.5
    ),
    "big": Measurement(f"{BIG >> 20} MiB result", "MiB/s", beside="big_floor", at_least=20),
    **webmcp.MEASUREMENTS,
    **hands.MEASUREMENTS,
    **many.MEASUREMENTS,
    **browsers.MEASUREMENTS,
    **people.MEASUREMENTS,
    "build": Measurement("`opentabs build` of a new plugin", "s"),
    "rebuild": Measurement("build --watch, from saved to built", "ms", at_most=300),
    "end_by_signal": Measurement(
        "a server with a browser, from SIGTERM to its end", "s", at_most=2
    ),
    "end_by_stdin": Measurement("over stdio, from the end of stdin to its end", "s", at_most=1),
    "kit_first": Measurement("test kit, from `pytest` to the first result", "s", at_most=3),
    "kit_further": Measurement(
        "test kit, what each further test costs", "ms", beside="page_floor", at_most=100
    ),
    "kit_replayed": Measurement(
        "test kit, a test that replays a recording; floor: page.route", "ms", beside="kit_routed"
    ),
}


async def measure(  # noqa: C901 (a loop for each kind of workload)
    rounds: int, done: Callable[[str], None]
) -> dict[str, list[float]]:
    """Run all workloads in every round; `done` is called after each."""
    numbers: defaultdict[str, list[float]] = defaultdict(list)

    async def do(what: str, workload: Callable[[], Awaitable[dict[str, float]]]) -> None:
        for name, number in (await workload()).items():
            numbers[name].append(number)
        done(what)

    chromium = configured_chromium(load_settings())
    async with serve_site() as url:
        for _ in range(rounds):
            await do("cold start", lambda: cold_start(chromium, url))
            await do("ends", ends)
        async with hop1.connect_all() as clients:
            for _ in range(rounds):
                await do("hop 1", clients.measure)
        async with warm_bench(chromium, url) as bench:
            for _ in range(rounds):
                await do("round trips", bench.ping_and_echo)
                await do("MCP", bench.mcp)
                await do("cancellations", bench.cancellations)
                await do("calls at once", bench.many_at_once)
                await do("floods", bench.floods)
                await do("lone reports", bench.lone_reports)
                await do("big results", bench.big)
        async with webmcp_bench(chromium, url) as pages_own:
            for _ in range(rounds):
                await do("WebMCP", pages_own.measure)
        async with hands.hands_bench(chromium) as any_page:
            for _ in range(rounds):
                await do("snapshots", any_page.measure)
        async with many.plugin_folders() as folders:
            for _ in range(rounds):
                await do("many plugins", lambda: many.many_plugins(folders))
                await do("Python tools", lambda: many.python_tools(folders))
            async with many.many_sessions(url, folders) as sessions:
                for _ in range(rounds):
                    await do("echoes", sessions.measure)
            async with people.people(url, folders) as watched:
                for _ in range(rounds):
                    await do("console", watched.first_paint)
                    await do("audit", watched.echoes)
        async with browsers.running_server(url) as environment:
            for _ in range(rounds):
                await do("commands", lambda: browsers.commands(environment))
                await do("attach", lambda: browsers.attach(url))
        async with browsers.fleet(url) as fleet:
            for _ in range(rounds):
                await do("browsers", fleet.measure)
        for _ in range(rounds):
            await do("builds", builds)
            await do("test kit", lambda: kit_runs(chromium))
    return numbers


STEPS = 22  # of a round, in `measure`


def main(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often to run each workload.")] = 3,
) -> None:
    """Measure the chain; takes some minutes."""
    with tempfile.TemporaryDirectory() as data, rounds_shown(rounds * STEPS) as done:
        os.environ["XDG_DATA_HOME"] = data  # the calls are not the user's, whose audit is elsewhere
        numbers = anyio.run(measure, rounds, done, backend_options=UVLOOP)
    if json_:
        print(json.dumps(to_document(MEASUREMENTS, numbers), indent=1, ensure_ascii=False))
    else:
        show(MEASUREMENTS, numbers)


if __name__ == "__main__":
    typer.run(main)
