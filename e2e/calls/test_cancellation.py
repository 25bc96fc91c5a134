"""A client that gives up a call stops its tool in the page, and receives nothing more about it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import MCPError
from mcp.client import Client

from e2e.chain import HOLD, PROBE, Tab
from e2e.mcp.drivers import LONGEST_LINE, serve_command
from e2e.waiting import PATIENT
from opentabs_py.tracing.file import read_trace

# A tool that continues after its cancellation: it reports and returns what nobody waits for.
DEAF = [{"report": {"progress": 1}}, {"until": "aborted"}, {"report": {"progress": 2}}]
HELD = [{"report": {"progress": 1}}, HOLD]
HANG = [{"report": {"progress": 1}}, {"wait": 60_000}]
WHY = "the client cancelled it"

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
META_2026 = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(id_: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def notification(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def run_params(
    key: str, steps: list[Any], meta: dict[str, Any] | None = None, **tab: int
) -> dict[str, Any]:
    """The parameters of a call of the probe's `run`."""
    arguments = {"key": key, "steps": steps, **tab}
    token = {"progressToken": f"token of {key}"}
    return {"name": "probe_run", "arguments": arguments, "_meta": {**(meta or {}), **token}}


# --- over HTTP ---


@dataclass
class Posted:
    """The event stream of a response."""

    messages: AsyncIterator[dict[str, Any]]

    async def next(self) -> dict[str, Any]:
        with anyio.fail_after(PATIENT):
            return await anext(self.messages)

    async def rest(self) -> list[dict[str, Any]]:
        """The messages until the server ends the stream."""
        with anyio.fail_after(PATIENT):
            return [message async for message in self.messages]


@asynccontextmanager
async def post(
    http: httpx2.AsyncClient, url: str, message: dict[str, Any]
) -> AsyncGenerator[Posted]:
    """Send a request; leaving the context closes its connection."""
    async with http.stream("POST", url, json=message) as response:
        assert response.status_code == 200, await response.aread()
        lines = response.aiter_lines()
        yield Posted(
            json.loads(line.removeprefix("data: "))
            async for line in lines
            if line.startswith("data: {")
        )


@pytest.fixture
async def legacy(tab: Tab) -> AsyncGenerator[httpx2.AsyncClient]:
    """HTTP within a session of the initialize era."""
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENT) as http:
        url = tab.tabs.mcp_url
        answer = await http.post(url, json=request(0, "initialize", INITIALIZE))
        http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        http.headers["mcp-protocol-version"] = "2025-11-25"
        await http.post(url, json=notification("notifications/initialized"))
        yield http


async def reason(tab: Tab, key: str) -> Any:
    """Wait until a run was aborted, and return the reason."""
    found = await tab.page.wait_for_function("key => probe.aborted[key]", arg=key)
    return await found.json_value()


async def finish(tab: Tab, key: str) -> None:
    """Wait until a run has ended in the page, and its messages have reached the server."""
    await tab.page.wait_for_function("key => probe.finished[key]", arg=key)
    await tab.call("echo", {"value": "behind all that it said"})


async def test_an_initialize_era_client_cancels_over_http(
    tab: Tab, legacy: httpx2.AsyncClient
) -> None:
    url = tab.tabs.mcp_url
    cancel = notification("notifications/cancelled", {"requestId": 1, "reason": "enough"})
    message = request(1, "tools/call", run_params("legacy", DEAF, tabId=tab.id))
    async with post(legacy, url, message) as posted:
        assert (await posted.next())["params"]["progress"] == 1

        await legacy.post(url, json=cancel)

        assert await reason(tab, "legacy") == WHY
        assert tab.tabs.internals.bridge.calls.dispatch.pending == 0
        await finish(tab, "legacy")
        # Streams of this era end with a response by the SDK, which is not a result.
        [end] = await posted.rest()
    assert end["error"] == {"code": -32800, "message": "Request cancelled"}


