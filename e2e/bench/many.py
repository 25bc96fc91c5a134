"""What many plugins and tabs cost: a server's start, memory and tool list, and each call.

Servers with 1 and with 120 plugins run in separate processes and are measured in turn; calls go
through three sessions of this process, interleaved as well.
"""

import re
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import psutil
from anyio.streams.buffered import BufferedByteReceiveStream

from e2e.bench.many_plugins import COUNT, TOOLS_EACH, write_plugin, write_plugins
from e2e.bench.raw import RawClient, connect_raw
from e2e.bench.table import Measurement
from e2e.chain import PROBE
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

LISTS = 5
CALLS = 200
TABS, AT_ONCE = 300, 10
SETTLES = 4.0  # s; by then a server has checked its plugins again, and imported what it will need
CALLERS, CALLS_EACH = 32, 20
BIG = 32 * 1024 * 1024  # characters

TOOLS = f"{COUNT * TOOLS_EACH:,} tools"
MEASUREMENTS = {
    "start_many": Measurement(
        f"process to first tools/list, {COUNT} plugins", "s", beside="start_one_plugin"
    ),
    "start_more": Measurement("  more than with one plugin", "s", at_most=0.4),
    "memory_one_plugin": Measurement("memory of the server with one plugin", "MB", at_most=90),
    "memory_many": Measurement(f"memory of the server with {COUNT} plugins", "MB", at_most=200),
    "list_many": Measurement(f"tools/list at a raw client, {TOOLS}", "ms", at_most=150),
    "list_pages": Measurement("  its pages", "", at_most=1),
    "first_report": Measurement(
        "a server's first progress report, from the call", "ms", beside="later_report"
    ),
    "raw_calls": Measurement(f"calls of a Python tool at raw clients, {CALLERS} at once", "/s"),
    "raw_call_cpu": Measurement("  CPU time of the server for each", "ms"),
    "big_raw": Measurement(f"{BIG >> 20} MiB result at a raw client", "MiB/s", at_least=20),
    "big_memory": Measurement("  peak memory of the server, times its size", "×", at_most=4),
    "echo_many": Measurement(f"echo, {COUNT} plugins", "ms", beside="echo_one"),
    "echo_tabs": Measurement(f"echo, {TABS} tabs", "ms", beside="echo_one"),
}

PYTHON_TOOLS = '''
from opentabs_py import Progress, tool

@tool
async def echo(value: int) -> dict[str, int]:
    """Return the value."""
    return {"value": value}

@tool
async def report(progress: Progress) -> None:
    """Report once."""
    progress.report(progress=1, total=2)

@tool
async def big(size: int) -> dict[str, str]:
    """Return that many characters."""
    return {"text": "x" * size}
'''


@dataclass(slots=True)
class Server:
    """A server in a process of its own, with a client."""

    process: psutil.Process
    client: RawClient
    seconds: float  # from its start to the end of the first tools/list


@asynccontextmanager
async def serving(*options: str) -> AsyncGenerator[Server]:
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0", *options]
    began = time.perf_counter()
    async with await anyio.open_process(command) as process:
        try:
            assert process.stderr is not None
            stderr = BufferedByteReceiveStream(process.stderr)
            line = b""
            while b"MCP at " not in line:
                line = await stderr.receive_until(b"\n", 65536)
            async with connect_raw(line.decode().split("MCP at ")[1].strip()) as client:
                await client.list_tools()
                seconds = time.perf_counter() - began
                yield Server(psutil.Process(process.pid), client, seconds)
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class Folders:
    """Folders with plugins, in a temporary directory."""

    directory: Path
    one: Path
    many: Path


@asynccontextmanager
async def plugin_folders() -> AsyncGenerator[Folders]:
    async with anyio.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        folders = Folders(directory, directory / "one", directory / "many")
        write_plugin(folders.one, 0)
        await anyio.to_thread.run_sync(write_plugins, folders.many)
        yield folders


async def many_plugins(folders: Folders) -> dict[str, float]:
    """Start time, memory and tool list with one plugin and with many."""
    async with serving("--plugins", str(folders.one)) as alone:
        await anyio.sleep(SETTLES)
        memory_one = alone.process.memory_info().rss
    async with serving("--plugins", str(folders.many)) as server:
        took: list[float] = []
        pages = 0
        for _ in range(LISTS):
            began = time.perf_counter()
            _, pages = await server.client.list_tools()
            took.append((time.perf_counter() - began) * 1000)
        await anyio.sleep(SETTLES)
        memory_many = server.process.memory_info().rss
    return {
        "start_many": server.seconds,
        "start_one_plugin": alone.seconds,
        "start_more": server.seconds - alone.seconds,
        "memory_one_plugin": memory_one / 1e6,
        "memory_many": memory_many / 1e6,
        "list_many": median(took),
        "list_pages": pages,
    }


