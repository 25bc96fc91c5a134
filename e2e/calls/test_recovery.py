"""Nothing is lost when a hop dies, and no tool runs twice."""

import json
import logging
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import Process
from mcp.client import Client

from e2e.browser.apart import Apart
from e2e.chain import (
    HOLD,
    KILLS,
    PROBE,
    Running,
    Tab,
    drop_connection,
    mcp_url,
    reconnect,
    wait_for_document,
    wait_until_settled,
)
from e2e.waiting import PATIENT
from opentabs_py.bridge import tab_requests
from opentabs_py.bridge.connection import Socket
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import LATE
from opentabs_py.core.protocol import Message, ToolAck
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs

logger = logging.getLogger(__name__)

# Reports before and after a pause, in which the test breaks something.
LONG = [HOLD if n == 6 else {"report": {"progress": n}} for n in range(1, 12)]


async def test_a_result_made_while_the_worker_is_dead_arrives(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [HOLD, {"report": {"progress": 1}}], "dead")
        await tab.kill_worker()
        await tab.release("dead")
        await running.wait()

    assert running.value == {"key": "dead", "result": "dead"}
    assert [report.seq for report in running.reports] == [0]


async def test_a_dropped_websocket_loses_nothing(tab: Tab, tabs: OpenTabs) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, LONG, "dropped")
        await reconnect(tabs.internals.bridge)
        await tab.release("dropped")
        await running.wait()

    assert running.value == {"key": "dropped", "result": "dropped"}
    assert [report.progress for report in running.reports] == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11]
    assert await tab.page.evaluate("probe.runs") == {"dropped": 1}


@pytest.fixture(scope="module")
def tally(request: pytest.FixtureRequest) -> Generator[Counter[str]]:
    """Counts what the next test does, and prints it at the end, for `make soak`."""
    counts: Counter[str] = Counter()
    yield counts
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and counts:
        reporter.ensure_newline()
        reporter.write_line(
            "{calls} calls in flight eight at a time, {reports:,} reports, {breaks} links broken: "
            "all arrived, in order, once; slowest call {slowest} ms".format_map(counts)
        )


@pytest.mark.parametrize("breakage", ["workers killed", "connections dropped"])
@pytest.mark.parametrize("seed", range(50 if "SOAK" in os.environ else 4))
async def test_eight_calls_lose_nothing_and_run_once_whatever_breaks(
    tab: Tab, seed: int, breakage: str, tally: Counter[str]
) -> None:
    chance = random.Random(seed)
    steps = [{"report": {"progress": n}} if n % 2 else {"wait": 60} for n in range(20)]
    async with anyio.create_task_group() as group:
        calls = [Running() for _ in range(8)]
        for number, call in enumerate(calls):
            group.start_soon(call.run, tab, steps, f"{seed}-{number}")
        for _ in range(3):
            # Any moment from before the first dispatch to after the last acknowledgement.
            await anyio.sleep(chance.uniform(0, 0.4))
            if breakage == "workers killed":
                await tab.kill_worker(chance.choice(KILLS))
            else:
                tab.tabs.internals.bridge.disconnect(4999, "a test drops it")
        for call in calls:
            await call.wait()

    for number, call in enumerate(calls):
        assert call.error is None
        assert call.value["key"] == f"{seed}-{number}"
        assert [report.progress for report in call.reports] == list(range(1, 20, 2))
    runs = await tab.page.evaluate("probe.runs")
    assert {key: runs[key] for key in (f"{seed}-{n}" for n in range(8))} == dict.fromkeys(
        (f"{seed}-{n}" for n in range(8)), 1
    )
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 0
    tally.update(calls=8, reports=sum(len(call.reports) for call in calls), breaks=3)
    tally["slowest"] = max(tally["slowest"], *(round(call.seconds * 1000) for call in calls))


@pytest.mark.parametrize("breakage", ["worker killed", "connection dropped"])
async def test_a_flood_whose_tool_has_ended_continues_where_a_broken_link_left_it(
    tab: Tab, breakage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40_000  # 6 MiB
    connection = tab.tabs.internals.bridge._connection
    assert connection is not None
    send = connection.send

    def send_but_acks(message: Message) -> None:
        if not isinstance(message, ToolAck):
            send(message)

    # So most of the flood stays in the relay until there is a new link, however busy the machine.
    monkeypatch.setattr(connection, "send", send_but_acks)
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"flood": count}], breakage)
        await running.wait_for_report()
        if breakage == "worker killed":
            await tab.kill_worker()
        else:
            tab.tabs.internals.bridge.disconnect(4999, "a test drops it")
        came_before = len(running.reports)
        await running.wait()

    assert came_before < count
    assert running.value == {"key": breakage, "result": breakage}
    assert [report.progress for report in running.reports] == list(range(1, count + 1))


