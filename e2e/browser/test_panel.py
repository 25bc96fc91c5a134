"""The side panel: the extension's real page, beside a page in which tools run."""

import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client
from playwright.async_api import BrowserContext, Error, Locator, Page, Route, expect

from e2e.browser.apart import Apart
from e2e.chain import Running, Tab, another_worker, extension_worker, wait_for_document
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from opentabs_py.config.paths import user_file
from opentabs_py.config.settings import load_settings
from opentabs_py.core.protocol import CLOSE_REPLACED
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

pytestmark = pytest.mark.anyio

FOR_LONG = {"wait": 60_000}
LONG = "a-plugin-whose-name-is-longer-than-a-panel-is-wide"
AS_LONG = re.compile(LONG.replace("-", "[-_]"))
ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="9"/></svg>'
# A plugin of the SDK does this when its user signs in; others are asked from time to time.
SIGNED_IN = """() => {
    document.body.dataset.ready = "yes";
    const nonce = __openTabs._readinessNonce;
    window.postMessage({ type: "opentabs:readiness-changed", plugin: "probe", nonce });
}"""
# The visible elements that are cut off or have no name.
FLAWS = """() => {
    const seen = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility());
    const clips = (each) => ["auto", "hidden"].includes(getComputedStyle(each).overflowX);
    const isNamed = (each) =>
        each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length;
    const short = (each) => each.outerHTML.slice(0, 120);
    return {
        wide: seen.filter((each) => !each.closest("pre, .hidden, svg")
            && each.getBoundingClientRect().right > innerWidth + 1
            && !clips(each.parentElement)).map(short),
        scrolls: document.documentElement.scrollWidth > innerWidth,
        nameless: seen.filter((each) => each.matches("button, a, input, select, progress")
            && !isNamed(each)).map(short),
    };
}"""


@asynccontextmanager
async def open_panel(
    context: BrowserContext, origin: str, *, width: int = 360
) -> AsyncGenerator[Page]:
    """Open the panel's page in a tab; anything in its console fails the test."""
    said: list[str] = []
    page = await context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    await page.set_viewport_size({"width": width, "height": 800})
    await page.goto(f"{origin}/panel/index.html")
    await expect(page.locator("#state")).to_have_attribute("data-state", "live")
    yield page
    assert said == []
    await page.close()


@pytest.fixture
async def panel(tabs: OpenTabs) -> AsyncGenerator[Page]:
    async with open_panel(tabs.context, tabs.internals.bridge.origin) as page:
        yield page


@pytest.fixture
async def asks(tabs: OpenTabs) -> AsyncGenerator[None]:
    """Calls of the probe's `echo` ask a person."""
    gate = tabs.internals.registry.gate
    before = dict(gate.rules)
    gate.set_rules({**before, "probe.echo": "ask"})
    yield
    gate.set_rules(before)


def the_running(panel: Page) -> Locator:
    return panel.get_by_role("list", name="Running calls").get_by_role("listitem")


async def badge(tabs: OpenTabs) -> tuple[str, str, bool]:
    """Return the badge's text, the tooltip, and whether the colour shows that a person is asked."""
    worker = await extension_worker(tabs)
    text, title, color = await worker.evaluate(
        """() => Promise.all([chrome.action.getBadgeText({}), chrome.action.getTitle({}),
                              chrome.action.getBadgeBackgroundColor({})])"""
    )
    return text, title, color[0] > color[2]


async def wait_for_badge(tabs: OpenTabs, *wanted: object) -> None:
    shown: tuple[object, ...] = ()
    with anyio.move_on_after(PATIENT):
        while shown != wanted:
            with suppress(Error):  # the worker has just stopped
                shown = (await badge(tabs))[: len(wanted)]
            await anyio.sleep(0.02)
    assert shown == wanted


