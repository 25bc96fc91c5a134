"""Calls are recorded as they happened, and the page that shows them works in a browser."""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import ConsoleMessage, Page, Request, expect

from e2e.chain import HOLD, Advance, Tab, another_worker
from e2e.waiting import PATIENT
from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.limits import IDLE
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.hops import HOPS
from opentabs_py.core.trace.record import CallRecord, ProgressMark
from opentabs_py.errors import ErrorDetail
from opentabs_py.session.session import OpenTabs
from opentabs_py.tracing.chrome import to_chrome
from opentabs_py.tracing.file import TraceWriter, read_trace
from opentabs_py.tracing.html import to_html
from opentabs_py.tracing.waterfall import report
from tests.tracing.examples import ALL, SUCCEEDED, TIMED_OUT, later

pytestmark = pytest.mark.anyio

DOWN = [hop for hop, _ in HOPS[1:5]]  # a record has no timestamps of its client
WHOLE = [hop for hop, _ in HOPS[1:9]]
HANG = [{"wait": 60_000}]


def hops(record: CallRecord) -> list[str]:
    return [span.hop for span in record.waterfall().spans]


# --- what is recorded ---


async def test_a_call_that_succeeds_is_recorded_with_every_hop_and_report(
    tab: Tab, records: list[CallRecord]
) -> None:
    steps = [{"report": {"progress": n, "total": 2, "message": f"page {n}"}} for n in (1, 2)]
    await tab.call("run", {"steps": steps})
    (record,) = records
    assert (record.name, record.plugin, record.tool) == ("probe_run", "probe", "run")
    assert (record.outcome, record.reached) == ("succeeded", "answer")
    assert hops(record) == WHOLE
    assert all(not span.unfinished for span in record.waterfall().spans)
    assert [(mark.progress, mark.message) for mark in record.progress] == [
        (1.0, "page 1"),
        (2.0, "page 2"),
    ]
    assert (record.tab_id, record.attempts, record.service_worker_restarts) == (tab.id, 1, 0)
    assert record.url == tab.page.url.partition("#")[0]


async def test_what_a_plugin_logs_during_a_call_is_recorded(
    tab: Tab, records: list[CallRecord]
) -> None:
    logged = anyio.Event()

    class Logged(CallObserver):
        def on_log(self, _entries: Sequence[LogEntry], /) -> None:
            logged.set()

    async def call() -> None:
        arguments = {"tabId": tab.id, "key": "logs", "steps": HANG}
        await tab.tabs.internals.tool_calls.call("probe_run", arguments, observers=[Logged()])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await tab.page.wait_for_function("'logs' in probe.runs")
        await tab.call("log", {"count": 2})
        with anyio.fail_after(PATIENT):
            await logged.wait()
        tasks.cancel_scope.cancel()
    assert [log.message for log in records[-1].logs] == ["log 0", "log 1"]


async def test_a_tools_error_is_recorded_as_an_answer(tab: Tab, records: list[CallRecord]) -> None:
    error = await tab.fail("fail", {"kind": "tool"})
    (record,) = records
    assert (record.outcome, record.error, record.reached) == ("failed", error.detail, "answer")
    assert hops(record) == WHOLE


async def test_a_silent_tool_that_times_out_is_recorded_as_reached_and_not_answering(
    tab: Tab, records: list[CallRecord], advance: Advance
) -> None:
    async with anyio.create_task_group() as tasks:
        running = await tab.start(tasks, HANG, "silent")
        await advance(IDLE)
        await running.wait()
    (record,) = records
    assert (record.outcome, record.timer, record.reached) == ("timed_out", "idle", "page")
    *before, tool = record.waterfall().spans
    assert [span.hop for span in before] == DOWN
    assert (tool.hop, tool.unfinished) == ("tool", True)
    assert record.left is not None
    assert record.left.idle == 0.0 < record.left.ceiling


async def test_a_tab_closed_during_a_call_is_recorded_as_a_loss_after_the_page_was_reached(
    tab: Tab, records: list[CallRecord]
) -> None:
    async with anyio.create_task_group() as tasks:
        running = await tab.start(tasks, HANG, "closed")
        await tab.page.close()
        await running.wait()
    (record,) = records
    assert record.error is not None
    assert (record.outcome, record.error.code) == ("lost", "TAB_CLOSED")
    assert (record.reached, hops(record)[-1]) == ("page", "tool")


async def test_a_call_that_is_cancelled_is_recorded_as_such(
    tab: Tab, records: list[CallRecord]
) -> None:
    async with anyio.create_task_group() as tasks:
        # The page's receipt may arrive after its tool has begun, but no report arrives before it.
        running = await tab.start(tasks, [{"report": {}}, *HANG], "cancelled")
        await running.wait_for_report()
        tasks.cancel_scope.cancel()
    assert [(record.outcome, record.reached) for record in records] == [("cancelled", "page")]


