"""Calls in pages that crash end at once, whatever else crashed with them."""

import os
import signal
from collections.abc import AsyncGenerator

import anyio
import pytest

from e2e.chain import PROBE, Tab, wait_for_document
from e2e.processes import browser_process, command_line, descendants
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs


@pytest.fixture
async def own() -> AsyncGenerator[OpenTabs]:
    """A chain that the test can break."""
    async with OpenTabs(plugins=[PROBE], settings=load_settings(port=0)) as running:
        yield running


def renderers(tabs: OpenTabs) -> set[int]:
    """Return the renderer processes of a browser: its pages and extensions."""
    browser = browser_process(tabs.extension_dir)
    return {pid for pid in descendants(browser) if "--type=renderer" in command_line(pid)}


async def open_tab(tabs: OpenTabs, url: str) -> Tab:
    page = await tabs.context.new_page()
    await page.goto(url)
    return Tab(page, (await wait_for_document(tabs, url)).tab_id, tabs)


async def test_calls_end_at_once_when_every_renderer_is_killed(site: str, own: OpenTabs) -> None:
    tabs = [await open_tab(own, f"{site}/all-{number}") for number in range(2)]
    async with anyio.create_task_group() as group:
        calls = [await tab.start(group, [{"wait": 60_000}], "crash") for tab in tabs]
        for pid in renderers(own):
            os.kill(pid, signal.SIGKILL)
        for call in calls:
            await call.wait()

    assert [call.error and call.error.detail.code for call in calls] == ["PAGE_CRASHED"] * 2
    after = await open_tab(own, f"{site}/after")
    assert await after.call("echo", {"value": 1}) == {"value": 1}


async def test_a_page_that_dies_with_the_worker_ends_only_its_own_calls(
    site: str, own: OpenTabs
) -> None:
    lives = await open_tab(own, f"{site}/lives")
    # Other sites have other processes.
    dies = await open_tab(own, f"{site.replace('127.0.0.1', 'localhost')}/dies")
    cdp = await own.context.new_cdp_session(dies.page)
    async with anyio.create_task_group() as group:
        kept = await lives.start(group, [{"wait": 500}], "kept")
        lost = await dies.start(group, [{"wait": 60_000}], "lost")
        await lives.kill_worker("sigkill")
        with anyio.move_on_after(1):  # the answer dies with the page
            await cdp.send("Page.crash")
        await lost.wait()
        await kept.wait()

    assert lost.error is not None
    assert lost.error.detail.code == "PAGE_CRASHED"
    assert kept.value == {"key": "kept", "result": "kept"}