async def test_the_tools_of_the_tab_in_front_are_shown_and_change_with_it(
    tab: Tab, panel: Page
) -> None:
    await tab.page.bring_to_front()
    active = panel.get_by_role("region", name="The active tab")
    await expect(active).to_contain_text("127.0.0.1")
    probe = active.get_by_role("region", name="Probe")
    await expect(probe).to_contain_text("Ready")
    await expect(probe.get_by_role("link", name="probe_echo")).to_be_visible()

    await panel.bring_to_front()  # no plugin works on the panel's own page
    await expect(active).to_contain_text("No plugin works on this page.")
    await expect(active.get_by_role("link", name="Probe")).to_be_visible()
    await expect(active).to_contain_text("http://127.0.0.1/*")
    await expect(active.get_by_role("link", name="probe_echo")).to_have_count(0)


async def test_the_tab_in_front_is_shown_though_its_browser_has_taken_another_id(
    tab: Tab, panel: Page
) -> None:
    bridge = tab.tabs.internals.bridge
    before = bridge.browser_id
    bridge.disconnect(CLOSE_REPLACED, "replaced by a newer connection")
    with anyio.fail_after(PATIENT):
        while bridge.browser_id == before:
            await bridge.changed().wait()

    await tab.page.bring_to_front()
    active = panel.get_by_role("region", name="The active tab")
    await expect(active.get_by_role("region", name="Probe")).to_contain_text("Ready")


async def test_a_page_that_is_not_ready_says_why(open_tab: Callable[..., Any], panel: Page) -> None:
    tab = await open_tab("unready", readiness="unavailable")
    await tab.page.bring_to_front()
    probe = panel.get_by_role("region", name="Probe")
    await expect(probe).to_contain_text("Not ready")


async def test_a_page_that_can_observe_its_tools_is_marked_and_one_that_runs_none_is_not(
    open_tab: Callable[..., Any], panel: Page
) -> None:
    active = panel.get_by_role("region", name="The active tab")
    notice = active.get_by_text("This page can observe its tools")
    tab = await open_tab("sandbox-scripts")
    await tab.page.bring_to_front()
    await expect(notice).to_contain_text("or its site sandboxes it")

    tab = await open_tab("sandbox", readiness="missing")
    await tab.page.bring_to_front()
    await expect(active).to_contain_text("scripts cannot run in this page")
    await expect(notice).to_have_count(0)


async def test_a_tool_can_be_tried_from_the_panel(tab: Tab, panel: Page) -> None:
    await tab.page.bring_to_front()
    await panel.get_by_role("link", name="probe_give").click()
    await panel.get_by_role("button", name="JSON").click()
    await panel.get_by_label("The arguments, as JSON").fill('{"kind": "order"}')
    await panel.get_by_role("button", name="Run", exact=True).click()
    await expect(panel.get_by_label("What happens")).to_contain_text("Succeeded")
    await panel.get_by_role("link", name="This tab").click()
    await expect(panel.get_by_role("region", name="Probe")).to_be_visible()


async def test_a_running_call_moves_its_bar_and_cancel_ends_it(tab: Tab, panel: Page) -> None:
    report = {"progress": 3, "total": 10, "message": "page 3 of 10"}
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"report": report}, FOR_LONG], "panel-cancel")
        item = the_running(panel).filter(has_text="page 3 of 10")
        await expect(item).to_be_visible()
        bar = item.get_by_role("progressbar", name="Progress of probe_run")
        await expect(bar).to_have_js_property("value", 3)

        cancel = item.get_by_role("button", name="Cancel probe_run")
        await cancel.focus()
        await tab.page.evaluate("probe.report({progress: 7, total: 10, message: 'page 7 of 10'})")
        item = the_running(panel).filter(has_text="page 7 of 10")
        await expect(item.get_by_role("progressbar")).to_have_js_property("value", 7)
        await expect(item.get_by_role("button")).to_be_focused()
        await panel.keyboard.press("Enter")
        await running.wait()
    assert running.error is not None
    assert "the user" in str(running.error)
    await tab.page.wait_for_function("probe.aborted['panel-cancel']")
    await expect(the_running(panel).filter(has_text="Cancelled")).to_be_visible()
    await expect(the_running(panel)).to_have_count(0)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.usefixtures("asks")