async def test_a_service_worker_killed_during_a_call_is_recorded_as_restarted(
    tab: Tab, records: list[CallRecord]
) -> None:
    steps = [{"report": {"progress": 1}}, HOLD, {"report": {"progress": 2}}]
    async with anyio.create_task_group() as tasks:
        running = await tab.start(tasks, steps, "killed")
        await running.wait_for_report()
        async with another_worker(tab.tabs.internals.bridge):
            await tab.kill_worker()
        await tab.release("killed")
        await running.wait()
    (record,) = records
    assert (record.outcome, record.service_worker_restarts) == ("succeeded", 1)
    assert [link.boot_id is None for link in record.links] == [False, True, False]
    assert hops(record) == WHOLE


async def test_recorded_calls_can_be_written_read_and_shown_in_every_way(
    tab: Tab, records: list[CallRecord], tmp_path: Path
) -> None:
    await tab.call("echo", {"value": 1})
    await tab.fail("fail", {"kind": "plain"})
    with TraceWriter(tmp_path / "trace.jsonl", version="1") as writer:
        for record in records:
            writer.write(record)
    read = read_trace(writer.path).records
    assert read == tuple(records)
    assert "✓ probe_echo" in report(read[0])
    assert "reached    all the way" in report(read[1])
    events = json.loads(to_chrome(read))["traceEvents"]
    assert {event["name"] for event in events} >= {"probe_echo", "probe_fail", *WHOLE}


# --- the page that shows them ---


