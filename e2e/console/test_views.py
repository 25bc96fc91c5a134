"""The console's other views: plugins, tabs and logs, as they change."""

import logging
from pathlib import Path

import anyio
import httpx2
import pytest
from playwright.async_api import Browser, Page, expect

from e2e.chain import PROBE
from e2e.console.opened import VIEWS, console_page, go
from e2e.console.plugins import HOSTILE, write_lacking
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import ChainError
from opentabs_py.session.session import OpenTabs


async def test_plugins_are_cards_and_a_broken_one_says_what_to_do(page: Page, tab: Page) -> None:
    card = page.get_by_role("link", name="forms 1.0.0")
    await expect(card).to_contain_text("Ready")
    await expect(card).to_contain_text("2 tools")
    problems = page.get_by_role("region", name="Problems")
    await expect(problems).to_contain_text("Build the plugin first.")
    await card.click()
    await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    reports = page.get_by_role("region", name="Reports")
    await expect(reports.get_by_role("link")).to_contain_text("File a report")
    await expect(reports.get_by_role("link")).to_contain_text("Files it")
    icon = reports.locator(".tool-icon path")
    await expect(icon).to_have_attribute("d", r := await lucide(page, "file-text"))
    assert r
    await tab.goto("about:blank")
    about = page.get_by_role("region", name="forms", exact=True)
    await expect(about).to_contain_text("No tab open")


async def test_a_click_counts_although_the_card_changes_while_the_button_is_down(
    page: Page, tab: Page, served: OpenTabs
) -> None:
    card = page.get_by_role("link", name="forms 1.0.0")
    await expect(card).to_contain_text("Ready")
    gate = served.internals.registry.gate
    gate.set_rules({"forms.version": "ask"})

    async def call() -> None:
        with pytest.raises(ChainError, match="has left the site"):
            await served.call("forms_version")

    try:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await expect(page).to_have_title("(1) Plugins · OpenTabs")
                await card.hover()
                await page.mouse.down()
                await tab.goto("about:blank")  # which ends the question
                while served.internals.registry.status("forms") != "closed":
                    await served.internals.pages.changed().wait()
                await expect(page).to_have_title("Plugins · OpenTabs")  # with the new status
                await page.mouse.up()
                await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    finally:
        gate.set_rules({})
    about = page.get_by_role("region", name="forms", exact=True)
    await expect(about).to_contain_text("No tab open")


async def lucide(page: Page, name: str) -> str:
    outlines: dict[str, str] = await page.evaluate(
        "async () => (await fetch('/console/lucide.json')).json()"
    )
    return outlines[name]


async def test_a_tool_is_turned_off_where_it_is_shown_and_its_page_says_why(
    page: Page, served: OpenTabs
) -> None:
    await go(page, "plugins/forms")
    permission = page.get_by_label("Permission of forms_version")
    try:
        served.internals.registry.gate.set_rules({})
        await expect(permission).to_have_value("auto")
        async with page.expect_response("**/console/api/permission") as answered:
            await permission.select_option("Off")
        assert (await (await answered.value).json()) == {"note": ""}
        decision = served.internals.registry.decision("forms_version")
        assert decision is not None
        assert decision.permission == "off"
        await go(page, "try/forms_version")
        head = page.locator(".tool-head")
        await expect(head).to_contain_text('Off, because the setting permissions."forms.version"')
        served.internals.registry.gate.set_rules({"forms.version": "auto"})  # something new to show
        served.internals.registry.gate.set_rules({})
        await expect(head).to_contain_text("Runs, because forms was named when the server was")
    finally:
        served.internals.registry.gate.set_rules({"forms.version": "auto"})  # something new to show
        served.internals.registry.gate.set_rules({})


async def test_settings_that_were_typed_stay_while_their_plugin_is_skipped(
    page: Page, tab: Page, served: OpenTabs, directory: Path
) -> None:
    await go(page, "plugins/lacking")
    problem = page.get_by_role("region", name="Problems")
    await expect(problem).to_contain_text("lacking.days")
    days = page.get_by_label("days")
    await days.fill("typed")
    await tab.evaluate("document.title = 'Another title'")
    await go(page, "tabs")
    await expect(page.get_by_text("Another title")).to_be_visible()
    await go(page, "plugins/lacking")
    await expect(days).to_have_value("typed")
    await anyio.to_thread.run_sync(write_lacking, directory, "first", "days")
    await served.reload_plugins()
    await expect(problem).to_contain_text("lacking.first")
    await expect(days).to_have_value("typed")


async def test_a_change_of_tools_leaves_the_focus_the_scroll_position_and_typed_settings(
    page: Page, served: OpenTabs
) -> None:
    await page.set_viewport_size({"width": 1280, "height": 300})
    await go(page, "plugins/forms")
    await page.get_by_text("Settings", exact=True).click()
    await page.get_by_label("days").fill("typed")
    permission = page.get_by_label("Permission of forms_version")
    await permission.focus()
    area = page.locator(".scroll-area")
    top = await area.evaluate("(area) => area.scrollTop")
    assert top > 0
    try:
        served.internals.registry.gate.set_rules({"forms.version": "off"})
        await expect(permission).to_have_value("off")
        await expect(permission).to_be_focused()
        await expect(page.get_by_label("days")).to_have_value("typed")
        await expect(area).to_have_js_property("scrollTop", top)
    finally:
        served.internals.registry.gate.set_rules({})


