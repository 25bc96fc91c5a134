"""Metrics and health of a real endpoint, real workers and a server, read over HTTP."""

import os
import re
import signal
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp.client import Client

from e2e.chain import PROBE, wait_for_document
from e2e.fleet.members import OPENTABS, TOOLS, Fleet, poll
from e2e.processes import descendants, is_browser
from e2e.waiting import PATIENT
from opentabs_py.bridge.connection import Socket
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.config.settings import load_settings
from opentabs_py.core.metrics import METRICS, Role
from opentabs_py.errors import CallTimeoutError
from opentabs_py.session.metrics import export_metrics
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock
from tests.scraped import Scraped

OWNER = "fleet_tools"


class Observed:
    """A process that exports metrics.

    Args:
        log: Its stderr.
    """

    def __init__(self, log: Path) -> None:
        self._log = log

    async def said(self, pattern: str) -> str:
        """Wait until its log matches, and return the first group."""
        found: list[str] = []

        def matches() -> bool:
            found[:] = re.findall(pattern, self._log.read_text())
            return bool(found)

        await poll(matches)
        return found[-1]

    async def get(self, path: str) -> tuple[int, str]:
        """Return the status and the text of a response."""
        url = await self.said(r"Metrics at (http://\S+)/metrics")
        async with httpx2.AsyncClient(timeout=PATIENT) as http:
            answer = await http.get(f"{url}{path}")
        return answer.status_code, answer.text

    async def scrape(self) -> Scraped:
        status, text = await self.get("/metrics")
        assert status == 200
        return Scraped(text)

    async def until(self, holds: Callable[[Scraped], bool]) -> Scraped:
        """Wait until its metrics meet a condition."""
        with anyio.fail_after(PATIENT):
            while not holds(scraped := await self.scrape()):  # noqa: ASYNC110
                await anyio.sleep(0.02)
        return scraped

    async def until_ready(self, status: int, why: str) -> None:
        """Wait until `/readyz` answers with this status."""
        wanted = (status, f"{'ready' if status == 200 else 'not ready'}: {why}\n")
        with anyio.fail_after(PATIENT):
            while await self.get("/readyz") != wanted:  # noqa: ASYNC110
                await anyio.sleep(0.02)


@contextmanager
def served(fleet: Fleet, *options: str) -> Generator[Observed]:
    """Run `opentabs serve` in a separate process."""
    log = fleet.directory / "serve.log"
    command = [*OPENTABS, "serve", "--port", "0", "--metrics", "0", *options]
    with log.open("wb") as stderr:
        process = subprocess.Popen(command, stderr=stderr, cwd=fleet.directory)
    try:
        yield Observed(log)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENT)


def worker(fleet: Fleet, name: str, *options: str) -> Observed:
    return Observed(fleet.worker(name, "--metrics", "0", *options).log)


async def client_of(endpoint: Observed) -> Client:
    return Client(await endpoint.said(r"MCP at (\S+)"), mode="legacy")


def names(role: Role) -> set[str]:
    """Return the names of the metrics that a process should export."""
    return {metric.name.removesuffix("_total") for metric in METRICS if role in metric.roles}


def exported(scraped: Scraped) -> set[str]:
    """Return the names of our metrics that a process exports."""
    every = {family.name for family in scraped.families if family.name.startswith("opentabs_")}
    # The creation time of a counter or histogram, in the older text format.
    return {name for name in every if not name.endswith("_created")}


# --- metrics ---


async def test_calls_are_counted_by_endpoint_and_worker_without_names_that_clients_chose(
    fleet: Fleet,
) -> None:
    one = worker(fleet, "one")
    await one.until_ready(200, "browsers connected: 0")
    with served(fleet, *fleet.options) as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        async with await client_of(endpoint) as client:
            for _ in range(2):
                result = await client.call_tool("work", {"key": "k", "reports": 5})
                assert not result.is_error
            assert (await client.call_tool("work", {"kee": "k"})).is_error
            assert (await client.call_tool("chosen_by_a_client", {})).is_error
        at_endpoint, at_worker = await endpoint.scrape(), await one.scrape()
        for role, scraped in (("endpoint", at_endpoint), ("worker", at_worker)):
            ended = {"role": role, "plugin": OWNER}
            calls = "opentabs_calls_total"
            assert scraped.value(calls, outcome="succeeded", **ended) == 2
            assert scraped.value(calls, outcome="refused", **ended) == 1
            assert scraped.value("opentabs_call_duration_seconds_count", **ended) == 3
            assert scraped.value("opentabs_progress_reports_total", **ended) == 10
        assert at_endpoint.labels("opentabs_calls_total", "plugin") == {OWNER, "(none)"}
        assert "chosen" not in (await endpoint.get("/metrics"))[1]