async def test_a_2026_client_cancels_by_closing_its_stream(tab: Tab) -> None:
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "probe_run",
    }
    message = request(1, "tools/call", run_params("2026", HANG, META_2026, tabId=tab.id))
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENT) as http:
        async with post(http, tab.tabs.mcp_url, message) as posted:
            assert (await posted.next())["params"]["progress"] == 1
            assert tab.tabs.internals.bridge.calls.dispatch.pending == 1

        assert await reason(tab, "2026") == WHY
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 0


async def test_an_initialize_era_client_that_drops_its_connection_cancels_nothing(
    tab: Tab, legacy: httpx2.AsyncClient
) -> None:
    message = request(1, "tools/call", run_params("dropped", HELD, tabId=tab.id))
    async with post(legacy, tab.tabs.mcp_url, message) as posted:
        await posted.next()
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 1

    await tab.release("dropped")
    await finish(tab, "dropped")

    assert await tab.page.evaluate("probe.aborted") == {}
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 0


async def test_a_client_that_times_out_cancels(tab: Tab, client: Client) -> None:
    arguments = {"key": "timed-out", "steps": DEAF, "tabId": tab.id}
    reports: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        reports.append(progress)

    with pytest.raises(MCPError, match="timed out"):
        await client.call_tool(  # which has begun by then, however busy the machine is
            "probe_run", arguments, read_timeout_seconds=2, progress_callback=note
        )

    assert await reason(tab, "timed-out") == WHY
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 0
    await finish(tab, "timed-out")
    assert reports == [1]


# --- over stdio ---


class Pipes:
    """A client that reads and writes raw messages."""

    def __init__(self, stdin: ByteSendStream, stdout: BufferedByteReceiveStream) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.heard: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any]) -> None:
        await self._stdin.send(json.dumps(message).encode() + b"\n")

    async def hear(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until a message arrives; all messages are kept."""
        with anyio.fail_after(PATIENT):
            while True:
                line = await self._stdout.receive_until(b"\n", LONGEST_LINE)
                self.heard.append(json.loads(line))
                if wanted(self.heard[-1]):
                    return self.heard[-1]

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        await self.send(message)
        answer = await self.hear(lambda heard: heard.get("id") == message["id"])
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def serving_stdio(url: str, trace: Path) -> AsyncGenerator[Pipes]:
    """Start a server with the probe in a tab, and end it by closing its stdin."""
    command = serve_command(url, str(PROBE), "--trace", str(trace))
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Pipes(process.stdin, BufferedByteReceiveStream(process.stdout))
        await process.stdin.aclose()
        with anyio.fail_after(PATIENT):
            await process.wait()


async def start_legacy(pipes: Pipes) -> dict[str, Any]:
    await pipes.ask(request(0, "initialize", INITIALIZE))
    await pipes.send(notification("notifications/initialized"))
    return {}


async def start_2026(_pipes: Pipes) -> dict[str, Any]:
    return META_2026


@pytest.mark.parametrize("start", [start_legacy, start_2026])
async def test_a_client_that_cancels_over_stdio_receives_no_more_about_the_call(
    site: str, tmp_path: Path, start: Callable[[Pipes], Awaitable[dict[str, Any]]]
) -> None:
    async with serving_stdio(f"{site}/page", tmp_path / "trace") as pipes:
        meta = await start(pipes)

        async def wait_for(id_: int, what: str) -> dict[str, Any]:
            arguments = {"what": what, "key": "stdio"}
            params = {"name": "probe_await", "arguments": arguments, "_meta": meta}
            answer = await pipes.ask(request(id_, "tools/call", params))
            seen: dict[str, Any] = answer["structuredContent"]
            return seen

        await pipes.send(request(1, "tools/call", run_params("stdio", DEAF, meta)))
        await pipes.hear(lambda heard: heard.get("method") == "notifications/progress")
        await pipes.send(notification("notifications/cancelled", {"requestId": 1}))

        assert await wait_for(2, "aborted") == {"seen": WHY}
        assert await wait_for(3, "finished") == {"seen": 1}

    assert [m["params"]["progress"] for m in pipes.heard if "progress" in str(m.get("method"))] == [
        1
    ]
    assert 1 not in [message.get("id") for message in pipes.heard]
    records = read_trace(tmp_path / "trace").records
    assert [record.outcome for record in records] == ["cancelled", "succeeded", "succeeded"]
