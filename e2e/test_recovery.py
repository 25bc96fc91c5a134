"""Nothing is lost when a hop dies, and no tool runs twice."""

from pathlib import Path

import anyio
import pytest

from e2e.chain import PATIENT, PROBE, Tab, wait_for_document
from opentabs_py.browser.chromium import find_chromium
from opentabs_py.browser.launch import LaunchPlan, launch_browser
from opentabs_py.config import load_settings
from opentabs_py.session import OpenTabs


async def test_a_worker_killed_mid_call_loses_nothing(tab: Tab) -> None:
    steps = [{"report": {"progress": n}} if n % 2 else {"wait": 100} for n in range(12)]
    async with anyio.create_task_group() as group:
        running = await tab.start(group, steps, "killed")
        await tab.kill_worker()
        await running.wait()

    assert running.error is None
    assert running.value == {"key": "killed", "result": "killed"}
    assert [report.progress for report in running.reports] == [1, 3, 5, 7, 9, 11]
    assert await tab.page.evaluate("probe.runs") == {"killed": 1}


async def test_a_result_made_while_the_worker_is_dead_arrives(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"block": 600}, {"report": {"progress": 1}}], "dead")
        await tab.kill_worker()
        await running.wait()

    assert running.value == {"key": "dead", "result": "dead"}
    assert [report.seq for report in running.reports] == [0]


async def test_a_dropped_websocket_loses_nothing(tab: Tab, tabs: OpenTabs) -> None:
    steps = [{"report": {"progress": n}} if n % 2 else {"wait": 100} for n in range(12)]
    async with anyio.create_task_group() as group:
        running = await tab.start(group, steps, "dropped")
        tabs.bridge.disconnect(4999, "a test drops it")
        await running.wait()

    assert running.value == {"key": "dropped", "result": "dropped"}
    assert [report.progress for report in running.reports] == [1, 3, 5, 7, 9, 11]
    assert await tab.page.evaluate("probe.runs") == {"dropped": 1}


@pytest.mark.parametrize("seed", range(6))
async def test_eight_calls_survive_workers_killed_again_and_again(tab: Tab, seed: int) -> None:
    steps = [{"report": {"progress": n}} if n % 2 else {"wait": 60} for n in range(20)]
    async with anyio.create_task_group() as group:
        running = [await tab.start(group, steps, f"{seed}-{n}") for n in range(8)]
        for _ in range(3):
            await tab.kill_worker()
            await tab.page.wait_for_timeout(30 * seed)
        for call in running:
            await call.wait()

    for number, call in enumerate(running):
        assert call.error is None
        assert call.value["key"] == f"{seed}-{number}"
        assert [report.progress for report in call.reports] == list(range(1, 20, 2))
    assert set((await tab.page.evaluate("probe.runs")).values()) == {1}


async def test_a_call_made_while_the_link_is_down_waits_for_it(tab: Tab, tabs: OpenTabs) -> None:
    tabs.bridge.disconnect(4999, "a test drops it")
    while tabs.bridge.connected:
        await tabs.bridge.changed().wait()

    assert await tab.call("echo", {"value": 1}) == {"value": 1}


async def test_settled_calls_are_forgotten_on_every_hop(tab: Tab, tabs: OpenTabs) -> None:
    for number in range(5):
        await tab.call("echo", {"value": number})
    tabs.bridge.disconnect(4999, "the next hello names what is still known")
    while tabs.bridge.connected:
        await tabs.bridge.changed().wait()
    await tabs.bridge.wait_connected()

    assert tabs.bridge.dispatch.pending == 0
    assert [call for document in tabs.bridge.tabs.documents for call in document.calls] == []


async def test_the_extension_comes_back_to_a_restarted_server_and_its_old_calls_are_aborted(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    settings = load_settings(port=0)
    async with OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as staged:
        extension = staged.extension_dir
        port = int(staged.mcp_url.split(":")[2].split("/")[0])
    settings = load_settings(port=port)
    profile = tmp_path / "profile"
    plan = LaunchPlan(find_chromium().path, extension, profile, scratch=tmp_path)
    async with launch_browser(plan) as context:
        page = context.pages[0]
        async with OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as first:
            with anyio.fail_after(PATIENT):
                await first.bridge.wait_connected()
            await page.goto(f"{site}/restart")
            tab = Tab(page, (await wait_for_document(first, page.url)).tab_id, first)
            async with anyio.create_task_group() as group:
                await tab.start(group, [{"wait": 60_000}], "orphan")
                # The server goes without a word, as when it is killed.
                first.bridge.disconnect(4999, "gone")
                while first.bridge.connected:
                    await first.bridge.changed().wait()
                group.cancel_scope.cancel()

        async with OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as second:
            with anyio.fail_after(PATIENT):
                await second.bridge.wait_connected()
                await wait_for_document(second, page.url)
                await page.wait_for_function("probe.aborted.orphan")
                reason = await page.evaluate("probe.aborted.orphan")
                value = await second.call("probe_echo", {"value": 1})

    assert reason == "nobody waits for this call any more"
    assert value == {"value": 1}
