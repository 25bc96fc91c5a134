"""The bench of hop 1 alone: what a call and a notification cost between client and server.

Our server and a bare one run in separate processes, with the same Python tool, so no browser is
involved. The client is the same for both, and causes most of the cost.
"""

import os
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from e2e.bench.server import TOOL
from e2e.bench.table import Measurement

CALLS = 100
BURSTS, REPORTS = 10, 20  # as many reports as are never dropped
TRANSPORTS = ("http", "stdio")
ERAS = {"2026": "auto", "2025": "legacy"}
KINDS = ("ours", "bare")


def _measurements(transport: str, era: str) -> dict[str, Measurement]:
    pair = f"{transport}_{era}"
    name = f"hop 1 alone, {'HTTP' if transport == 'http' else 'stdio'} of {era}: a call, p50"
    report = f"  a notification, of {REPORTS} in a row"
    return {
        f"call_{pair}_ours": Measurement(name, "ms", beside=f"call_{pair}_bare"),
        f"report_{pair}_ours": Measurement(report, "ms", beside=f"report_{pair}_bare"),
    }


MEASUREMENTS = {
    name: measurement
    for transport in TRANSPORTS
    for era in ERAS
    for name, measurement in _measurements(transport, era).items()
}


@dataclass(slots=True)
class Hop1:
    """All clients, connected; the keys are the pair and whose server it is."""

    clients: dict[tuple[str, str], Client]

    async def measure(self) -> dict[str, float]:
        """Return the results of a round."""
        measured = {}
        for pair in {pair: None for pair, _ in self.clients}:
            calls: dict[str, list[float]] = {kind: [] for kind in KINDS}
            reports: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for _ in range(CALLS):  # interleaved, so that noise hits both alike
                for kind in KINDS:
                    calls[kind].append(await call_ms(self.clients[pair, kind]))
            for _ in range(BURSTS):
                for kind in KINDS:
                    reports[kind].append(await report_ms(self.clients[pair, kind]))
            for kind in KINDS:
                measured[f"call_{pair}_{kind}"] = median(calls[kind])
                measured[f"report_{pair}_{kind}"] = median(reports[kind])
        return measured


async def call_ms(client: Client) -> float:
    began = time.perf_counter()
    result = await client.call_tool(TOOL, {"reports": 0})
    took = (time.perf_counter() - began) * 1000
    assert result.structured_content == {"reports": 0}, result.content
    return took


async def report_ms(client: Client) -> float:
    """The time from the first notification to the last, divided by the number of intervals."""
    came: list[float] = []
    all_came = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        came.append(time.perf_counter())
        if len(came) == REPORTS:
            all_came.set()

    await client.call_tool(TOOL, {"reports": REPORTS}, progress_callback=note)
    with anyio.fail_after(5):
        await all_came.wait()
    return (came[-1] - came[0]) * 1000 / (REPORTS - 1)


@asynccontextmanager
async def connect_all() -> AsyncGenerator[Hop1]:
    """Start the servers, and connect a client of each era to each of them."""
    async with AsyncExitStack() as stack:
        clients = {}
        for kind in KINDS:
            url = await stack.enter_async_context(_serving_http(kind))
            command = [*_command(kind), "stdio"]
            stdio = StdioServerParameters(
                command=command[0], args=command[1:], env=dict(os.environ)
            )
            for era, mode in ERAS.items():
                for transport, target in (("http", url), ("stdio", stdio)):
                    client = await stack.enter_async_context(Client(target, mode=mode))
                    clients[f"{transport}_{era}", kind] = client
                    await call_ms(client)
        yield Hop1(clients)


def _command(kind: str) -> list[str]:
    return [sys.executable, "-m", "e2e.bench.server", kind]


@asynccontextmanager
async def _serving_http(kind: str) -> AsyncGenerator[str]:
    async with await anyio.open_process([*_command(kind), "http"], stderr=None) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
        try:
            yield line.decode()
        finally:
            process.terminate()  # also after an error, which would otherwise wait for it