async def test_a_client_that_cannot_ask_is_answered_in_the_panel(
    tab: Tab, tabs: OpenTabs, mode: Any
) -> None:
    results: list[types.CallToolResult] = []
    arguments = {"tabId": tab.id, "value": "from afar"}

    async with Client(tabs.mcp_url, mode=mode) as client:
        refused = await client.call_tool("probe_echo", arguments)
        assert "CONSENT_NEEDED" in str(refused.content)  # nobody looks

        async def call() -> None:
            with anyio.fail_after(PATIENT):
                results.append(await client.call_tool("probe_echo", arguments))

        async with open_panel(tabs.context, tabs.internals.bridge.origin) as panel:
            approvals = panel.get_by_role("region", name="Approvals")
            await expect(approvals).to_be_hidden()
            for answer in ("Refuse", "Allow once"):
                async with anyio.create_task_group() as group:
                    group.start_soon(call)
                    await expect(approvals).to_contain_text("from afar")
                    waiting = the_running(panel).filter(has_text="Waiting for your answer")
                    await expect(waiting).to_be_visible()
                    await expect(waiting.get_by_role("progressbar")).to_have_count(0)
                    await wait_for_badge(tabs, "1", "OpenTabs: 1 call waits for you", True)
                    await approvals.get_by_role("button", name=answer).click()
                await expect(approvals).to_be_hidden()
    no, yes = results
    assert no.is_error
    assert yes.structured_content == {"value": "from afar"}
    await wait_for_badge(tabs, "", "OpenTabs: connected")


@pytest.mark.usefixtures("asks")
async def test_an_answer_that_comes_too_late_is_reported_as_such_until_that_is_closed(
    tab: Tab, tabs: OpenTabs, panel: Page
) -> None:
    approvals = panel.get_by_role("region", name="Approvals")
    questions = tabs.internals.registry.gate.questions

    async def answer_first(route: Route) -> None:
        assert questions.answer(questions.waiting[0].id, "once", by="terminal")
        await route.continue_()

    await panel.route("**/answer", answer_first)
    async with anyio.create_task_group() as group:
        group.start_soon(tabs.call, "probe_echo", {"tabId": tab.id, "value": "twice"})
        await approvals.get_by_role("button", name="Refuse").click()
        await expect(approvals).to_contain_text("did not count: it had been answered already")
    await expect(approvals.get_by_role("list")).to_be_empty()
    await approvals.get_by_role("button", name="Close").click()
    await expect(approvals).to_be_hidden()


@pytest.mark.usefixtures("asks")
async def test_an_answer_counts_although_another_question_ends_while_the_button_is_down(
    tab: Tab, tabs: OpenTabs, panel: Page
) -> None:
    approvals = panel.get_by_role("region", name="Approvals")
    questions = tabs.internals.registry.gate.questions
    async with anyio.create_task_group() as group:
        for value in ("first", "second"):
            group.start_soon(tabs.call, "probe_echo", {"tabId": tab.id, "value": value})
            await expect(approvals).to_contain_text(value)
        await approvals.get_by_role("button", name="Allow once").nth(1).hover()
        await panel.mouse.down()
        assert questions.answer(questions.waiting[0].id, "once", by="terminal")
        await expect(the_running(panel).filter(has_text="Succeeded")).to_have_count(1)
        await panel.mouse.up()
        await expect(approvals).to_be_hidden()


@pytest.mark.usefixtures("asks")
async def test_after_an_answer_the_keyboard_is_at_the_next_question_but_not_at_its_buttons(
    tab: Tab, tabs: OpenTabs, panel: Page
) -> None:
    approvals = panel.get_by_role("region", name="Approvals")
    async with anyio.create_task_group() as group:
        for value in ("first", "second"):
            group.start_soon(tabs.call, "probe_echo", {"tabId": tab.id, "value": value})
            await expect(approvals).to_contain_text(value)
        for value in ("first", "second"):
            arguments = approvals.locator("pre", has_text=value)
            if value == "first":
                await arguments.focus()
            await expect(arguments).to_be_focused()
            await panel.keyboard.press("Tab")
            await panel.keyboard.press("Enter")
            await expect(arguments).to_have_count(0)
    await expect(panel.locator("#view")).to_be_focused()


