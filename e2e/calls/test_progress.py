"""Progress crosses every hop in order, and no failure of it affects the result."""

from itertools import pairwise
from typing import Any

import anyio
import httpx2
import psutil
import pytest
from mcp.client import Client
from mcp.types import CallToolResult

from e2e.chain import HOLD, Advance, Tab
from e2e.waiting import PATIENT
from opentabs_py.core.limits import IDLE
from opentabs_py.core.progress import ProgressReport


async def test_each_report_reaches_the_client_in_order_before_the_result(
    tab: Tab, client: Client
) -> None:
    got: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, total, message))

    steps = [{"report": {"progress": n, "total": 5, "message": f"page {n}"}} for n in range(1, 6)]
    result = await client.call_tool(
        "probe_run", {"steps": steps, "tabId": tab.id}, progress_callback=note
    )

    assert not result.is_error
    assert got == [(n, 5, f"page {n}") for n in range(1, 6)]


async def test_what_a_client_is_sent_increases_whatever_the_tool_reports(
    tab: Tab, client: Client
) -> None:
    got: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        got.append((progress, total, message))

    steps = [{"report": {"progress": n, "message": f"at {n}"}} for n in (3, 1, 3, 2)]
    await client.call_tool("probe_run", {"steps": steps, "tabId": tab.id}, progress_callback=note)

    assert [message for _, _, message in got] == ["at 3", "at 1", "at 3", "at 2"]
    assert all(a < b for (a, _, _), (b, _, _) in pairwise(got))


async def test_a_flood_is_thinned_for_the_client_and_its_last_report_arrives(
    tab: Tab, client: Client
) -> None:
    got: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        got.append(progress)

    arguments = {"steps": [{"flood": 5_000}], "tabId": tab.id}
    await client.call_tool("probe_run", arguments, progress_callback=note)

    assert len(got) < 100
    assert got == sorted(got)
    assert got[-1] == 5_000


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_without_a_token_the_client_gets_none_and_the_timer_resets_all_the_same(
    tab: Tab, mode: str, advance: Advance
) -> None:
    heard: list[Any] = []
    results: list[CallToolResult] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async def call() -> None:
        async with Client(tab.tabs.mcp_url, mode=mode, message_handler=hear) as quiet:
            arguments = {"key": "quiet", "steps": [HOLD], "tabId": tab.id}
            results.append(await quiet.call_tool("probe_run", arguments))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await tab.page.wait_for_function("'quiet' in probe.runs")
        for number in range(3):
            await advance(IDLE - 0.1)
            await tab.page.evaluate("probe.report({ progress: 1 })")
            # Messages never overtake each other, so this proves that the server has the report.
            await tab.call("echo", {"value": number})
        await tab.release("quiet")

    assert not results[0].is_error, results[0].content
    assert not [message for message in heard if "progress" in repr(message)]


async def test_ten_thousand_reports_in_a_loop_arrive_in_order_and_none_is_lost(tab: Tab) -> None:
    reports: list[ProgressReport] = []

    await tab.call("run", {"steps": [{"flood": 10_000}]}, on_progress=reports.append)

    assert [report.progress for report in reports] == list(range(1, 10_001))
    assert [report.seq for report in reports] == list(range(10_000))


async def test_thirty_thousand_reports_in_a_loop_leave_the_call_alive(tab: Tab) -> None:
    reports: list[ProgressReport] = []

    value = await tab.call(
        "run", {"steps": [{"flood": 30_000}], "result": "done"}, on_progress=reports.append
    )

    assert value["result"] == "done"
    assert reports[-1].progress == 30_000


async def test_a_flood_of_long_reports_takes_a_bounded_amount_of_memory(tab: Tab) -> None:
    def resident() -> float:
        """Return the resident memory of this process, and so of the server, in MiB."""
        return psutil.Process().memory_info().rss / 2**20

    before = resident()
    most = before
    count = 0

    def take(_: ProgressReport) -> None:
        nonlocal most, count
        count += 1
        most = max(most, resident())

    value = await tab.call(
        "run", {"key": "long", "steps": [{"flood": 20_000, "size": 4000}]}, on_progress=take
    )  # 80 MB of reports, made without a pause

    assert value["key"] == "long"
    assert count > 1000
    assert most - before < 40


async def test_another_call_goes_through_during_a_flood(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{**HOLD, "flood": 2_000}], "flood")
        await running.wait_for_report()

        assert await tab.call("echo", {"value": 1}) == {"value": 1}
        assert not running.ended.is_set()

        await tab.release("flood")
        await running.wait()
    numbers = [report.seq for report in running.reports]
    assert numbers == sorted(set(numbers))
    assert running.reports[-1].progress == 2_000  # only older ones may be dropped


async def test_malformed_reports_reset_the_timer_and_do_not_affect_the_result(tab: Tab) -> None:
    reports: list[ProgressReport] = []

    value = await tab.call(
        "run", {"steps": [{"hostile": True}], "result": "whole"}, on_progress=reports.append
    )

    assert value["result"] == "whole"
    assert len(reports) == 8
    assert reports[6].progress == 1
    assert len(reports[6].message or "") == 4096
    assert [r.progress for r in reports if r.progress is not None] == [1]


async def test_a_report_arrives_while_the_page_is_still_blocked(tab: Tab) -> None:
    arrived = anyio.Event()
    ended = anyio.Event()

    async def run() -> None:
        steps = [{"report": {"progress": 1}}, {"block": 1500}]
        await tab.call("run", {"steps": steps}, on_progress=lambda _: arrived.set())
        ended.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.fail_after(PATIENT):
            await arrived.wait()
        assert not ended.is_set()


async def test_a_client_that_hangs_up_its_stream_does_not_end_an_initialize_era_call(
    tab: Tab,
) -> None:
    headers = {"accept": "application/json, text/event-stream"}
    init = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    call = {
        "name": "probe_run",
        "arguments": {
            "key": "hung-up",
            "tabId": tab.id,
            "steps": [{"report": {"progress": 1}}, {"wait": 300}, {"report": {"progress": 2}}],
        },
        "_meta": {"progressToken": "token"},
    }
    url = tab.tabs.mcp_url
    async with httpx2.AsyncClient(headers=headers) as http:
        answer = await http.post(
            url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": init}
        )
        http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
        await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        request = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        async with http.stream("POST", url, json=request) as stream:
            async for line in stream.aiter_lines():
                if "notifications/progress" in line:
                    break  # and hang up

    await tab.page.wait_for_function("probe.finished['hung-up']")
    assert await tab.page.evaluate("probe.aborted") == {}


@pytest.mark.parametrize("breakage", ["relay", "runtime"])
async def test_a_broken_progress_hop_does_not_affect_the_result(tab: Tab, breakage: str) -> None:
    """The service worker dies between two reports, or the page drops its reports."""
    async with anyio.create_task_group() as group:
        steps = [{"report": {"progress": 1}}, HOLD, {"report": {"progress": 2}}]
        running = await tab.start(group, steps, breakage)
        if breakage == "relay":
            await tab.kill_worker()
        else:
            await tab.page.evaluate(
                "() => { EventTarget.prototype.dispatchEvent = () => { throw 1; }; }"
            )
        await tab.release(breakage)
        await running.wait()

    assert running.error is None
    assert running.value["result"] == breakage
    assert [report.progress for report in running.reports] == [1, 2]