async def test_a_call_made_while_the_link_is_down_waits_for_it(tab: Tab, tabs: OpenTabs) -> None:
    await drop_connection(tabs.internals.bridge)

    assert await tab.call("echo", {"value": 1}) == {"value": 1}


class Heard:
    """A socket that records what the extension sends on it."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self.said: list[Any] = []

    async def receive_text(self) -> str:
        """Receive a message, and record it."""
        text = await self._socket.receive_text()
        self.said.append(json.loads(text))
        return text

    async def send_text(self, data: str) -> None:
        """Send as it is."""
        await self._socket.send_text(data)

    async def close(self, code: int, reason: str) -> None:
        """Close as it is."""
        await self._socket.close(code, reason)


async def test_a_late_answer_of_a_page_goes_to_no_other_connection_than_the_one_that_asked(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab_requests, "QUERY_WITHIN", 0.1)
    links: list[Heard] = []

    def listen(socket: Socket) -> Socket:
        links.append(Heard(socket))
        return links[-1]

    settings = load_settings(port=0)
    async with OpenTabs(
        plugins=[PROBE], settings=settings, _seams=Seams(wrap_socket=listen)
    ) as tabs:
        page = await tabs.open(f"{site}/late")
        tab = Tab(page, (await wait_for_document(tabs, page.url)).tab_id, tabs)
        await page.evaluate("document.body.dataset.ready = 'no'")
        await tab.refuse("echo", {"value": 1})
        await page.evaluate(
            "() => { probe.late = Promise.withResolvers();"
            " __openTabs.adapters.probe.isReady = () => probe.late.promise }"
        )
        await tab.refuse("echo", {"value": 1})  # its question stays unanswered
        tabs.internals.bridge.disconnect(4999, "a test drops it")
        with anyio.fail_after(PATIENT):
            while len(links) < 2 or not links[1].said or not tabs.internals.bridge.connected:
                await tabs.internals.bridge.changed().wait()
        await page.evaluate("probe.late.resolve(true)")
        monkeypatch.undo()
        await tabs.internals.bridge.tab_requests.query("probe")

    answers = [message for message in links[1].said if "documents" in message.get("result", {})]
    assert [answer["id"] for answer in answers] == [2]  # 1 was the question about the plugins


async def test_settled_calls_are_forgotten_on_every_hop(tab: Tab, tabs: OpenTabs) -> None:
    for number in range(5):
        await tab.call("echo", {"value": number})
    await wait_until_settled(tabs)
    await reconnect(tabs.internals.bridge)  # its hello lists what is still known

    assert tabs.internals.bridge.calls.dispatch.pending == 0
    assert [
        call for document in tabs.internals.bridge.tabs.documents for call in document.calls
    ] == []


async def test_the_extension_comes_back_to_a_restarted_server_and_its_old_calls_are_aborted(
    site: str, apart: Apart
) -> None:
    page = apart.page
    async with apart.serve() as first:
        with anyio.fail_after(PATIENT):
            await first.internals.bridge.wait_connected()
        await page.goto(f"{site}/restart")
        tab = Tab(page, (await wait_for_document(first, page.url)).tab_id, first)
        async with anyio.create_task_group() as group:
            await tab.start(group, [{"wait": 60_000}], "orphan")
            # The server disappears without closing, as when it is killed.
            await drop_connection(first.internals.bridge)
            group.cancel_scope.cancel()

    async with apart.serve() as second:
        with anyio.fail_after(PATIENT):
            await second.internals.bridge.wait_connected()
            await wait_for_document(second, page.url)
            await page.wait_for_function("probe.aborted.orphan")
            reason = await page.evaluate("probe.aborted.orphan")
            value = await second.call("probe_echo", {"value": 1})

    assert reason == "the caller is no longer waiting"
    assert value == {"value": 1}


async def test_the_extension_comes_back_though_it_found_no_configuration(apart: Apart) -> None:
    async with apart.serve() as first:
        with anyio.fail_after(PATIENT):
            await first.internals.bridge.wait_connected()
        config = first.extension_dir / "config.json"
        worker = apart.page.context.service_workers[0]
        await worker.evaluate("chrome.alarms.clearAll()")
        kept = config.read_text()
        config.write_text("")

    async def title() -> str:
        return str(await worker.evaluate("chrome.action.getTitle({})"))

    with anyio.fail_after(PATIENT):
        while "not configured" not in await title():  # noqa: ASYNC110 (asked)
            await anyio.sleep(0.02)
    config.write_text(kept)

    async with apart.serve() as second:
        with anyio.fail_after(PATIENT):
            await second.internals.bridge.wait_connected()


async def test_a_result_for_a_server_that_was_killed_is_thrown_away_by_the_next(
    site: str, apart: Apart
) -> None:
    page = apart.page
    command = [sys.executable, "-m", "opentabs_py", "serve", "--browser", "none"]
    command += ["--port", str(apart.port), "--plugin", str(PROBE)]
    async with AsyncExitStack() as stack:
        server = await anyio.open_process(command, stderr=subprocess.DEVNULL)
        stack.push_async_callback(server.aclose)
        stack.callback(kill, server)  # also after an error, which would otherwise wait for it
        url = f"http://127.0.0.1:{apart.port}"
        async with httpx2.AsyncClient() as http:
            with anyio.fail_after(PATIENT):
                while not await is_connected(http, url):  # noqa: ASYNC110 (no event)
                    await anyio.sleep(0.05)
        await page.goto(f"{site}/killed")
        await page.wait_for_function("globalThis.probe")
        async with anyio.create_task_group() as group:

            async def call() -> None:
                with suppress(Exception):  # the client's reaction is not tested here
                    async with Client(f"{url}/mcp") as client:
                        steps = [{"wait": 400}]
                        await client.call_tool("probe_run", {"key": "late", "steps": steps})

            group.start_soon(call)
            await page.wait_for_function("probe.runs.late")
            server.kill()
            group.cancel_scope.cancel()
        await server.wait()
    await page.wait_for_function("probe.finished.late")  # with nobody there to receive it

    async with apart.serve() as second:
        began = anyio.current_time()
        with anyio.fail_after(PATIENT):
            await second.internals.bridge.wait_connected()
        logger.info("The extension was back after %.2f s", anyio.current_time() - began)
        await wait_for_document(second, page.url)
        assert await second.call("probe_echo", {"value": 1}) == {"value": 1}
        await wait_until_settled(second)
        await reconnect(second.internals.bridge)  # its hello lists what is still known
        with anyio.fail_after(PATIENT):
            document = await wait_for_document(second, page.url)
        assert document.calls == []
    assert await page.evaluate("probe.runs.late") == 1


@pytest.mark.parametrize("over", [0, 4_000], ids=["result", "progress"])
async def test_a_server_that_was_stopped_past_a_deadline_reads_what_came_before_it_ends_a_call(
    site: str, over: int
) -> None:
    idle = 4.0
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0"]
    command += ["--plugin", str(PROBE), "--open", f"{site}/stopped", "--idle", str(idle)]
    async with await anyio.open_process(command, stdout=subprocess.DEVNULL) as server:
        try:
            url = await mcp_url(server)
            reported = anyio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
                reported.set()

            steps = [{"report": {"progress": 1}}, {"wait": 600}, {"report": {"progress": 2}}]
            arguments = {"key": "stopped", "steps": [*steps, {"wait": over}], "result": "kept"}
            results: list[Any] = []

            async def call() -> None:
                async with Client(url) as client:
                    results.append(
                        await client.call_tool("probe_run", arguments, progress_callback=note)
                    )

            async with anyio.create_task_group() as group:
                group.start_soon(call)
                with anyio.fail_after(PATIENT):
                    await reported.wait()
                server.send_signal(signal.SIGSTOP)
                await anyio.sleep(idle + LATE + 0.1)
                server.send_signal(signal.SIGCONT)
        finally:
            server.send_signal(signal.SIGCONT)
            server.terminate()
            await server.wait()
    assert results[0].structured_content == {"key": "stopped", "result": "kept"}


def kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def is_connected(http: httpx2.AsyncClient, url: str) -> bool:
    try:
        return bool((await http.get(f"{url}/status")).json()["extension"])
    except httpx2.ConnectError:
        return False


@pytest.mark.parametrize("keep", [False, True])
async def test_tabs_that_clients_opened_are_closed_when_the_server_stops_unless_they_are_kept(
    keep: bool, site: str, apart: Apart
) -> None:
    settings = load_settings(port=apart.port, keep_tabs=keep)
    async with OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as server:
        with anyio.fail_after(PATIENT):
            await server.internals.bridge.wait_connected()
            await apart.page.goto(f"{site}/theirs")
            await server.call("tabs_open", {"url": f"{site}/own"})
    expected = [f"{site}/theirs", *([f"{site}/own"] if keep else [])]
    with anyio.fail_after(PATIENT):  # Playwright learns of a closed tab a little later
        while [page.url for page in apart.page.context.pages] != expected:  # noqa: ASYNC110
            await anyio.sleep(0.05)
