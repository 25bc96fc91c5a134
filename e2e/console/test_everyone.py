"""The console for everyone: hostile texts, windows of any width, the keyboard, screen readers."""

import json
import logging

import pytest
from playwright.async_api import Browser, Page, expect

from e2e.console.opened import VIEWS, console_page, go
from e2e.live_page import find_nameless, find_too_wide
from opentabs_py.session.session import OpenTabs


@pytest.mark.usefixtures("tab")
async def test_hostile_texts_are_text_and_a_hostile_icon_does_nothing(page: Page) -> None:
    card = page.locator("[data-keep=evil]")
    await expect(card).to_contain_text("<img src=x onerror=")
    image = card.locator("img")
    await page.wait_for_function(
        "() => document.querySelector('[data-keep=evil] img').naturalWidth > 0"
    )
    await expect(image).to_be_visible()
    await go(page, "plugins/evil")
    await expect(page.get_by_role("heading", name="<img").first).to_be_visible()
    await go(page, "try/evil_version")
    await expect(page.get_by_role("heading", name="<img").first).to_be_visible()
    assert await page.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    await expect(page).to_have_title("evil_version · Try it · OpenTabs")
    alone = await page.context.new_page()
    await alone.goto(page.url.split("/#", 1)[0] + "/console/api/icons/evil.svg")
    assert await alone.evaluate("document.querySelector('script').textContent.length") > 0
    assert await alone.evaluate("origin") == "null"  # a sandbox
    await alone.close()


@pytest.mark.usefixtures("tab")
async def test_texts_that_would_be_shown_in_another_order_are_escaped(page: Page) -> None:
    text, escaped = "exe.\u202egnp", "exe.\\u202egnp"
    arguments = {"steps": [{"report": {"message": text}}], "result": {text: text}}
    await go(page, "try/probe_run")
    await page.get_by_role("button", name="JSON", exact=True).click()
    await page.get_by_label("The arguments, as JSON").fill(json.dumps(arguments))
    await page.get_by_role("button", name="Run").click()
    outcome = page.get_by_role("region", name="What happens")
    await expect(outcome.locator(".message")).to_contain_text(escaped)
    await expect(outcome.locator(".tree")).to_contain_text(f'{escaped}: "{escaped}"')
    await outcome.get_by_role("button", name="Text").click()
    await expect(outcome.locator("pre")).to_contain_text(f'"{escaped}"')
    await outcome.get_by_role("link", name="Where its time went").click()
    row = page.get_by_role("listbox", name="Calls").get_by_role("option", selected=True)
    await expect(row.locator(".said")).to_have_text(escaped)
    details = page.get_by_role("complementary", name="The selected call")
    await expect(details.get_by_role("row").filter(has_text=escaped)).to_be_visible()


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (900, False), (1900, True)])
async def test_nothing_is_wider_than_the_window(
    served: OpenTabs, browser: Browser, width: int, dark: bool
) -> None:
    async with console_page(browser, served, width=width, dark=dark) as page:
        for path in (
            *VIEWS,
            "plugins/evil",
            "plugins/forms",
            "try/evil_version",
            "try/forms_where",
        ):
            await go(page, path)
            await expect(page.locator("#view h1, #view h2").first).to_be_visible()
            assert await find_too_wide(page) == [], path


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize("width", [320, 400, 900])
async def test_the_time_of_a_log_record_is_shown_whole(
    served: OpenTabs, browser: Browser, width: int
) -> None:
    logging.getLogger("opentabs_py").warning("something to show")
    async with console_page(browser, served, width=width) as page:
        await go(page, "logs")
        time = page.locator(".log .when").first
        await expect(time).to_be_visible()
        assert await time.evaluate("""(element) => {
            const text = document.createRange();
            text.selectNodeContents(element);
            const [needed, given] = [text, element].map((each) => each.getBoundingClientRect());
            return needed.width <= given.width;
        }""")


@pytest.mark.usefixtures("tab")
@pytest.mark.parametrize("width", [901, 1120, 1900])
async def test_the_list_of_calls_fills_its_room_with_and_without_a_call_open(
    served: OpenTabs, browser: Browser, width: int
) -> None:
    await served.call("probe_echo", {"value": 1})
    # The space above and below the button, and to the right of the last item of a row, in pixels.
    free = """() => {
        const box = (selector) => document.querySelector(selector).getBoundingClientRect();
        const column = box(".calls .column"), button = box(".earlier button");
        return [button.top - box(".calls .list").bottom, column.bottom - button.bottom,
            column.right - box(".call .took").right].map(Math.round);
    }"""
    async with console_page(browser, served, width=width) as page:
        await go(page, "calls")
        row = page.get_by_role("option", name="probe_echo, succeeded").first
        await expect(row).to_be_visible()
        assert await page.evaluate(free) == [10, 10, 22]
        await row.click()
        await expect(page.get_by_role("complementary", name="The selected call")).to_be_visible()
        assert await page.evaluate(free) == [10, 10, 22]