async def test_an_endpoint_exports_its_queue_and_its_workers(fleet: Fleet) -> None:
    full = worker(fleet, "full", "--max-calls", "1")
    with served(fleet, *fleet.options, "--queue", "7") as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        release = fleet.directory / "release"
        async with await client_of(endpoint) as client, anyio.create_task_group() as tasks:
            for key in ("runs", "waits"):
                tasks.start_soon(client.call_tool, "work", {"key": key, "until": str(release)})
            scraped = await endpoint.until(
                lambda now: (
                    now.value("opentabs_calls_waiting") == 1
                    and now.value("opentabs_fleet_calls_running") == 1
                )
            )
            assert scraped.value("opentabs_calls_running") == 1
            assert scraped.value("opentabs_calls_waiting_max") == 7
            assert scraped.value("opentabs_fleet_workers") == 1
            assert scraped.value("opentabs_fleet_browsers") == 0
            assert scraped.value("opentabs_fleet_calls_running_max") == 1
            assert scraped.value("opentabs_fleet_plugin_workers", plugin=OWNER) == 1
            in_worker = await full.scrape()
            assert in_worker.value("opentabs_calls_running") == 1
            assert in_worker.value("opentabs_calls_running_max") == 1
            release.touch()
        done = await endpoint.until(lambda now: now.value("opentabs_calls_running") == 0)
        assert done.value("opentabs_calls_waiting") == 0


async def test_each_kind_of_process_exports_just_its_metrics(fleet: Fleet) -> None:
    one = worker(fleet, "one")
    await one.until_ready(200, "browsers connected: 0")
    with served(fleet, *fleet.options) as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        assert exported(await one.scrape()) == names("worker")
        assert exported(await endpoint.scrape()) == names("endpoint")
    with served(fleet, "--tools", str(TOOLS)) as server:
        await server.until_ready(200, "its tools need no browser")
        assert exported(await server.scrape()) == names("server")


# --- health ---


async def test_an_endpoint_is_not_ready_once_its_worker_was_killed(fleet: Fleet) -> None:
    doomed = fleet.worker("doomed")
    with served(fleet, *fleet.options) as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        doomed.kill()
        await endpoint.until_ready(503, "no worker can be used")
        assert (await endpoint.get("/healthz"))[0] == 200
        assert (await endpoint.scrape()).value("opentabs_ready") == 0


async def test_a_worker_that_drains_is_alive_and_not_ready(fleet: Fleet) -> None:
    process = fleet.worker("one", "--metrics", "0")
    one = Observed(process.log)
    with served(fleet, *fleet.options) as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        await one.until_ready(200, "browsers connected: 0")
        release = fleet.directory / "release"
        async with await client_of(endpoint) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "work", {"key": "k", "until": str(release)})
            await fleet.until("began", "k")
            process.process.send_signal(signal.SIGTERM)
            await one.until_ready(503, "it is draining")
            assert (await one.get("/healthz"))[0] == 200
            await endpoint.until_ready(503, "no worker can be used")
            release.touch()
        assert await anyio.to_thread.run_sync(lambda: process.process.wait(PATIENT)) == 0


async def test_without_nats_neither_endpoint_nor_worker_is_ready_until_it_is_back(
    fleet: Fleet,
) -> None:
    one = worker(fleet, "one")
    with served(fleet, *fleet.options) as endpoint:
        await endpoint.until_ready(200, "workers: 1")
        fleet.nats.kill()
        for each in (one, endpoint):
            await each.until_ready(503, "not connected to NATS")
        fleet.nats.start()
        await one.until_ready(200, "browsers connected: 0")
        await endpoint.until_ready(200, "workers: 1")