async def test_who_is_signed_out_is_asked_to_sign_in_and_the_call_continues(
    open_tab: Callable[..., Any], panel: Page
) -> None:
    tab = await open_tab("unready", readiness="unavailable")
    approvals = panel.get_by_role("region", name="Approvals")
    async with anyio.create_task_group() as group:
        running = Running()
        group.start_soon(running.run, tab, [], "signed in")
        await expect(approvals).to_contain_text("the page is not ready. Sign in")
        await expect(approvals.get_by_role("button")).to_have_text(["I have signed in", "Not now"])
        await tab.page.evaluate(SIGNED_IN)
        await running.wait()  # nobody has to say so
    assert running.value["key"] == "signed in"

    await tab.page.evaluate("document.body.dataset.ready = 'no'")
    async with anyio.create_task_group() as group:
        running = Running()
        group.start_soon(running.run, tab, [], "signed out")
        await approvals.get_by_role("button", name="Not now").click()
        await running.wait()
    assert "They were asked and have not signed in yet" in str(running.error)
    await expect(approvals).to_be_hidden()


async def test_the_badge_counts_calls_and_survives_the_service_worker(
    tab: Tab, tabs: OpenTabs
) -> None:
    await wait_for_badge(tabs, "", "OpenTabs: connected")
    async with anyio.create_task_group() as group:
        await tab.start(group, [FOR_LONG], "badge-1")
        await wait_for_badge(tabs, "1", "OpenTabs: 1 call runs", False)
        await tab.start(group, [FOR_LONG], "badge-2")
        await wait_for_badge(tabs, "2", "OpenTabs: 2 calls run", False)
        await restart_worker_with_badge(tab, "9")
        await wait_for_badge(tabs, "2", "OpenTabs: 2 calls run", False)
        group.cancel_scope.cancel()
    await wait_for_badge(tabs, "", "OpenTabs: connected")
    await restart_worker_with_badge(tab, "9")
    await wait_for_badge(tabs, "", "OpenTabs: connected")


async def restart_worker_with_badge(tab: Tab, text: str) -> None:
    """Stop the service worker while the icon shows something outdated."""
    worker = await extension_worker(tab.tabs)
    await worker.evaluate("text => chrome.action.setBadgeText({ text })", text)
    async with another_worker(tab.tabs.internals.bridge):
        await tab.kill_worker()


async def test_neither_a_web_page_nor_a_wrong_secret_gets_anything(
    tab: Tab, tabs: OpenTabs, panel: Page
) -> None:
    address = f"{tabs.mcp_url.removesuffix('/mcp')}/console/api/tools"
    fetch = """async ([address, secret, mode]) => {
        const headers = secret === "" ? {} : { Authorization: `Bearer ${secret}` };
        try { const answer = await fetch(address, { headers, mode });
              return [answer.status, (await answer.text()).includes("probe_echo")]; }
        catch (error) { return String(error); }
    }"""
    config = await panel.evaluate("fetch('/config.json').then((answer) => answer.json())")
    secret = config["secret"]
    # The page is on this machine too, but on another port.
    assert "Failed to fetch" in await tab.page.evaluate(fetch, [address, secret, "cors"])
    assert "Failed to fetch" in await tab.page.evaluate(fetch, [address, "", "cors"])
    assert await tab.page.evaluate(fetch, [address, "", "no-cors"]) == [0, False]
    # Without the secret, even the extension's own page gets nothing.
    worker_fetch = (await extension_worker(tabs)).evaluate
    assert await worker_fetch(fetch, [address, "wrong", "cors"]) == [401, False]
    assert await worker_fetch(fetch, [address, "", "cors"]) == [401, False]
    assert await worker_fetch(fetch, [address, secret, "cors"]) == [200, True]
    # A page cannot show the panel to trick its user.
    blocked = await tab.page.evaluate(
        """(source) => new Promise((resolve) => {
            const frame = document.createElement("iframe");
            frame.onload = () => resolve(frame.contentDocument === null);
            frame.src = source;
            document.body.append(frame);
        })""",
        f"{tabs.internals.bridge.origin}/panel/index.html",
    )
    assert blocked
    assert not [
        each for each in tab.page.frames if each.url.startswith(tabs.internals.bridge.origin)
    ]


