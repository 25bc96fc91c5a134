"""One warm Chromium, and a method for each workload on it."""

import gc
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp.client import Client
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from playwright.async_api import Page

from e2e.bench.floor.prototype import Floor, warm_floor
from e2e.bench.page import ORIGIN, write_clock_plugin
from e2e.chain import PROBE
from opentabs_py.bridge.connection import Socket
from opentabs_py.config.settings import load_settings
from opentabs_py.core.progress import ProgressReport
from opentabs_py.server.http.app import create_app
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.mcp.results import to_result
from opentabs_py.server.mcp.streamable_http import run_http_apps
from opentabs_py.session.session import OpenTabs

PINGS = 200
ECHOES, IN_A_ROW = 500, 100
MCP_CALLS = 100
AT_ONCE, CALLS_EACH = 32, 20
FLOOD, LONG_FLOOD = 10_000, 30_000
FLOODS = 3
LONE_REPORTS, REPORTS_IN_A_ROW = 100, 25
GAP = 5  # ms between two, so that each finds the hops idle
CANCELLATIONS = 15
BIG = 32 * 1024 * 1024  # characters, one in sixteen of which takes two bytes


@dataclass(slots=True)
class PongTap:
    """The connection's socket; it also notes when a pong arrives."""

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
    """The reports of one call, as they arrive."""

    taken: list[ProgressReport] = field(default_factory=list[ProgressReport])
    last_came: float = 0.0

    def take(self, report: ProgressReport) -> None:
        self.last_came = time.perf_counter()
        self.taken.append(report)


@dataclass(slots=True)
class Bench:
    """Everything warm; each method runs a workload and returns its results for a round."""

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
        connection = self.tabs.internals.bridge._connection
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
            for _ in range(MCP_CALLS):  # interleaved, so that noise hits all alike
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
        """The time from a client's cancellation to the page's signal, on the clock of `ORIGIN`."""
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
        """Reports per second, from the start of the call to the arrival of the last report."""
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
        gc.collect()  # otherwise one runs during the flood

        async def flood() -> None:
            await self.flood()
            over.set()

        async with anyio.create_task_group() as group:
            group.start_soon(flood)
            await anyio.lowlevel.checkpoint()  # the call with the flood is sent first
            while not over.is_set():
                times.append(await self.echo(tab))
        return max(times)

    async def lone_reports(self) -> dict[str, float]:
        """How long one report takes from the page to the server.

        Page and server run on one machine, so both can read its clock. The page reads it in whole
        milliseconds; its finer clock is set by it (`ORIGIN`) before each round. Unlike half a round
        trip, this does not assume that both directions take equally long. The remaining error is
        the fine clock's resolution, 0.1 ms, and averages out over many reports.
        """
        origin: float = await self.page.evaluate(ORIGIN)
        bare_origin: float = await self.floor.page.evaluate(ORIGIN)
        took: list[float] = []
        bare: list[float] = []

        def take(report: ProgressReport) -> None:
            took.append(time.time() * 1000 - origin - float(report.message or 0))

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


async def python_echo(value: int) -> dict[str, int]:
    """A tool that uses only the first hop, beside those of pages."""
    return {"value": value}


def create_bare_server(floor: Floor) -> Server[Any]:
    """The MCP hop alone: a Python tool that returns its arguments.

    The other tool has the prototype's page do so, which is what a bare MCP server would cost.
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

    # Otherwise the SDK would list the tools before each call.
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

        # A different host, so that the two tabs never share a renderer.
        await tabs.open(url.replace("127.0.0.1", "localhost"))
        other_tab = (await tabs.internals.bridge.wait_ready("probe")).tab_id
        page = await tabs.open(url)
        tab = (await tabs.internals.bridge.wait_ready("clock")).tab_id
        assert tab != other_tab

        floor = await stack.enter_async_context(warm_floor(chromium, url, FLOOD))
        listener = bind("127.0.0.1", 0)
        bare_servers = {"/mcp": create_bare_server(floor)}
        apps = await stack.enter_async_context(
            run_http_apps(bare_servers, request_limit=settings.message_limit)
        )
        app = create_app(apps, tabs.internals.pages)
        await stack.enter_async_context(serve_http(app, listener))
        bare_url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        clients = {}
        for era, mode in (("mcp", "auto"), ("legacy", "legacy")):
            ours = await stack.enter_async_context(Client(tabs.mcp_url, mode=mode))
            bare = await stack.enter_async_context(Client(bare_url, mode=mode))
            clients[era] = (ours, bare)

        connection = tabs.internals.bridge._connection
        assert connection is not None
        tap = PongTap(connection._socket)
        connection._socket = tap
        bench = Bench(tabs, tab, other_tab, page, tap, clients, floor)
        for _ in range(100):  # also moves the reader to the tap
            await bench.echo(tab)
            await bench.echo(other_tab)
        await bench.flood()
        yield bench
