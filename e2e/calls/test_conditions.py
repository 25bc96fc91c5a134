"""The chain keeps working whatever the machine and the browser do to it, short of failing."""

import os
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.chain import PROBE, Tab, extension_worker, wait_for_document
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs

MANY = 300 if "SOAK" in os.environ else 30
AT_ONCE = 5
HOUR = 3600.0
STEPS = [{"report": {"progress": 1}}, {"wait": 300}, {"report": {"progress": 2}}, {"wait": 300}]


async def test_many_tabs_come_leave_and_go_while_a_call_continues(tab: Tab, site: str) -> None:
    numbers = iter(range(MANY))

    async def come_and_go() -> None:
        for number in numbers:
            page = await tab.tabs.context.new_page()
            await page.goto(f"{site}/many-{number}")
            await page.goto(f"{site.replace('127.0.0.1', 'localhost')}/left-{number}")
            await page.close()

    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 5_000}, {"report": {}}] * 50, "beside")
        async with anyio.create_task_group() as visitors:
            for _ in range(AT_ONCE):
                visitors.start_soon(come_and_go)
        assert not running.ended.is_set()
        assert await tab.call("echo", {"value": MANY}) == {"value": MANY}
        with anyio.fail_after(PATIENT):
            while len(tab.tabs.internals.bridge.tabs.documents) > 1:
                await tab.tabs.internals.bridge.changed().wait()
        group.cancel_scope.cancel()
    assert [each.tab_id for each in tab.tabs.internals.bridge.tabs.documents] == [tab.id]
    assert tab.tabs.internals.bridge.calls.dispatch.pending == 0


@pytest.mark.parametrize("hours", [1, -1], ids=["forward", "back"])
@pytest.mark.parametrize("whose", ["server", "browser"])
async def test_a_clock_that_jumps_ends_no_call_and_the_next_record_is_right(
    whose: str,
    hours: int,
    open_tab: Callable[..., Any],
    records: list[CallRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tab: Tab = await open_tab()
    worker = await extension_worker(tab.tabs)
    now = time.time
    async with anyio.create_task_group() as group:
        running = await tab.start(group, STEPS, whose)
        await running.wait_for_report()
        if whose == "server":
            monkeypatch.setattr(time, "time", lambda: now() + hours * HOUR)
        else:
            await worker.evaluate(
                """ms => {
                  globalThis.steady = [Date.now, performance.now];
                  const [date, performed] = [Date.now(), performance.now()];
                  const began = steady[1].call(performance);
                  const passed = () => steady[1].call(performance) - began;
                  Date.now = () => date + ms + passed();
                  performance.now = () => performed + ms + passed();
                }""",
                hours * HOUR * 1000,
            )
        await running.wait()
        assert await tab.call("echo", {"value": hours}) == {"value": hours}
    if whose == "browser":
        await worker.evaluate("[Date.now, performance.now] = steady")

    assert running.value == {"key": whose, "result": whose}
    assert [report.progress for report in running.reports] == [1, 2]
    during, after = (record.waterfall().spans for record in records)
    assert all(span.seconds >= 0 for span in during)  # the jump may be within one of them
    assert 0 < sum(span.seconds for span in after) < HOUR


@pytest.fixture
def small_disk(short_path: Path) -> Generator[Path]:
    """A separate disk, which only root can mount."""
    place = short_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a disk cannot be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> None:
    """Fill a disk completely."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 10, 1):
            with suppress(OSError):
                while True:
                    filler.write(bytes(size))


async def test_tools_continue_when_the_disk_of_the_profile_is_full(
    site: str, small_disk: Path
) -> None:
    settings = load_settings(port=0, profile=small_disk / "profile")
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        await tabs.open(f"{site}/before")
        fill(small_disk)
        page = await tabs.context.new_page()
        await page.goto(f"{site}/full")
        tab = Tab(page, (await wait_for_document(tabs, page.url)).tab_id, tabs)
        assert await tab.call("echo", {"value": 1}) == {"value": 1}
        await tab.kill_worker("sigkill")
        assert await tab.call("echo", {"value": 2}) == {"value": 2}


async def test_a_profile_on_a_full_disk_is_an_error_that_says_so(small_disk: Path) -> None:
    fill(small_disk)
    settings = load_settings(port=0, profile=small_disk / "profile")
    with pytest.raises(BrowserError, match="No space left on device"):
        async with OpenTabs(plugins=[PROBE], settings=settings):
            pass