class Viewer:
    """The page, with its errors and its requests."""

    def __init__(self, page: Page, directory: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        self.rows = page.get_by_role("option")
        self.details = page.get_by_role("complementary")
        self._file = directory / "trace.html"
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", self._note_request)

    def _note_console(self, message: ConsoleMessage) -> None:
        self.said.append(message.text)

    def _note_request(self, request: Request) -> None:
        self.asked.append(request.url)

    async def show(self, *records: CallRecord) -> None:
        self._file.write_text(to_html(records, title="trace.jsonl"))
        await self.page.goto(self._file.as_uri())

    async def style(self, selector: str, name: str) -> str:
        value: str = await self.page.evaluate(
            "([selector, name]) => getComputedStyle(document.querySelector(selector))[name]",
            [selector, name],
        )
        return value

    async def ticks(self) -> list[str]:
        """Read the axis, once it stands still."""
        frames = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
        await self.page.evaluate(frames)
        return await self.page.locator(".tick").all_text_contents()


@pytest.fixture
async def viewer(tabs: OpenTabs, tmp_path: Path) -> AsyncGenerator[Viewer]:
    page = await tabs.context.new_page()
    await page.set_viewport_size({"width": 1300, "height": 800})
    shown = Viewer(page, tmp_path)
    yield shown
    assert shown.said == []
    assert [url for url in shown.asked if not url.startswith(("file:", "data:"))] == []
    await page.close()


async def test_every_call_has_a_row_and_the_first_that_failed_its_details(viewer: Viewer) -> None:
    await viewer.show(*ALL)
    await expect(viewer.rows).to_have_count(len(ALL))
    await expect(viewer.details).to_contain_text("TIMEOUT_IDLE")
    await expect(viewer.details.locator("[aria-current=step]")).to_have_text("Page")
    await expect(viewer.details).to_contain_text("tool (ended here)")
    await expect(viewer.details).to_contain_text("0.0 of 2 s left")
    await expect(viewer.details).to_contain_text("12 more did not arrive")
    await expect(viewer.details).to_contain_text("The service worker was restarted once.")


async def test_a_real_calls_hops_are_in_its_details(
    viewer: Viewer, tab: Tab, records: list[CallRecord]
) -> None:
    await tab.call("echo", {"value": 1})
    await viewer.show(*records)
    await expect(viewer.details.locator(".hops th")).to_have_text(WHOLE)


async def test_what_a_page_wrote_is_shown_as_text_and_runs_nowhere(viewer: Viewer) -> None:
    text = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
    said = (ProgressMark(0.5, 0, message=text),)
    error = ErrorDetail(text, text)
    record = replace(TIMED_OUT, name=text, error=error, progress=said, result=text)
    await viewer.show(record)
    await expect(viewer.rows).to_contain_text(text)
    await expect(viewer.details.get_by_text(text)).to_have_count(5)
    await expect(viewer.page.locator("img")).to_have_count(0)


async def test_calls_are_filtered_by_what_they_say_and_how_they_ended(viewer: Viewer) -> None:
    await viewer.show(*ALL)
    query = viewer.page.get_by_role("searchbox")
    await query.fill("demo tab_closed")
    await expect(viewer.rows).to_have_count(1)
    await expect(viewer.page.get_by_role("status")).to_have_text(f"1 of {len(ALL)} shown")
    await query.fill("no such call")
    await expect(viewer.page.get_by_text("No call matches.")).to_be_visible()
    await query.fill("")
    chip = viewer.page.get_by_role("button", name=re.compile("timed out"))
    await chip.click()
    await expect(chip).to_have_attribute("aria-pressed", "false")
    await expect(viewer.rows).to_have_count(len(ALL) - 1)


async def test_calls_are_chosen_with_the_keyboard(viewer: Viewer) -> None:
    await viewer.show(*ALL)
    chosen = viewer.page.locator("[role=option][aria-selected=true]")
    await viewer.page.get_by_role("listbox").focus()
    await viewer.page.keyboard.press("Home")
    await expect(chosen).to_have_attribute("aria-posinset", "1")
    await viewer.page.keyboard.press("ArrowDown")
    await viewer.page.keyboard.press("ArrowDown")
    await expect(chosen).to_have_attribute("aria-posinset", "3")
    await expect(viewer.details).to_contain_text("RATE_LIMITED")
    await viewer.page.keyboard.press("/")
    await expect(viewer.page.get_by_role("searchbox")).to_be_focused()


async def test_the_axis_is_zoomed_and_moved_with_keys_wheel_buttons_and_drags(
    viewer: Viewer,
) -> None:
    await viewer.show(*ALL)
    whole = await viewer.ticks()
    ruler = await viewer.page.locator("#ticks").bounding_box()
    assert ruler is not None
    y = ruler["y"] + 5
    await viewer.page.get_by_role("listbox").focus()
    seen = [whole]
    for key in ("Enter", "+", "ArrowRight", "-"):
        await viewer.page.keyboard.press(key)
        seen.append(await viewer.ticks())
    await viewer.page.mouse.move(ruler["x"] + 100, y)
    await viewer.page.mouse.wheel(0, -400)
    seen.append(await viewer.ticks())
    await viewer.page.mouse.down()
    await viewer.page.mouse.move(ruler["x"] + 200, y, steps=4)
    await viewer.page.mouse.up()
    seen.append(await viewer.ticks())
    assert all(before != after for before, after in pairwise(seen))
    await viewer.page.get_by_role("button", name="Fit").click()
    assert await viewer.ticks() == whole


async def test_a_drag_that_the_browser_takes_over_changes_nothing(viewer: Viewer) -> None:
    await viewer.show(*ALL)
    whole = await viewer.ticks()
    ruler = await viewer.page.locator("#ticks").bounding_box()
    assert ruler is not None
    x, y = ruler["x"] + 100, ruler["y"] + 5
    await viewer.page.mouse.move(x, y)
    await viewer.page.mouse.down()
    await viewer.page.mouse.move(x + 100, y, steps=4)
    await expect(viewer.page.locator("#range")).to_be_visible()
    await viewer.page.evaluate(
        "(clientX) => dispatchEvent(new PointerEvent('pointercancel', { clientX }))", x + 100
    )
    await expect(viewer.page.locator("#range")).to_be_hidden()
    await viewer.page.mouse.up()
    assert await viewer.ticks() == whole


async def test_what_is_under_the_pointer_is_shown(viewer: Viewer) -> None:
    await viewer.show(SUCCEEDED)
    await viewer.page.keyboard.press("Enter")
    await viewer.ticks()
    mark = await viewer.rows.locator(".report").nth(1).bounding_box()
    assert mark is not None
    await viewer.page.mouse.move(mark["x"] + 1, mark["y"] + 2)
    tip = viewer.page.get_by_role("tooltip")
    await expect(tip).to_contain_text("tool")
    await expect(tip).to_contain_text("2 / 3  page 2")
    await expect(tip).to_contain_text("warning: a slow page")


async def test_light_and_dark_are_the_systems_until_the_reader_chooses(viewer: Viewer) -> None:
    await viewer.page.emulate_media(color_scheme="light")
    await viewer.show(SUCCEEDED)
    light = await viewer.style("body", "backgroundColor")
    await viewer.page.emulate_media(color_scheme="dark")
    dark = await viewer.style("body", "backgroundColor")
    assert light != dark
    await viewer.page.keyboard.press("t")
    assert await viewer.style("body", "backgroundColor") == light


@pytest.mark.parametrize("width", [320, 800, 2560])
async def test_nothing_is_wider_than_the_window(viewer: Viewer, width: int) -> None:
    await viewer.page.set_viewport_size({"width": width, "height": 700})
    await viewer.show(*ALL)
    await viewer.rows.nth(1).click()
    await expect(viewer.details).to_be_visible()
    size: dict[str, Any] = await viewer.page.evaluate(
        "({ page: document.documentElement.scrollWidth,"
        " details: document.getElementById('details').scrollWidth -"
        " document.getElementById('details').clientWidth })"
    )
    assert size == {"page": width, "details": 0}


async def test_of_two_thousand_calls_only_those_that_are_seen_are_drawn(viewer: Viewer) -> None:
    calls = [replace(later(SUCCEEDED, n), call_id=f"{n:032x}") for n in range(2000)]
    await viewer.show(*calls)
    await expect(viewer.rows.first).to_have_attribute("aria-setsize", "2000")
    assert await viewer.rows.count() < 60
    await viewer.page.keyboard.press("End")
    last = viewer.page.locator("[role=option][aria-selected=true]")
    await expect(last).to_have_attribute("aria-posinset", "2000")
    await expect(last).to_be_in_viewport()
    assert await viewer.rows.count() < 60


async def test_a_trace_without_calls_says_so(viewer: Viewer) -> None:
    await viewer.show()
    await expect(viewer.page.get_by_text("no calls", exact=True)).to_be_visible()