@pytest.mark.usefixtures("tab")
async def test_a_list_has_rows_in_a_low_window(page: Page, served: OpenTabs) -> None:
    await served.call("probe_echo", {"value": 1})
    await page.set_viewport_size({"width": 320, "height": 256})  # 1280 × 1024, enlarged to 400 %
    await go(page, "calls")
    calls = page.get_by_role("listbox", name="Calls")
    await expect(calls.get_by_role("option").first).to_be_visible()
    rows_high = "(list) => list.clientHeight / list.querySelector('.row').clientHeight"
    assert await calls.evaluate(rows_high) > 2
    cut_off = "(views) => views.scrollHeight - views.clientHeight"
    assert await page.locator(".side").evaluate(cut_off) == 0


@pytest.mark.usefixtures("tab")
async def test_everything_that_can_be_used_has_a_name(served: OpenTabs, browser: Browser) -> None:
    async with console_page(browser, served) as page:
        for path in (*VIEWS, "plugins/forms", "plugins/broken", "try/forms_where"):
            await go(page, path)
            await expect(page.locator("#view h1, #view h2").first).to_be_visible()
            assert await find_nameless(page) == [], path


@pytest.mark.usefixtures("tab")
async def test_all_of_it_works_with_the_keyboard_alone(page: Page) -> None:
    press = page.keyboard.press
    await press("/")
    await expect(page.get_by_label("Find a plugin or a tool")).to_be_focused()
    await page.keyboard.type("forms")
    await press("Tab")
    await expect(page.locator(".card-link").first).to_be_focused()
    await press("Enter")
    await expect(page.get_by_role("heading", name="forms")).to_be_visible()
    await page.get_by_role("link", name="version", exact=False).last.focus()
    await press("Enter")
    outcome = page.get_by_role("region", name="What happens")
    await expect(outcome).to_contain_text("Run the tool")
    await press("Control+Enter")
    await expect(outcome).to_contain_text("Succeeded")
    await press("Tab")
    await expect(page.get_by_role("link", name="All tools")).to_be_focused()
    await page.get_by_role("button", name="Run").focus()
    await press("Enter")
    await expect(page.get_by_role("button", name="Run again")).to_be_visible()
    await page.get_by_role("link", name="Calls").focus()
    await press("Enter")
    calls = page.get_by_role("listbox", name="Calls")
    await expect(calls.get_by_role("option").first).to_contain_text("forms_version")
    await page.get_by_role("link", name="Skip to the content").focus()
    await press("Enter")
    await expect(page.locator("#view")).to_be_focused()
    await expect(page).to_have_title("Calls · OpenTabs")
    await calls.focus()
    await press("ArrowDown")
    details = page.get_by_role("complementary", name="The selected call")
    await expect(details).to_contain_text("forms_version")
    await expect(calls.get_by_role("option", selected=True)).to_have_count(1)
    await press("Escape")
    await expect(details).to_be_hidden()


async def test_the_keyboard_goes_on_where_something_was_opened_closed_or_run(
    served: OpenTabs, browser: Browser
) -> None:
    async with console_page(browser, served, width=700) as page:
        press = page.keyboard.press
        card = page.get_by_role("link", name="forms 1.0.0")
        await card.focus()
        await press("Enter")
        await expect(page.get_by_role("link", name="All plugins")).to_be_focused()
        await press("Escape")
        await expect(card).to_be_focused()

        await go(page, "try")
        tool = page.get_by_role("link", name="forms_version")
        await tool.focus()
        await press("Enter")
        await page.get_by_role("button", name="Run").focus()
        await press("Enter")
        await expect(page.get_by_role("button", name="Run again")).to_be_focused()
        await press("Escape")
        await expect(tool).to_be_focused()

        await go(page, "calls")
        calls = page.get_by_role("listbox", name="Calls")
        await calls.focus()
        await press("ArrowDown")
        await press("Enter")
        await expect(page.get_by_label("The selected call")).to_be_focused()
        await press("Escape")
        await expect(calls).to_be_focused()

        logging.getLogger("opentabs_py").warning("to be read\nwhole")
        await go(page, "logs")
        logs = page.get_by_role("listbox", name="Logs")
        await page.get_by_label("Filter logs").fill("to be read")
        await expect(logs.get_by_text("to be read")).to_have_text("to be read …")
        await logs.focus()
        await press("ArrowDown")
        await expect(page.locator(".whole pre")).to_have_text("to be read\nwhole")
        await page.get_by_label("Close the entry").focus()
        await press("Enter")
        await expect(logs).to_be_focused()


async def test_reduced_motion_is_respected(served: OpenTabs, browser: Browser) -> None:
    async with console_page(browser, served) as page:
        await page.emulate_media(reduced_motion="reduce")
        await go(page, "try/forms_version")
        await page.evaluate("""() => {
            const bar = document.createElement("progress");
            bar.className = "bar";
            document.body.append(bar);
        }""")
        animated = await page.evaluate("""() => getComputedStyle(
            document.querySelector("body > progress")).animationName""")
        assert animated == "none"


@pytest.mark.usefixtures("tab")
async def test_what_is_selected_can_be_seen_in_forced_colors(page: Page, served: OpenTabs) -> None:
    await served.call("probe_echo", {"value": 1})
    await page.emulate_media(forced_colors="active")
    await go(page, "calls")
    await page.get_by_role("option", name="probe_echo").first.click()
    for selected in ("#nav [aria-current]", ".call[aria-selected=true]"):
        await expect(page.locator(selected)).to_have_css("outline-style", "solid")
