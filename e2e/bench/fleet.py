"""`make bench-fleet`: what a fleet adds to a call, and how it grows from 10 browsers to 1,000.

The NATS server and the workers are real: each worker has its own connection, and several share a
process. Only the browsers behind them are simulated. This program is the endpoint. It is not a
test: no duration fails it.
"""

import gc
import json
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import anyio
import psutil
import typer
from nats.aio.client import Client

from e2e.bench.fleet_workers import UVLOOP, SimulatedSession
from e2e.bench.table import Measurement, rounds_shown, show, to_document
from e2e.fleet.members import Nats, nats_server, until
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import load_settings
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import ChainError
from opentabs_py.session.session import OpenTabs

SIZES = (10, 100, 1000)
PROCESSES = 2
FLEET, OWNER = "bench", "sim"
CALLS = 400  # one after the other
AT_ONCE, CALLS_EACH = 32, 40
REPORTS = 10_000
IDLE = 4.0  # s; each worker announces itself twice in this time
MB = 1024 * 1024


def _measurements(size: int) -> dict[str, Measurement]:
    def key(name: str) -> str:
        return f"{name}_{size}"

    return {
        key("added"): Measurement(f"{size:,} browsers: added to a call, p50", "ms", at_most=2),
        key("added_p99"): Measurement("  p99", "ms"),
        key("call"): Measurement("  a call, p50", "ms", beside=key("request")),
        key("calls"): Measurement(f"  calls, {AT_ONCE} at once", "/s", beside=key("requests")),
        key("reports"): Measurement(f"  {REPORTS:,} lone reports, all there, in order", "/s"),
        key("idle"): Measurement("  CPU of the endpoint while nothing is called", "%"),
        key("memory"): Measurement("  memory of the endpoint", "MB"),
    }


MEASUREMENTS = {
    name: measurement for size in SIZES for name, measurement in _measurements(size).items()
} | {
    "each": Measurement(
        f"memory of the endpoint for each browser, {SIZES[0]} to {SIZES[-1]:,}", "KB"
    ),
    "known": Measurement("a killed worker is known after", "s", at_most=2),
}


@contextmanager
def workers(nats: Nats, first: int, count: int, owner: str = OWNER) -> Generator[psutil.Popen]:
    """Run simulated workers in a process of their own."""
    words = [nats.url, FLEET, str(first), str(count), owner]
    process = psutil.Popen([sys.executable, "-m", "e2e.bench.fleet_workers", *words])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Endpoint:
    """The endpoint, and a bare NATS connection to compare its calls with.

    Args:
        tabs: The endpoint.
        bare: The connection.
    """

    def __init__(self, tabs: OpenTabs, bare: Any) -> None:
        self.tabs = tabs
        self._bare = bare
        self._direct = SimulatedSession(OWNER)

    async def wait_for(self, count: int) -> None:
        """Wait until that many workers are known."""
        await until(self.tabs, lambda known: len(known) == count)

    async def measure(self) -> dict[str, float]:
        """Return the numbers of a round."""
        arguments = {"value": 1}
        payload = json.dumps(arguments).encode()
        ours, direct, bare = [
            lambda: self.tabs.call(f"{OWNER}_echo", arguments),
            lambda: self._direct.call(f"{OWNER}_echo", arguments),
            lambda: self._bare.request(OWNER, payload, timeout=10),
        ]
        took = await times_ms(ours, direct, bare)
        measured = {
            "call": median(took[0]),
            "added": median(took[0]) - median(took[1]),
            "added_p99": p99(took[0]) - p99(took[1]),
            "request": median(took[2]),
            "calls": await rate(ours),
            "requests": await rate(bare),
            "reports": await self._reports(),
            "idle": await cpu_while_idle(),
        }
        return measured | {"memory": memory()}

    async def _reports(self) -> float:
        came: list[ProgressReport] = []
        began = time.perf_counter()
        await self.tabs.call(f"{OWNER}_report", {"reports": REPORTS}, on_progress=came.append)
        took = time.perf_counter() - began
        assert [report.seq for report in came] == [*range(REPORTS)]
        return REPORTS / took

    async def known_after(self, nats: Nats, number: int) -> float:
        """Return how long a call lasts after its worker was killed, in seconds."""
        owner = f"doomed{number}"
        count = len(self.tabs.internals.fleet.directory.usable)
        with workers(nats, 10_000 + number, 1, owner) as process:
            await self.wait_for(count + 1)
            with anyio.fail_after(10):
                while self.tabs.internals.registry.get(f"{owner}_hold") is None:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            call = await self.tabs.start(f"{owner}_hold")
            await anyio.sleep(0.1 * number)  # a beat may be due at any time
            process.kill()
            began = time.perf_counter()
            await call.wait()
            assert isinstance(call.error, ChainError)
            assert call.error.detail.code == "WORKER_LOST"
            return time.perf_counter() - began