async def test_tabs_show_what_is_ready_in_each_and_which_are_not_protected(
    page: Page, tab: Page, served: OpenTabs, site: str
) -> None:
    await go(page, "tabs")
    exposed = await served.open(f"{site}/sandbox-scripts")
    await expect(page.get_by_text("not protected")).to_be_visible()
    await expect(page.get_by_text("or its site sandboxes it")).to_be_visible()
    await exposed.close()
    row = page.get_by_role("region", name="Browser default").get_by_role("listitem").first
    await expect(row).to_contain_text("probe ready")
    await expect(row).to_contain_text("forms ready")
    await tab.goto("about:blank")
    await expect(page.get_by_text("No tab in which a plugin runs.")).to_be_visible()


async def test_in_a_browser_that_is_not_connected_no_page_is_to_be_opened(browser: Browser) -> None:
    settings = load_settings(port=0)
    async with (
        OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as tabs,
        console_page(browser, tabs) as page,
    ):
        await go(page, "tabs")
        about = page.get_by_role("region", name="Browser default")
        await expect(about).to_contain_text("not connected")
        await expect(about).to_contain_text("Its tabs are shown once it has connected.")
        await expect(about).not_to_contain_text("Open a page")


async def test_the_keyboard_stays_where_it_is_while_tabs_come_and_go(
    page: Page, tab: Page, served: OpenTabs, site: str
) -> None:
    card = page.get_by_role("link", name="forms 1.0.0")
    await expect(card).to_contain_text("Ready")
    why = page.get_by_role("region", name="Problems").locator("pre").first
    await why.focus()
    await tab.goto("about:blank")
    await expect(card).to_contain_text("No tab open")
    await expect(why).to_be_focused()

    await tab.goto(f"{site}/page")
    await go(page, "tabs")
    probes = page.get_by_role("link", name="probe ready")
    await probes.focus()
    other = await served.open(f"{site}/page")
    await expect(probes).to_have_count(2)
    await expect(probes.first).to_be_focused()
    await other.close()


async def test_logs_are_followed_and_filtered(page: Page) -> None:
    await go(page, "logs")
    log = logging.getLogger("opentabs_py.plugin.probe")
    log.warning("careful with %s", HOSTILE)
    logging.getLogger("opentabs_py.server").error("broken\nin two lines")
    await expect(page.get_by_role("option").filter(has_text="careful with <img")).to_be_visible()
    await page.get_by_label("Minimum level").select_option("error")
    await expect(page.get_by_role("option").filter(has_text="careful")).to_have_count(0)
    await page.get_by_role("option").filter(has_text="broken").last.click()
    whole = page.get_by_role("region", name="The selected entry")
    await expect(whole.locator("pre")).to_have_text("broken\nin two lines")
    await page.get_by_label("Minimum level").select_option("debug")
    await page.get_by_label("Source").select_option("probe")
    await expect(page.get_by_role("option").filter(has_text="broken")).to_have_count(0)


async def test_the_page_says_so_when_the_server_is_gone(browser: Browser) -> None:
    settings = load_settings(port=0, profile=None)
    async with OpenTabs(browser="none", settings=settings) as tabs:
        stack = console_page(browser, tabs)
        page = await stack.__aenter__()
    await expect(page.locator("#state")).to_contain_text("not running")
    await stack.__aexit__(None, None, None)


@pytest.mark.usefixtures("tab")
async def test_a_page_that_does_not_read_holds_up_nothing(served: OpenTabs) -> None:
    base = served.mcp_url.removesuffix("/mcp")
    host, port = base.removeprefix("http://").split(":")
    async with httpx2.AsyncClient() as client:
        entered = await client.get(served.console_url())
        key = entered.text.partition("/#key=")[2].partition('"')[0]
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = f"Host: {host}:{port}\r\nCookie: {cookie}\r\nX-OpenTabs-Console: {key}\r\n"
    request = f"GET /console/api/stream HTTP/1.1\r\n{headers}\r\n"
    with anyio.fail_after(PATIENT):
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(request.encode())
            assert b"200" in await stream.receive(64)
            for number in range(200):
                assert await served.call("probe_echo", {"value": number}) == {"value": number}
            told = b""
            while b'"state":"succeeded"' not in told:
                told += await stream.receive()


# The visible elements that a finger would miss, except links in sentences.
SMALL = """() => [...document.querySelectorAll(
  "a.badge, .back, button, select, textarea, summary, label:has(input), input:not(label *)")]
    .filter((each) => each.checkVisibility())
    .filter((each) => Math.min(each.offsetWidth, each.offsetHeight) < 24)
    .map((each) => each.outerHTML.slice(0, 120))"""


@pytest.mark.usefixtures("tab")
async def test_fingers_hit_what_can_be_tapped(served: OpenTabs, browser: Browser) -> None:
    context = await browser.new_context(
        viewport={"width": 360, "height": 640}, has_touch=True, is_mobile=True
    )
    page = await context.new_page()
    await page.goto(served.console_url())
    await page.locator('#state[data-state="live"]').wait_for()
    for path in (*VIEWS, "plugins/forms", "try/forms_where"):
        await go(page, path)
        view = page.locator(f'#nav a[href="#/{path.partition("/")[0]}"]')
        await expect(view).to_have_attribute("aria-current", "page")
        assert await page.evaluate(SMALL) == [], path
    await context.close()