async def python_tools(folders: Folders) -> dict[str, float]:
    """Hop 1 with a cheap client: reports, concurrent calls, a large result."""
    tools = folders.directory / "tools.py"
    tools.write_text(PYTHON_TOOLS)
    async with serving("--tools", str(tools)) as server:
        first = await _report_ms(server.client)
        later = median([await _report_ms(server.client) for _ in range(20)])
        rate, cpu = await _at_once(server)
        mib_per_second, times = await _big(server)
    return {
        "first_report": first,
        "later_report": later,
        "raw_calls": rate,
        "raw_call_cpu": cpu,
        "big_raw": mib_per_second,
        "big_memory": times,
    }


async def _report_ms(client: RawClient) -> float:
    """How long a call with one report takes; the report is delivered before the result."""
    began = time.perf_counter()
    answer = await client.request(
        "tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}
    )
    assert b"notifications/progress" in answer, answer
    return (time.perf_counter() - began) * 1000


async def _at_once(server: Server) -> tuple[float, float]:
    """Calls per second of clients with one session each, and CPU time per call in ms."""

    async def caller(client: RawClient) -> None:
        for _ in range(CALLS_EACH):
            await client.call("echo", {"value": 1})

    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(connect_raw(server.client.url)) for _ in range(CALLERS)
        ]
        for client in clients:
            await client.call("echo", {"value": 1})
        began, used = time.perf_counter(), _cpu_seconds(server)
        async with anyio.create_task_group() as tasks:
            for client in clients:
                tasks.start_soon(caller, client)
        calls = CALLERS * CALLS_EACH
        rate = calls / (time.perf_counter() - began)
        return rate, (_cpu_seconds(server) - used) * 1000 / calls


async def _big(server: Server) -> tuple[float, float]:
    """Throughput of a value in MiB/s, and the server's memory for it relative to its size."""
    before = server.process.memory_info().rss
    proc = anyio.Path(f"/proc/{server.process.pid}")
    await (proc / "clear_refs").write_text("5")  # forget the highest RSS
    began = time.perf_counter()
    answer = await server.client.call("big", {"size": BIG})
    seconds = time.perf_counter() - began
    assert len(answer) > BIG
    status = await (proc / "status").read_text()
    highest = 1024 * int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0])
    return BIG / 2**20 / seconds, (highest - before) / BIG


def _cpu_seconds(server: Server) -> float:
    used = server.process.cpu_times()
    return used.user + used.system


@dataclass(slots=True)
class Sessions:
    """A session with a plugin and a tab, one with many plugins, one with many tabs."""

    tabs: dict[str, tuple[OpenTabs, int]]

    async def measure(self) -> dict[str, float]:
        took: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(CALLS):  # interleaved, so that noise affects all alike
            for name, (tabs, tab) in self.tabs.items():
                began = time.perf_counter()
                await tabs.call("probe_echo", {"value": 1, "tabId": tab})
                took[name].append((time.perf_counter() - began) * 1000)
        return {name: median(times) for name, times in took.items()}


async def _open(session: OpenTabs, url: str) -> None:
    page = await session.context.new_page()
    await page.goto(url)


@asynccontextmanager
async def many_sessions(url: str, folders: Folders) -> AsyncGenerator[Sessions]:
    settings = load_settings(port=0, host="127.0.0.1", profile=None, headed=False)
    async with AsyncExitStack() as stack:
        tabs: dict[str, tuple[OpenTabs, int]] = {}
        names = [f"site-{number:03}" for number in range(1, COUNT)]
        for name, plugins, count in (
            ("echo_one", [], 1),
            ("echo_many", [folders.many / each for each in names], 1),
            ("echo_tabs", [], TABS),
        ):
            session = await stack.enter_async_context(
                OpenTabs(plugins=[PROBE, *plugins], settings=settings)
            )
            await session.open(url)
            tab = (await session.internals.bridge.wait_ready("probe")).tab_id
            for _ in range(0, count - 1, AT_ONCE):
                async with anyio.create_task_group() as tasks:
                    for _ in range(AT_ONCE):
                        tasks.start_soon(_open, session, url)
            tabs[name] = (session, tab)
        sessions = Sessions(tabs)
        await sessions.measure()
        yield sessions


async def _main(rounds: int) -> None:
    async with plugin_folders() as folders:
        for _ in range(rounds):
            numbers = {**await many_plugins(folders), **await python_tools(folders)}
            for name, value in numbers.items():
                print(f"{name:20} {value:10.2f}", flush=True)


if __name__ == "__main__":
    options: dict[str, Any] = {"use_uvloop": sys.platform != "win32"}
    anyio.run(_main, int(sys.argv[1]) if len(sys.argv) > 1 else 1, backend_options=options)
