"""`make bench`: how fast the chain is, on one warm Chromium, beside what was found possible.

Not a test: no time fails it. Only a lost, doubled or misplaced progress report does.

Every round does every work once, so that a noisy minute hits all of them alike. A work gives
one number per round, its median where it repeats something; the table shows the median of
these numbers, and the lowest and highest.

MCP client, server and this program share one process and one event loop. That makes the times
at a client higher than a client of its own would see them, for our server and for the bare one
that it is compared with alike. The server of the prototype (`bench_floor`) that the other hops are
compared with is in it too, but has a browser of its own: the two do a work one after the other or
in turns, and the browser whose turn it is not idles.
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import mcp_types as types
import typer
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client import Client
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from playwright.async_api import Page
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from e2e import bench_hop1
from e2e.bench_floor.prototype import Floor, fresh_page_ms, warm_floor
from e2e.bench_table import Work, show, to_document
from e2e.kit.runs import run_kit
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.launch import compile_cache
from opentabs_py.config import load_settings
from opentabs_py.connection import Socket
from opentabs_py.core.progress import ProgressReport
from opentabs_py.plugins.scaffold import scaffold
from opentabs_py.server.endpoints import run_endpoints
from opentabs_py.server.http import create_app, serve_http
from opentabs_py.server.listen import bind
from opentabs_py.server.mcp import to_result
from opentabs_py.session import OpenTabs

PROBE = Path(__file__).parent / "plugins" / "probe"
UVLOOP = {"use_uvloop": sys.platform != "win32"}

PINGS = 200
ECHOES, IN_A_ROW = 500, 100
MCP_CALLS = 100
AT_ONCE, CALLS_EACH = 32, 20
FLOOD, LONG_FLOOD = 10_000, 30_000
FLOODS = 3
LONE_REPORTS, REPORTS_IN_A_ROW = 100, 25
GAP = 5  # ms between two, so that each finds the hops idle
CANCELLATIONS = 15
REBUILDS = 9
BIG = 32 * 1024 * 1024  # characters, of which one in sixteen takes two bytes


WORKS = {
    "first_result": Work("fresh process to first result", "s", beside="first_floor", at_most=1.5),
    "command": Work("`opentabs call`, from command to end", "s"),
    "ping": Work("ping to the service worker and back", "ms", "0.37–0.55"),
    "echo": Work(
        f"echo, server to page and back, p50 of {ECHOES}", "ms", beside="echo_floor", at_most=1.4
    ),
    "echo_over_ping": Work("  of which hops 3–5 and our own work", "ms"),
    "mcp": Work("echo at an MCP client over HTTP, p50", "ms", beside="mcp_floor"),
    "mcp_above": Work(
        "  above a Python tool on the same server", "ms", beside="mcp_above_floor", at_most=1.5
    ),
    "legacy": Work("echo at an initialize-era client, p50", "ms", beside="legacy_floor"),
    "legacy_above": Work(
        "  above a Python tool on the same server",
        "ms",
        beside="legacy_above_floor",
        at_most=1.5,
    ),
    **bench_hop1.WORKS,
    "cancel": Work("a client's cancellation to the page's signal", "ms", at_most=100),
    "legacy_cancel": Work("  of an initialize-era client", "ms", at_most=100),
    "one_at_once": Work("calls, one at a time", "/s", beside="one_floor", at_least=350),
    "many_at_once": Work(f"calls, {AT_ONCE} at once", "/s", beside="many_floor", at_least=700),
    "flood": Work(
        f"{FLOOD:,} reports in a loop, all there, in order",
        "/s",
        beside="flood_floor",
        at_least=5e4,
    ),
    "long_flood": Work(f"{LONG_FLOOD:,} reports in a loop, all there, in order", "/s"),
    "other_tab": Work("worst call in another tab during a flood", "ms", at_most=50),
    "same_tab": Work("worst call in the same tab during a flood", "ms"),
    "report": Work("one report, page to server, p50", "ms", beside="report_floor", at_most=1.5),
    "big": Work(f"{BIG >> 20} MiB result", "MiB/s", beside="big_floor", at_least=20),
    "build": Work("`opentabs build` of a new plugin", "s"),
    "rebuild": Work("build --watch, from saved to built", "ms", at_most=300),
    "kit_first": Work("test kit, from `pytest` to the first result", "s", at_most=3),
    "kit_further": Work(
        "test kit, what each further test costs", "ms", beside="page_floor", at_most=100
    ),
}
COLD = ("first_result", "command")

# --- the browser's side --------------------------------------------------------------------

# A plugin of the bench's own, for what the probe does not do: it says what time it is.
PACKAGE = {
    "name": "opentabs-plugin-clock",
    "version": "1.0.0",
    "opentabs": {
        "displayName": "Clock",
        "description": "Reports the page's time",
        "urlPatterns": ["http://127.0.0.1/*"],
    },
}
TOOLS = [
    {
        "name": "report",
        "displayName": "Report",
        "description": "Report the page's time, again and again",
        "icon": "clock",
        "input_schema": {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "gap": {"type": "integer"}},
            "required": ["count", "gap"],
        },
        "output_schema": {},
    },
    {
        "name": "hang",
        "displayName": "Hang",
        "description": "Report, and note when the signal fires",
        "icon": "clock",
        "input_schema": {"type": "object", "properties": {}},
        "output_schema": {},
    },
]
ADAPTER = """
(() => {
  const report = async ({ count, gap }, context) => {
    for (let i = 0; i < count; i++) {
      await new Promise((resolve) => setTimeout(resolve, gap));
      context.reportProgress({ message: String(performance.now()) });
    }
  };
  const hang = async (_params, context) => {
    globalThis.abortedAt = undefined;
    const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    context.reportProgress({});
    await aborted;
    globalThis.abortedAt = performance.now();
  };
  const tools = [{ name: "report", handle: report }, { name: "hang", handle: hang }];
  globalThis.__openTabs.adapters.clock = { tools, isReady: async () => true };
})();
"""

# When `performance.now()` was zero, on the machine's clock in ms. The two clocks are compared
# at the moments when the coarse one ticks, for then it is exact.
ORIGIN = """
() => {
  const origins = [];
  for (let last = Date.now(); origins.length < 40; ) {
    const wall = Date.now();
    if (wall !== last) {
      origins.push(wall - performance.now());
      last = wall;
    }
  }
  return origins.sort((a, b) => a - b)[origins.length / 2];
}
"""


def write_clock_plugin(directory: Path) -> Path:
    dist = directory / "dist"
    dist.mkdir()
    (directory / "package.json").write_text(json.dumps(PACKAGE))
    (dist / "tools.json").write_text(json.dumps(TOOLS))
    (dist / "adapter.iife.js").write_text(ADAPTER)
    return directory


@asynccontextmanager
async def serve_site() -> AsyncGenerator[str]:
    """The address of a page on which nothing happens."""

    async def page(_request: Request) -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>bench</title><body>a page")

    listener = bind("127.0.0.1", 0)
    async with serve_http(Starlette(routes=[Route("/", page)]), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


# --- what is measured ----------------------------------------------------------------------


@dataclass(slots=True)
class PongTap:
    """The connection's socket, but it notes when a pong came."""

    socket: Socket
    came: float = 0.0
    event: anyio.Event = field(default_factory=anyio.Event)

    async def receive_text(self) -> str:
        frame = await self.socket.receive_text()
        if '"method":"pong"' in frame[:64]:
            self.came = time.perf_counter()
            self.event.set()
        return frame

    async def send_text(self, data: str) -> None:
        await self.socket.send_text(data)

    async def close(self, code: int, reason: str) -> None:
        await self.socket.close(code, reason)