@pytest.mark.parametrize("width", [320, 360, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("asks")
async def test_no_view_overflows_and_every_control_has_an_accessible_name(
    tab: Tab, tabs: OpenTabs, width: int, scheme: Any
) -> None:
    async with (
        open_panel(tabs.context, tabs.internals.bridge.origin, width=width) as panel,
        anyio.create_task_group() as group,
    ):
        await panel.emulate_media(color_scheme=scheme)
        await tab.page.bring_to_front()
        message = "a_message_without_any_place_to_break_" * 5
        report = {"progress": 1, "total": 3, "message": message}
        await tab.start(group, [{"report": report}, FOR_LONG], "narrow")
        group.start_soon(tabs.call, "probe_echo", {"tabId": tab.id, "value": message})
        approvals = panel.get_by_role("region", name="Approvals")
        await expect(approvals).to_contain_text(message)
        await expect(panel.get_by_role("link", name="probe_run").first).to_be_visible()
        for view in ("now", "try", "calls", "plugins", "try/probe_run", "plugins/probe"):
            await panel.evaluate("view => { location.hash = `#/${view}`; }", view)
            await expect(panel.locator("#view .view")).to_be_visible()
            found = await panel.evaluate(FLAWS)
            assert found == {"wide": [], "scrolls": False, "nameless": []}, view
        group.cancel_scope.cancel()


async def test_the_panel_works_without_host_permission_for_127_0_0_1(
    tmp_path: Path,
) -> None:
    """A browser sends a preflight request there, because the server has another origin."""
    tools = ["version", *(f"more_{number}" for number in range(12))]
    plugin = write_plugin(
        tmp_path / "far", tools=tools, patterns=["https://far.example/*"], icon=ICON
    )
    settings = load_settings(port=0, profile=None, headed=False)
    async with (
        OpenTabs(plugins=[plugin], settings=settings) as tabs,
        open_panel(tabs.context, tabs.internals.bridge.origin) as panel,
    ):
        await expect(panel.get_by_text("https://far.example/*")).to_be_visible()
        icon = panel.locator(".plugin-icon img").first
        await expect(icon).to_have_js_property("naturalWidth", 150)
        await panel.get_by_role("link", name="Tools", exact=True).click()
        await panel.get_by_role("link", name="far_version").click()
        await panel.get_by_role("button", name="Run", exact=True).click()
        failed = panel.get_by_label("What happens")
        await expect(failed).to_contain_text("far.example")

        # Whatever a page does, the focus in the panel stays where it is.
        await panel.get_by_role("link", name="This tab").click()
        page = await tabs.context.new_page()
        await page.route("https://far.example/", lambda route: route.fulfill(body="far"))
        await page.goto("https://far.example/")
        await panel.get_by_role("link", name="All 13 tools").focus()
        await page.evaluate("document.title = 'changed'")
        await expect(panel.get_by_role("region", name="The active tab")).to_contain_text("changed")
        await expect(panel.get_by_role("link", name="All 13 tools")).to_be_focused()


@pytest.fixture
async def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[OpenTabs]:
    """A server with nine plugins of long names, one that nobody has reviewed, and a broken one."""
    for name in ("CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    folder = tmp_path / "folder"
    write_plugin(folder / "fresh")
    write_plugin(folder / "broken")
    (folder / "broken" / "dist" / "tools.json").unlink()
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f"plugin_folders = [{json.dumps(str(folder))}]\n")
    far = [
        write_plugin(tmp_path / f"{LONG}-{number}", patterns=["https://far.example/*"])
        for number in range(3, 12)
    ]
    settings = load_settings(port=0, profile=None, headed=False, plugins=tuple(far))
    async with OpenTabs(settings=settings) as tabs:
        yield tabs


async def test_plugins_that_do_not_work_on_a_tab_are_found_from_it(
    crowd: OpenTabs, site: str
) -> None:
    async with open_panel(crowd.context, crowd.internals.bridge.origin, width=320) as panel:
        page = await crowd.context.new_page()
        await page.goto(f"{site}/plain")
        active = panel.get_by_role("region", name="The active tab")
        await expect(active).to_contain_text("No plugin works on 127.0.0.1")
        off, elsewhere = await active.get_by_role("list").all()
        await expect(off.get_by_role("link")).to_have_text(["fresh"])
        await expect(active).to_contain_text("off until you review them:")
        titles = [f"{LONG}-{number}" for number in range(3, 11)]
        await expect(elsewhere.get_by_role("link")).to_have_text(titles)
        await expect(panel.get_by_role("link", name="1 problem")).to_be_visible()
        await active.get_by_role("link", name="1 more").click()
        await expect(panel.get_by_role("region", name="Problems")).to_contain_text("broken")


async def test_a_name_that_is_too_long_for_the_panel_cuts_off_nothing_else(
    crowd: OpenTabs,
) -> None:
    async with open_panel(crowd.context, crowd.internals.bridge.origin, width=320) as panel:
        tool = f"{LONG.replace('-', '_')}_3_version"
        with pytest.raises(CallError):
            await crowd.call(tool, {})
        for view in ("now", "try", "plugins", "calls"):
            await panel.evaluate("view => { location.hash = `#/${view}`; }", view)
            shown = panel.locator("#view").get_by_text(AS_LONG).filter(visible=True)
            await expect(shown.first).to_be_visible()
            found = await panel.evaluate(FLAWS)
            assert found == {"wide": [], "scrolls": False, "nameless": []}, view


async def test_loaded_by_hand_it_finds_the_server_again_wherever_that_is(
    apart: Apart, site: str
) -> None:
    panel = await apart.page.context.new_page()
    state = panel.locator("#state")
    async with apart.serve() as first:
        with anyio.fail_after(PATIENT):
            await first.internals.bridge.wait_connected()
        await panel.goto(f"{first.internals.bridge.origin}/panel/index.html")
        await expect(state).to_have_attribute("data-state", "live")
        await apart.page.goto(f"{site}/by-hand")
        await panel.get_by_role("link", name="Plugins").click()
        ready = panel.locator(".badge.ready")
        await expect(ready).to_be_visible()
    gone = panel.get_by_role("alert")
    await expect(gone).to_contain_text("Start it: opentabs start")
    await expect(ready).to_be_hidden()
    await panel.reload()
    await expect(gone).to_contain_text("Start it: opentabs start")
    await panel.get_by_role("link", name="Calls").click()
    await expect(panel.get_by_role("heading", name="Calls")).to_be_visible()
    await expect(panel.get_by_text("No calls yet")).to_be_hidden()
    await panel.get_by_role("link", name="This tab").click()

    async with apart.serve(port=0) as second:
        await expect(state).to_have_attribute("data-state", "live")
        await expect(gone).to_be_hidden()
        await apart.page.goto(f"{site}/by-hand")
        with anyio.fail_after(PATIENT):
            document = await wait_for_document(second, apart.page.url)
        await apart.page.bring_to_front()
        await expect(panel.get_by_role("region", name="Probe")).to_be_visible()
        tab = Tab(apart.page, document.tab_id, second)
        async with anyio.create_task_group() as group:
            running = await tab.start(group, [FOR_LONG], "by-hand")
            await the_running(panel).get_by_role("button", name="Cancel").click()
            await running.wait()
        assert "the user" in str(running.error)
