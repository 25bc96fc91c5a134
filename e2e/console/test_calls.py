"""Calls in the console: as they run, while they wait for the user, and without their server."""

import re
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Browser, FloatRect, Page, expect

from e2e.console.opened import console_page, go
from e2e.console.plugins import HOSTILE
from e2e.fleet.members import poll
from e2e.live_page import READ_ALOUD
from e2e.waiting import PATIENT
from opentabs_py import Progress, ToolError, tool
from opentabs_py.audit.file import AuditFile
from opentabs_py.audit.history import read_calls
from opentabs_py.config.paths import audit_file
from opentabs_py.config.settings import load_settings
from opentabs_py.console.history import AT_ONCE
from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.core.audit.retention import Retention
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

PULSE_BEGAN = """async (pulse) => {
  const [animation] = pulse.getAnimations();
  await animation.ready;
  return animation.startTime;
}"""


async def test_calls_of_others_are_shown_as_they_run_and_can_be_ended(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    steps = [{"report": {"progress": 2, "total": 8, "message": "page 2"}}, {"wait": 120_000}]
    failures: list[CallError] = []

    async def call() -> None:
        try:
            await served.call("probe_run", {"key": "theirs", "steps": steps})
        except CallError as error:
            failures.append(error)

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            row = page.get_by_role("option", name="probe_run, running").first
            await expect(row.get_by_role("progressbar")).to_have_js_property("value", 2)
            await expect(row).to_contain_text("page 2")
            await tab.evaluate("probe.report({progress: 6, total: 8, message: 'page 6'})")
            await expect(row).to_contain_text("page 6")
            await row.click()
            details = page.get_by_role("complementary", name="The selected call")
            await expect(details.locator(".pill")).to_have_text("running")
            await expect(details).to_contain_text("The page: the tool is running.")
            await expect(details).not_to_contain_text("ended here")
            await details.get_by_role("button", name="Cancel").click()
    assert failures[0].detail.code == "CANCELLED"
    await expect(details.locator(".pill")).to_have_text("cancelled")


async def test_cancel_keeps_the_pointer_and_the_focus_while_its_call_reports(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    failures: list[CallError] = []

    async def call() -> None:
        steps = [{"report": {"message": "page 1"}}, {"wait": 120_000}]
        try:
            await served.call("probe_run", {"key": "held", "steps": steps})
        except CallError as error:
            failures.append(error)

    async def report(message: str) -> None:
        """Report, and wait until the details show it."""
        await tab.evaluate("(message) => probe.report({message})", message)
        await expect(details).to_contain_text(message)

    details = page.get_by_role("complementary", name="The selected call")
    cancel = details.get_by_role("button", name="Cancel")
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await page.get_by_role("option", name="probe_run, running").first.click()
            await cancel.focus()
            await report("page 2")
            await expect(cancel).to_be_focused()
            await cancel.hover()
            await page.mouse.down()
            await report("page 3")
            await page.mouse.up()
    assert failures[0].detail.code == "CANCELLED"
    await expect(details.locator(".pill")).to_have_text("cancelled")
    await expect(cancel).to_have_count(0)


@pytest.mark.usefixtures("tab")
async def test_a_click_on_a_running_call_counts_although_its_time_changes_meanwhile(
    page: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    steps = [{"wait": 120_000}]
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            for key in ("first", "second"):
                tasks.start_soon(served.call, "probe_run", {"key": key, "steps": steps})
            rows = page.get_by_role("option", name="probe_run, running")
            await rows.nth(1).click()
            other = rows.nth(0)
            wanted = await other.get_attribute("data-key")
            await other.hover()
            await page.mouse.down()
            for _ in range(3):  # the page has drawn its rows again before the last of them
                await page.wait_for_event("response", lambda read: "/calls/" in read.url)
            await page.mouse.up()
            await expect(page).to_have_url(re.compile(f"#/calls/{wanted}$"))
            tasks.cancel_scope.cancel()


async def test_a_running_call_keeps_its_row_and_its_pulse_while_it_changes_and_others_begin(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    steps = [{"report": {"message": "page 1"}}, {"wait": 120_000}]
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.call, "probe_run", {"key": "kept", "steps": steps})
            row = page.get_by_role("option", name="probe_run, running").first
            await expect(row).to_contain_text("page 1")
            await row.evaluate("row => row.isKept = true")
            began = await row.locator(".pulse").evaluate(PULSE_BEGAN)
            time_text = await row.locator(".took").inner_text()
            await expect(row.locator(".took")).not_to_have_text(time_text)
            await tab.evaluate("probe.report({progress: 2, total: 8, message: 'page 2'})")
            await expect(row).to_contain_text("page 2")
            await served.call("probe_echo", {"value": "another row"})
            rows = page.get_by_role("listbox").get_by_role("option")
            await expect(rows.first).to_contain_text("probe_echo")
            await expect(row).to_have_js_property("isKept", True)
            assert await row.locator(".pulse").evaluate(PULSE_BEGAN) == began
            tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("tab")
async def test_a_click_hits_the_call_that_was_aimed_at_although_others_begin(
    page: Page, served: OpenTabs
) -> None:
    await go(page, "calls")
    await served.call("probe_big", {"size": 100})
    row = page.get_by_role("listbox").get_by_role("option").first
    await expect(row).to_have_accessible_name(re.compile("probe_big, succeeded"))
    wanted = await row.get_attribute("data-key")
    count = page.locator(".calls .count")
    before = await count.text_content()
    box = await row.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await page.mouse.move(x, y)
    await served.call("probe_echo", {"value": "another"})
    while await count.text_content() == before:
        x += 1 if x < box["x"] + box["width"] - 9 else -9
        await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.up()
    await expect(page).to_have_url(re.compile(f"#/calls/{wanted}$"))
    await page.mouse.move(0, 0)
    await expect(row).not_to_have_attribute("data-key", wanted or "")


@pytest.mark.usefixtures("tab")
async def test_a_failed_call_opens_with_its_stack_trace_and_its_hops(
    page: Page, served: OpenTabs
) -> None:
    with pytest.raises(CallError):
        await served.call("probe_fail", {"kind": "plain"})
    await go(page, "calls")
    await page.get_by_label("Outcome").select_option("failed")
    await page.get_by_label("Filter calls").fill("probe_fail broke")
    row = page.get_by_role("listbox", name="Calls").get_by_role("option").first
    await expect(row).to_contain_text("something broke")
    await row.click()
    details = page.get_by_role("complementary", name="The selected call")
    await expect(details.locator(".stack")).to_contain_text("something broke")
    await expect(details).to_contain_text("Where the time went")
    await expect(details.get_by_role("row")).not_to_have_count(0)
    await page.get_by_label("Filter calls").fill("nothing like this")
    await expect(page.get_by_text("No call matches.")).to_be_visible()


async def test_a_call_that_asks_waits_for_the_answer_given_here(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    title = f"{'W' * 100} my account"
    await tab.evaluate("(title) => { document.title = title; }", title)
    await go(page, "tabs")
    await expect(page.get_by_text("my account")).to_be_visible()
    gate = served.internals.registry.gate
    gate.set_rules({"forms.where": "ask"})
    values: list[Any] = []

    async def call() -> None:
        arguments = {"title": HOSTILE, "people": []}
        values.append(await served.call("forms_where", arguments))

    try:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await page.get_by_role("link", name="Approvals").click()
                question = page.get_by_role("list", name="Questions").get_by_role("listitem").first
                await expect(question).to_contain_text("wants to use File a report")
                await expect(question.get_by_label("The arguments")).to_contain_text("<img src=x")
                place = question.locator(".badge", has_text="my account")
                assert await place.evaluate("(it) => it.scrollWidth <= it.clientWidth")
                await expect(page).to_have_title("(1) Approvals · OpenTabs")
                await question.get_by_role("button", name="Allow once").click()
        assert values[0]["params"]["title"] == HOSTILE
        await expect(page.get_by_text("Nothing is waiting for you")).to_be_visible()
    finally:
        gate.set_rules({})


@pytest.mark.usefixtures("tab")
async def test_a_question_that_appears_or_moves_ignores_the_mouse_for_a_moment(
    page: Page, served: OpenTabs
) -> None:
    gate = served.internals.registry.gate
    gate.set_rules({"probe.echo": "ask"})
    questions = page.get_by_role("list", name="Questions").get_by_role("listitem")
    allow = questions.get_by_role("button", name="Allow once")
    animations = await page.context.new_cdp_session(page)
    await animations.send("Animation.enable")

    async def click_in_vain(place: FloatRect) -> None:
        count = await questions.count()
        await page.mouse.click(place["x"] + 5, place["y"] + 5, click_count=2)
        await expect(questions).to_have_count(count)
        await expect(allow.first).to_be_enabled()

    try:
        await go(page, "approvals")
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                await animations.send("Animation.setPlaybackRate", {"playbackRate": 0})
                for value in (1, 2):
                    tasks.start_soon(served.call, "probe_echo", {"value": value})
                await expect(questions).to_have_count(2)
                place = await allow.first.bounding_box()
                assert place is not None
                await click_in_vain(place)
                await animations.send("Animation.setPlaybackRate", {"playbackRate": 1})
                for each in await allow.all():
                    await each.hover()
                await animations.send("Animation.setPlaybackRate", {"playbackRate": 0})
                assert gate.questions.answer(gate.questions.waiting[0].id, "once", by="terminal")
                await expect(questions).to_have_count(1)
                assert await allow.bounding_box() == place
                await click_in_vain(place)
                await animations.send("Animation.setPlaybackRate", {"playbackRate": 1})
                await allow.click()
    finally:
        gate.set_rules({})
        await animations.detach()


@pytest.mark.usefixtures("tab")
async def test_a_call_that_waits_for_an_answer_says_so_and_leads_to_it(
    page: Page, served: OpenTabs
) -> None:
    gate = served.internals.registry.gate
    gate.set_rules({"forms.where": "ask"})
    details = page.get_by_role("complementary", name="The selected call")
    try:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(served.call, "forms_where", {"title": "?", "people": []})
                await go(page, "calls")
                calls = page.get_by_role("listbox", name="Calls")
                asking = calls.get_by_role("option", name="waiting for you")
                await expect(asking).to_contain_text("Waiting for your answer")
                await asking.click()
                await expect(details.locator(".pill")).to_have_text("waiting for you")
                await details.get_by_role("link", name="Answer").click()
                await page.get_by_role("button", name="Allow once").click()
        await go(page, "calls")
        await expect(calls.get_by_role("option").first).to_have_accessible_name(
            re.compile("forms_where, succeeded")
        )
        await expect(asking).to_have_count(0)
        await calls.get_by_role("option").first.click()
        await expect(details.locator(".pill")).to_have_text("succeeded")
        await expect(details.get_by_role("link", name="Answer")).to_have_count(0)
    finally:
        gate.set_rules({})


@pytest.mark.usefixtures("tab")
async def test_a_question_is_read_aloud_in_every_view_and_the_seconds_to_answer_are_not(
    page: Page, served: OpenTabs
) -> None:
    gate = served.internals.registry.gate
    gate.set_rules({"forms.version": "ask"})
    try:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                await go(page, "logs")
                await page.evaluate(READ_ALOUD)
                tasks.start_soon(served.call, "forms_version")
                await page.wait_for_function("() => readAloud.length > 0")
                said = await page.evaluate("readAloud[0]")
                assert said.startswith("Waiting for your answer: An agent wants to use version on ")
                await go(page, "approvals")
                await expect(page.locator("#announced")).to_be_empty()
                left = page.locator(".left")
                await expect(left).to_contain_text("s left")
                await page.evaluate(READ_ALOUD)
                await expect(left).not_to_have_text(await left.inner_text())
                assert await page.evaluate("readAloud") == []
                await page.get_by_role("button", name="Allow once").click()
    finally:
        gate.set_rules({})


@pytest.mark.usefixtures("tab")
async def test_what_a_filter_shows_is_read_aloud_and_new_calls_are_not(
    page: Page, served: OpenTabs
) -> None:
    await served.call("probe_echo", {"value": 1})
    await go(page, "calls")
    calls = page.get_by_role("listbox", name="Calls")
    await expect(calls.get_by_role("option").first).to_contain_text("probe_echo")
    await page.evaluate(READ_ALOUD)
    await served.call("forms_version")
    await expect(calls.get_by_role("option").first).to_contain_text("forms_version")
    await page.get_by_label("Filter calls").fill("no such call")
    await page.wait_for_function("() => readAloud.length > 0")
    assert re.fullmatch(r"0 of \d+ calls", await page.evaluate("readAloud[0]"))


async def test_the_questions_of_a_server_that_is_gone_are_not_shown(browser: Browser) -> None:
    @tool
    def greet() -> str:
        """Greet."""
        raise AssertionError

    async def call(tabs: OpenTabs) -> None:
        with pytest.raises(CallError):
            await tabs.call("greet")

    settings = load_settings(port=0, profile=None, permissions={"default": "ask"})
    async with anyio.create_task_group() as tasks:
        async with OpenTabs(browser="none", settings=settings, tools=[greet]) as tabs:
            stack = console_page(browser, tabs)
            page = await stack.__aenter__()
            tasks.start_soon(call, tabs)
            await expect(page).to_have_title("(1) Plugins · OpenTabs")
        await expect(page.locator("#state")).to_contain_text("not running")
        await expect(page).to_have_title("Plugins · OpenTabs")
        await go(page, "approvals")
        await expect(page.get_by_text("Questions cannot be shown now")).to_be_visible()
        await expect(page.get_by_text("the calls that waited for you have ended")).to_be_visible()
        await page.set_viewport_size({"width": 320, "height": 640})
        views = page.locator("#nav")
        assert await views.evaluate("(nav) => nav.scrollWidth - nav.clientWidth") <= 0
    await stack.__aexit__(None, None, None)


async def test_the_running_calls_of_a_server_that_is_gone_are_shown_as_lost(
    browser: Browser,
) -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        raise AssertionError

    async def call(tabs: OpenTabs) -> None:
        with pytest.raises(CallError):
            await tabs.call("wait")

    settings = load_settings(port=0, profile=None)
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        async with OpenTabs(browser="none", settings=settings, tools=[wait]) as tabs:
            page = await stack.enter_async_context(console_page(browser, tabs))
            await go(page, "calls")
            tasks.start_soon(call, tabs)
            await expect(page.get_by_role("option", name="wait, running")).to_be_visible()
        await expect(page.get_by_role("option", name="wait, lost")).to_be_visible()


async def test_the_details_of_a_call_stay_when_its_server_is_gone(browser: Browser) -> None:
    @tool
    async def count(progress: Progress) -> str:
        """Count, and wait."""
        progress.report(progress=1, message="counted one")
        await anyio.sleep_forever()
        raise AssertionError

    @tool
    def fail() -> None:
        """Fail."""
        raise ToolError("It is out of stock.", code="OUT_OF_STOCK")

    async def call(tabs: OpenTabs, name: str) -> None:
        with pytest.raises(CallError):
            await tabs.call(name)

    settings = load_settings(port=0, profile=None)
    async with anyio.create_task_group() as tasks, AsyncExitStack() as stack:
        async with OpenTabs(browser="none", settings=settings, tools=[count, fail]) as tabs:
            page = await stack.enter_async_context(console_page(browser, tabs))
            await go(page, "calls")
            await call(tabs, "fail")
            tasks.start_soon(call, tabs, "count")
            details = page.get_by_role("complementary", name="The selected call")
            await page.get_by_role("option", name="count, running").click()
            await expect(details).to_contain_text("counted one")
            await expect(details.locator(".journey")).to_have_count(0)  # to a page
        await expect(details.locator(".pill")).to_have_text("lost")
        await expect(details).to_contain_text("The server stopped")
        await expect(details).to_contain_text("counted one")
        await expect(details.get_by_role("button", name="Cancel")).to_have_count(0)
        await page.get_by_role("option", name="fail, failed").click()
        await expect(details).to_contain_text("It is out of stock.")
        await expect(details).to_contain_text("opentabs status")


async def test_earlier_calls_are_shown_at_once_however_many_are_live(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def greet() -> str:
        """Greet."""
        return "Hello"

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    keep_earlier("chat_send", plugin="chat")
    live = AT_ONCE + 1
    settings = load_settings(port=0, profile=None, audit=True)
    async with (
        OpenTabs(browser="none", settings=settings, tools=[greet]) as tabs,
        console_page(browser, tabs) as page,
    ):
        await go(page, "calls")
        for _ in range(live):
            await tabs.call("greet")
        await poll(lambda: len(read_calls(audit_file(), limit=live + 1)) > live)
        count = page.locator(".calls header .count")
        await expect(count).to_have_text(f"{live} calls")
        await page.get_by_role("button", name="Show earlier calls").click()
        await expect(count).to_have_text(f"{live + 1} calls")
        await page.get_by_label("Plugin").select_option("chat")
        await expect(count).to_have_text(f"1 of {live + 1} calls")
        await expect(page.get_by_role("option", name="chat_send, succeeded")).to_be_visible()


def keep_earlier(name: str, **more: Any) -> None:
    """Record a call in the audit, as a server that has ended did."""
    whole: dict[str, Any] = dict.fromkeys(AuditEntry._fields)
    whole |= {
        "call_id": name,
        "started": time.time() - 60,
        "seconds": 0.25,
        "tool": name,
        "outcome": "succeeded",
        **more,
    }
    file = AuditFile(audit_file(), retention=Retention())
    file.add([AuditEntry(**whole)])
    file.close()