@dataclass(slots=True)
class Reports:
    """The reports of one call, as they come."""

    taken: list[ProgressReport] = field(default_factory=list[ProgressReport])
    last_came: float = 0.0

    def take(self, reports: Sequence[ProgressReport]) -> None:
        self.last_came = time.perf_counter()
        self.taken.extend(reports)


@dataclass(slots=True)
class Bench:
    """Everything warm, and one method for each work: it gives the work's numbers of a round."""

    tabs: OpenTabs
    tab: int
    other_tab: int
    page: Page
    tap: PongTap
    clients: dict[str, tuple[Client, Client]]  # era: (ours, of the bare server)
    floor: Floor

    async def echo(self, tab: int) -> float:
        began = time.perf_counter()
        await self.tabs.call("probe_echo", {"value": 1, "tabId": tab})
        return ms_since(began)

    async def ping_and_echo(self) -> dict[str, float]:
        pings = [await self._ping() for _ in range(PINGS)]
        echoes, bare = [], []
        for _ in range(ECHOES // IN_A_ROW):
            echoes += [await self.echo(self.tab) for _ in range(IN_A_ROW)]
            bare += [await self.floor.echo() for _ in range(IN_A_ROW)]
        return {
            "one_at_once": 1000 / mean(echoes),
            "one_floor": 1000 / mean(bare),
            "ping": median(pings),
            "echo": median(echoes),
            "echo_floor": median(bare),
            "echo_over_ping": median(echoes) - median(pings),
        }

    async def _ping(self) -> float:
        connection = self.tabs.bridge._connection
        assert connection is not None
        self.tap.event = anyio.Event()
        began = time.perf_counter()
        connection.ping()
        await self.tap.event.wait()
        return (self.tap.came - began) * 1000

    async def mcp(self) -> dict[str, float]:
        measured = {}
        for era, (client, bare) in self.clients.items():
            took: defaultdict[str, list[float]] = defaultdict(list)
            for _ in range(MCP_CALLS):  # in turns, so that noise hits all alike
                value = {"value": 1}
                took["page"] += [await call_ms(client, "probe_echo", value | {"tabId": self.tab})]
                took["python"] += [await call_ms(client, "python_echo", value)]
                took["bare page"] += [await call_ms(bare, "page_echo", value)]
                took["bare python"] += [await call_ms(bare, "echo", value)]
            measured[era] = median(took["page"])
            measured[f"{era}_floor"] = median(took["bare page"])
            measured[f"{era}_above"] = median(took["page"]) - median(took["python"])
            measured[f"{era}_above_floor"] = median(took["bare page"]) - median(took["bare python"])
        return measured

    async def cancellations(self) -> dict[str, float]:
        """How long after a client cancels the page's signal fires, on the clock of `ORIGIN`."""
        origin: float = await self.page.evaluate(ORIGIN)
        names = {"mcp": "cancel", "legacy": "legacy_cancel"}
        return {
            names[era]: median([await self._cancel(client, origin) for _ in range(CANCELLATIONS)])
            for era, (client, _) in self.clients.items()
        }

    async def _cancel(self, client: Client, origin: float) -> float:
        cancelled_at = 0.0
        with anyio.CancelScope() as scope:

            async def cancel(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                nonlocal cancelled_at
                cancelled_at = time.time() * 1000
                scope.cancel()

            arguments = {"tabId": self.tab}
            await client.call_tool("clock_hang", arguments, progress_callback=cancel)
        handle = await self.page.wait_for_function("window.abortedAt")
        aborted_at: float = await handle.json_value()
        return aborted_at + origin - cancelled_at

    async def many_at_once(self) -> dict[str, float]:
        async def caller() -> None:
            for _ in range(CALLS_EACH):
                await self.echo(self.tab)

        began = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE):
                group.start_soon(caller)
        return {
            "many_at_once": AT_ONCE * CALLS_EACH / (time.perf_counter() - began),
            "many_floor": await self.floor.many_at_once(AT_ONCE, CALLS_EACH),
        }

    async def flood(self, count: int = FLOOD) -> float:
        """Reports per second, from the call's start to the last report's arrival."""
        reports = Reports()
        arguments = {"steps": [{"flood": count}], "tabId": self.tab}
        began = time.perf_counter()
        await self.tabs.call("probe_run", arguments, on_progress=reports.take)
        assert [report.progress for report in reports.taken] == list(range(1, count + 1))
        return count / (reports.last_came - began)

    async def floods(self) -> dict[str, float]:
        ours, bare = [], []
        for _ in range(FLOODS):
            ours.append(await self.flood())
            bare.append(await self.floor.flood(FLOOD))
        return {
            "flood": median(ours),
            "flood_floor": median(bare),
            "long_flood": await self.flood(LONG_FLOOD),
            "other_tab": await self._worst_during_flood(self.other_tab),
            "same_tab": await self._worst_during_flood(self.tab),
        }

    async def _worst_during_flood(self, tab: int) -> float:
        over = anyio.Event()
        times: list[float] = []
        gc.collect()  # else one that falls into the flood looks through all that the bench keeps

        async def flood() -> None:
            await self.flood()
            over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(flood)
            await anyio.lowlevel.checkpoint()  # the flood's call is sent first
            while not over.is_set():
                times.append(await self.echo(tab))
        return max(times)

    async def lone_reports(self) -> dict[str, float]:
        """How long one report takes from the page to the server.

        Page and server run on one machine, so both can read its clock. The page's own reading
        of it counts whole milliseconds; its finer clock is set by that one (`ORIGIN`) before
        each round. Unlike half a round trip, this does not take both ways for equally long.
        What is left is the fine clock's grain, a tenth of a millisecond, and cancels out over
        many reports.
        """
        origin: float = await self.page.evaluate(ORIGIN)
        bare_origin: float = await self.floor.page.evaluate(ORIGIN)
        took: list[float] = []
        bare: list[float] = []

        def take(reports: Sequence[ProgressReport]) -> None:
            now = time.time() * 1000
            took.extend(now - origin - float(report.message or 0) for report in reports)

        arguments = {"count": REPORTS_IN_A_ROW, "gap": GAP, "tabId": self.tab}
        for _ in range(LONE_REPORTS // REPORTS_IN_A_ROW):
            await self.tabs.call("clock_report", arguments, on_progress=take)
            bare += await self.floor.lone_reports(REPORTS_IN_A_ROW, GAP, bare_origin)
        assert len(took) == LONE_REPORTS
        return {"report": median(took), "report_floor": median(bare)}

    async def big(self) -> dict[str, float]:
        began = time.perf_counter()
        value = await self.tabs.call("probe_big", {"size": BIG, "tabId": self.tab})
        seconds = time.perf_counter() - began
        assert len(value["text"]) == BIG
        return {"big": BIG / 2**20 / seconds, "big_floor": await self.floor.big(BIG)}


def ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000


async def call_ms(client: Client, tool: str, arguments: dict[str, Any]) -> float:
    began = time.perf_counter()
    result = await client.call_tool(tool, arguments)
    took = ms_since(began)
    assert not result.is_error, result.content
    return took


# --- cold starts ---------------------------------------------------------------------------

FIRST_RESULT = """
import sys, anyio
from opentabs_py import OpenTabs
async def main(plugin, url):
    async with OpenTabs(plugins=[plugin]) as tabs:
        await tabs.open(url)
        print(await tabs.call("probe_echo", {"value": 1}), flush=True)
anyio.run(main, *sys.argv[1:], backend_options={"use_uvloop": sys.platform != "win32"})
"""


async def cold_start(chromium: Path, url: str) -> dict[str, float]:
    """A process of its own, the files of Python and Chromium in the system's cache."""
    first_result = await seconds_to_echo("-c", FIRST_RESULT, str(PROBE), url)
    with compile_cache():  # as ours
        first_floor = await seconds_to_echo("-m", "e2e.bench_floor.prototype", str(chromium), url)
    command = [sys.executable, "-m", "opentabs_py", "call", "probe_echo", '{"value": 1}']
    began = time.perf_counter()
    await anyio.run_process(
        [*command, "--plugin", str(PROBE), "--open", url], stderr=subprocess.PIPE
    )
    return {
        "first_result": first_result,
        "first_floor": first_floor,
        "command": time.perf_counter() - began,
    }


async def seconds_to_echo(*arguments: str) -> float:
    """Until a Python of its own prints the value of an echo; it may take longer to end."""
    began = time.perf_counter()
    async with await anyio.open_process([sys.executable, *arguments], stderr=None) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
        seconds = time.perf_counter() - began
        assert line == b"{'value': 1}"
    return seconds


# --- setting up ----------------------------------------------------------------------------


async def python_echo(value: int) -> dict[str, int]:
    """A tool of no hop but the first, beside those of pages."""
    return {"value": value}


def create_bare_server(floor: Floor) -> Server[Any]:
    """The MCP hop alone: a tool in Python that gives its arguments back.

    And one that asks the prototype's page to: what an MCP server costs that has none of ours.
    """

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, input_schema={"type": "object"})
                for name in ("echo", "page_echo")
            ]
        )

    async def call_tool(
        _ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name == "page_echo":
            return to_result(await floor.link.call("echo", **(params.arguments or {})))
        return to_result(params.arguments)

    # The SDK would list the tools for each call else.
    return Server(
        "bare",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda _name: {"type": "object"},
    )


@asynccontextmanager
async def warm_bench(chromium: Path, url: str) -> AsyncGenerator[Bench]:
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        clock = write_clock_plugin(Path(directory))
        settings = load_settings(port=0, host="127.0.0.1", profile=None, headed=False)
        tabs = await stack.enter_async_context(
            OpenTabs(plugins=[PROBE, clock], tools=[python_echo], settings=settings)
        )

        # Another host, so that the two tabs never share a renderer.
        await tabs.open(url.replace("127.0.0.1", "localhost"))
        other_tab = (await tabs.bridge.wait_ready("probe")).tab_id
        page = await tabs.open(url)
        tab = (await tabs.bridge.wait_ready("clock")).tab_id
        assert tab != other_tab

        floor = await stack.enter_async_context(warm_floor(chromium, url, FLOOD))
        listener = bind("127.0.0.1", 0)
        bare_servers = {"/mcp": create_bare_server(floor)}
        endpoints = await stack.enter_async_context(
            run_endpoints(bare_servers, request_limit=settings.message_limit)
        )
        app = create_app(endpoints, tabs.bridge)
        await stack.enter_async_context(serve_http(app, listener))
        bare_url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        clients = {}
        for era, mode in (("mcp", "auto"), ("legacy", "legacy")):
            ours = await stack.enter_async_context(Client(tabs.mcp_url, mode=mode))
            bare = await stack.enter_async_context(Client(bare_url, mode=mode))
            clients[era] = (ours, bare)

        connection = tabs.bridge._connection
        assert connection is not None
        tap = PongTap(connection._socket)
        connection._socket = tap
        bench = Bench(tabs, tab, other_tab, page, tap, clients, floor)
        for _ in range(100):  # also takes the reader over to the tap
            await bench.echo(tab)
            await bench.echo(other_tab)
        await bench.flood()
        yield bench


async def measure(rounds: int, done: Callable[[str], None]) -> dict[str, list[float]]:
    """Do all works in every round; `done` is told each."""
    numbers: defaultdict[str, list[float]] = defaultdict(list)

    async def do(what: str, work: Callable[[], Awaitable[dict[str, float]]]) -> None:
        for name, number in (await work()).items():
            numbers[name].append(number)
        done(what)

    chromium = configured_chromium(load_settings())
    async with serve_site() as url:
        for _ in range(rounds):
            await do("cold start", lambda: cold_start(chromium, url))
        async with bench_hop1.connect_all() as hop1:
            for _ in range(rounds):
                await do("hop 1", hop1.measure)
        async with warm_bench(chromium, url) as bench:
            for _ in range(rounds):
                await do("round trips", bench.ping_and_echo)
                await do("MCP", bench.mcp)
                await do("cancellations", bench.cancellations)
                await do("calls at once", bench.many_at_once)
                await do("floods", bench.floods)
                await do("lone reports", bench.lone_reports)
                await do("big results", bench.big)
        for _ in range(rounds):
            await do("builds", builds)
            await do("test kit", lambda: kit_runs(chromium))
    return numbers


async def kit_runs(chromium: Path) -> dict[str, float]:
    """Run a suite of tests that do next to nothing, each in a page of its own."""
    with tempfile.TemporaryDirectory() as directory:
        began = time.time()
        ran = await anyio.to_thread.run_sync(run_kit, Path(directory), "bench")
        assert ran.code == 0, ran.output
        first = float((Path(directory) / "first").read_text()) - began
    further = [case.seconds for name, case in ran.cases.items() if "further" in name]
    return {
        "kit_first": first,
        "kit_further": 1000 * median(further),
        "page_floor": median(await fresh_page_ms(chromium, len(further))),
    }


async def builds() -> dict[str, float]:
    """Build a new plugin, then again at each of some changes, as the command does it."""
    with tempfile.TemporaryDirectory() as parent:
        plugin = Path(parent) / "chat"
        scaffold("chat", plugin, language="ts")
        command = [str(Path(sys.executable).with_name("opentabs")), "build", str(plugin)]
        began = time.perf_counter()
        await anyio.run_process(command)
        build = time.perf_counter() - began
        tool = plugin / "src" / "tools" / "hello.ts"
        source = tool.read_text()
        watching = [*command, "--watch", "--json"]
        took: list[float] = []
        async with await anyio.open_process(watching, stderr=None) as process:
            assert process.stdout is not None
            answers = BufferedByteReceiveStream(process.stdout)
            await answers.receive_until(b"\n", 65536)
            for number in range(REBUILDS):
                began = time.perf_counter()
                tool.write_text(source.replace("Greet somebody", f"Greet {number}"))
                await answers.receive_until(b"\n", 65536)
                took.append(ms_since(began))
            process.terminate()
    return {"build": build, "rebuild": median(took)}


STEPS = 11  # of a round, in `measure`


def main(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often to do each work.")] = 3,
) -> None:
    """Measure the chain; takes about a minute."""
    progress = Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # drawn between the works, never during one
    )
    with progress:
        task = progress.add_task("cold start", total=rounds * STEPS)

        def done(what: str) -> None:
            progress.update(task, advance=1, description=what, refresh=True)

        numbers = anyio.run(measure, rounds, done, backend_options=UVLOOP)
    if json_:
        print(json.dumps(to_document(WORKS, numbers), indent=1, ensure_ascii=False))
    else:
        show(WORKS, numbers)


if __name__ == "__main__":
    typer.run(main)