async def times_ms(*workloads: Callable[[], Awaitable[Any]]) -> list[list[float]]:
    """Run each workload many times, interleaved; return how long each run took."""
    took: list[list[float]] = [[] for _ in workloads]
    for _ in range(CALLS):
        for workload, times in zip(workloads, took, strict=True):
            began = time.perf_counter()
            await workload()
            times.append((time.perf_counter() - began) * 1000)
    return took


async def rate(workload: Callable[[], Awaitable[Any]]) -> float:
    """Return how many times per second a workload runs, many at once."""

    async def repeat() -> None:
        for _ in range(CALLS_EACH):
            await workload()

    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(repeat)
    return AT_ONCE * CALLS_EACH / (time.perf_counter() - began)


async def cpu_while_idle() -> float:
    """Return how much of a core this process uses while it makes no calls, in percent."""
    began = time.process_time()
    await anyio.sleep(IDLE)
    return (time.process_time() - began) / IDLE * 100


def memory() -> float:
    """Return the memory of this process, in MB."""
    gc.collect()
    return float(psutil.Process().memory_info().rss) / MB


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


@asynccontextmanager
async def an_endpoint(nats: Nats) -> AsyncGenerator[Endpoint]:
    bare: Any = Client()
    await bare.connect(nats.url)
    joined = FleetOptions(nats.url, FLEET)
    try:
        async with OpenTabs(nats=joined, settings=load_settings(port=0)) as tabs:
            yield Endpoint(tabs, bare)
    finally:
        await bare.close()


async def measure(rounds: int, nats: Nats, done: Callable[[str], None]) -> dict[str, list[float]]:
    """Grow a fleet and measure it at each size; `done` is called after each round."""
    numbers: defaultdict[str, list[float]] = defaultdict(list)
    async with an_endpoint(nats) as endpoint:
        with ExitStack() as stack:
            running = 0
            for size in SIZES:
                share = (size - running) // PROCESSES
                for first in range(running, size, share):
                    stack.enter_context(workers(nats, 1 + first, share))
                running = size
                await endpoint.wait_for(size)
                for _ in range(rounds):
                    for name, value in (await endpoint.measure()).items():
                        numbers[f"{name}_{size}"].append(value)
                    done(f"{size:,} browsers")
            for number in range(rounds):
                numbers["known"].append(await endpoint.known_after(nats, number))
                done("kills")
    smallest, largest = (median(numbers[f"memory_{size}"]) for size in (SIZES[0], SIZES[-1]))
    numbers["each"] = [(largest - smallest) * 1024 / (SIZES[-1] - SIZES[0])]
    return numbers


def main(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often to run each workload.")] = 5,
) -> None:
    """Measure a fleet; takes two minutes."""
    with (
        TemporaryDirectory() as directory,
        nats_server(Path(directory)) as nats,
        rounds_shown(rounds * (len(SIZES) + 1)) as done,
    ):
        numbers = anyio.run(measure, rounds, nats, done, backend_options=UVLOOP)
    if json_:
        print(json.dumps(to_document(MEASUREMENTS, numbers), indent=1, ensure_ascii=False))
    else:
        show(MEASUREMENTS, numbers)


if __name__ == "__main__":
    typer.run(main)