async def test_a_server_that_needs_an_extension_is_not_ready_without_one(fleet: Fleet) -> None:
    with served(fleet, "--plugin", str(PROBE), "--browser", "none") as server:
        await server.until_ready(503, "no extension is connected")


# --- with a browser ---


class LateResults:
    """A socket that delivers results once `let` is set, and sets `held` until then."""

    def __init__(self) -> None:
        self.held, self.let = anyio.Event(), anyio.Event()
        self.let.set()

    def wrap(self, socket: Socket) -> Socket:
        self.send_text, self.close = socket.send_text, socket.close
        self._receive = socket.receive_text
        return self

    async def receive_text(self) -> str:
        text = await self._receive()
        if '"method":"tool.result"' in text and not self.let.is_set():
            self.held.set()
            await self.let.wait()
        return text


async def test_a_server_exports_the_hops_of_calls_in_pages_and_its_browser(
    site: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("INFO", "opentabs_py.session.metrics")
    settings = load_settings(port=0, profile=None, headed=False)
    late, again, clock = LateResults(), [f"{site}/again"], StoppableClock()
    seams = Seams(wrap_socket=late.wrap, clock=clock)
    async with (
        export_metrics("127.0.0.1", 0) as attach,
        OpenTabs(plugins=[PROBE], settings=settings, relaunch_urls=again, _seams=seams) as tabs,
    ):
        log = tmp_path / "log"
        log.write_text("\n".join(caplog.messages))
        server = Observed(log)
        await server.until_ready(503, "it is starting")
        attach(tabs)
        await server.until_ready(200, "an extension is connected")
        page = await tabs.open(f"{site}/page")
        await wait_for_document(tabs, page.url)
        await tabs.call("probe_echo", {"value": 1})
        scraped = await server.scrape()
        hops = scraped.labels("opentabs_hop_duration_seconds_count", "hop")
        assert {"server", "server → service worker", "tool", "service worker → server"} <= hops
        assert scraped.value("opentabs_tabs_ready", plugin="probe") == 1
        assert scraped.value("opentabs_browsers") == 1
        assert scraped.value("opentabs_browser_restarts_total") == 0
        assert scraped.value("opentabs_late_messages_total") == 0
        late.let = anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(CallTimeoutError):
                    await tabs.call("probe_echo", {"value": 1})

            tasks.start_soon(call)
            with anyio.fail_after(PATIENT):
                await late.held.wait()
            clock.stop()
            await clock.advance(settings.limits.idle, tabs.internals.bridge.calls.settle)
            clock.resume()
        late.let.set()
        await server.until(lambda now: now.value("opentabs_late_messages_total") == 1)

        await tabs.context.close()
        await server.until_ready(503, "no extension is connected")
        assert (await server.scrape()).value("opentabs_browsers_connected") == 0
        await tabs.browser.relaunch()
        await server.until_ready(200, "an extension is connected")
        scraped = await server.scrape()
        assert scraped.value("opentabs_browsers_connected") == 1
        assert scraped.value("opentabs_browser_restarts_total") == 1


async def test_a_worker_is_not_ready_while_one_of_its_browsers_is_gone(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chromium = tmp_path / "chromium"
    chromium.symlink_to(configured_chromium(load_settings()))
    monkeypatch.setenv("OPENTABS_CHROMIUM", str(chromium))
    process = fleet.worker("pair", "--metrics", "0", "--plugin", str(PROBE), "--browsers", "2")
    pair = Observed(process.log)
    await pair.until_ready(200, "browsers connected: 2")
    scraped = await pair.scrape()
    assert scraped.value("opentabs_browsers_connected") == 2
    assert scraped.value("opentabs_tabs_ready", plugin="probe") == 0

    chromium.rename(tmp_path / "away")  # so that it cannot be relaunched
    browser = min(pid for pid in descendants(process.process.pid) if is_browser(pid))
    os.kill(browser, signal.SIGKILL)
    down = await pair.until(lambda now: now.value("opentabs_browsers_connected") == 1)
    assert down.value("opentabs_ready") == 0
    status, why = await pair.get("/readyz")
    assert (status, why[:-2]) == (503, "not ready: not connected: browser-")

    (tmp_path / "away").rename(chromium)
    await pair.until_ready(200, "browsers connected: 2")
    assert (await pair.scrape()).value("opentabs_browser_restarts_total") == 1
