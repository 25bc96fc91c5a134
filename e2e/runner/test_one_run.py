"""One finished run in the page of the tests, seen from all sides."""

import re
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect

from e2e.live_page import find_nameless, find_too_wide
from e2e.runner.plugins import BAD, GOOD, ended, environment, plugin_with
from e2e.runner.tests_page import Shown, shown_tests

# Both calls wait in the page until the second has started, and then end one after the other.
PARALLEL = """
def test_parallel(opentabs, page):
    opentabs.open_start_page()
    page.evaluate("() => { real = setTimeout; held = []; setTimeout = (go) => held.push(go); }")
    first, second = [opentabs.start("chat_hello", name=name) for name in ("Ada", "Bob")]
    page.evaluate("() => { setTimeout = real; held.forEach((go) => go()); }")
    second.wait()
"""

FAULTS = """
from opentabs_py.testing import expect

def test_faults(opentabs, mcp):
    opentabs.open_start_page()
    opentabs.faults.delay("port", 0.2, kind="tool.result")
    call = mcp.start("chat_hello", {"name": "Ada"})
    opentabs.faults.kill_service_worker("stop")
    expect(call).to_succeed()
"""

HOSTILE = """
import pytest

@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>"])
def test_hostile(text):
    print("<script>alert(2)</script>")
    raise AssertionError(text + "\\u202edetrevni" + "W" * 3000)
"""


@pytest.fixture(scope="module")
async def seen(
    template: Path, tmp_path_factory: pytest.TempPathFactory, browser: Browser
) -> AsyncGenerator[Shown]:
    """A finished run with tests of all kinds."""
    directory = tmp_path_factory.mktemp("seen")
    kinds = {"good": GOOD, "bad": BAD, "faults": FAULTS, "hostile": HOSTILE, "parallel": PARALLEL}
    plugin = plugin_with(template, directory, **kinds)
    (plugin / "tests" / "unit.test.js").write_text('import "node:test";')
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await shown.page.get_by_role("button", name="Continue").first.click()
        await ended(shown)
        # A test that runs alone has a Playwright trace.
        await shown.choose("test_bad, ")
        await shown.details.get_by_role("button", name="Run again").click()
        await shown.details.get_by_role("button", name="Continue").click()
        await ended(shown)
        yield shown


@asynccontextmanager
async def another_tab(seen: Shown) -> AsyncGenerator[Page]:
    """A new tab with the page of that run; its errors fail the test."""
    page = await seen.page.context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        await page.goto(seen.page.url.partition("#")[0])
        tests = page.get_by_role("listbox", name="Tests")
        await expect(tests.get_by_role("option").first).to_be_visible()
        yield page
    finally:
        await page.close()
    assert said == []


@pytest.fixture
async def page(seen: Shown) -> AsyncGenerator[Page]:
    async with another_tab(seen) as page:
        yield page


@pytest.fixture
def shown(seen: Shown, page: Page) -> Shown:
    return Shown(seen.terminal, page)


async def test_the_tests_are_listed_by_file_with_their_state_and_duration(shown: Shown) -> None:
    for name, state in (
        ("test_one", r"passed, [\d.]+ m?s"),
        ("test_two", "skipped"),
        ("test_bad", r"failed, [\d.]+ m?s"),
        ("unit.test.js", r"passed, [\d.]+ m?s"),
    ):
        await expect(shown.row(f"{name}, ")).to_have_accessible_name(
            re.compile(rf"^{re.escape(name)}, {state}$")
        )
    await expect(shown.row("tests/test_good.py, 2 tests")).to_be_visible()
    await expect(shown.summary).to_contain_text("7 tests · 2 failed · 4 passed · 1 skipped")


async def test_a_call_is_shown_with_its_hops(shown: Shown) -> None:
    await shown.choose("test_one")
    calls = shown.details.get_by_role("region", name="Calls")
    await expect(calls.locator("summary")).to_have_count(1)
    await expect(calls.locator("summary")).to_contain_text("chat_hello")
    for hop in ("server → service worker", "relay → page", "tool", "service worker → server"):
        await expect(calls.get_by_role("row", name=hop).first).to_be_visible()
    await expect(calls).to_contain_text("Progress (3)")


async def test_screenshots_show_the_page_before_and_after_each_call(shown: Shown) -> None:
    await shown.choose("test_bad")
    first, second = await shown.details.locator(".one-call").all()
    await expect(first.locator("summary")).to_be_visible()
    await first.locator("summary").click()
    colours = []
    for call, when in ((first, "Before"), (first, "After"), (second, "Before"), (second, "After")):
        screenshot = call.get_by_role("img", name=f"{when} the call")
        await expect(screenshot).to_be_visible()
        colours.append(
            await screenshot.evaluate("""async (image) => {
                await image.decode();
                const canvas = new OffscreenCanvas(1, 1).getContext("2d");
                canvas.drawImage(image, 2, image.naturalHeight - 9, 1, 1, 0, 0, 1, 1);
                const [red, green] = canvas.getImageData(0, 0, 1, 1).data;
                return red > 150 && green < 60 ? "red" : "plain";
            }""")
        )
    assert colours == ["plain", "plain", "red", "red"]
    await expect(shown.details.get_by_role("img", name="At the failure")).to_be_visible()

    await second.get_by_role("button", name="After the call: enlarge").click()
    await expect(shown.page.get_by_role("dialog", name="After the call")).to_be_visible()
    await shown.page.keyboard.press("Escape")
    await expect(shown.page.get_by_role("dialog")).to_have_count(0)


async def test_a_call_that_is_opened_at_once_shows_its_screenshots(seen: Shown) -> None:
    # One in three showed nothing when images loaded inside a closed part.
    for _ in range(10):
        async with another_tab(seen) as page:
            shown = Shown(seen.terminal, page)
            await shown.choose("test_bad")
            call = shown.details.locator(".one-call").first
            await call.locator("summary").click()
            for when in ("Before", "After"):
                await expect(call.get_by_role("img", name=f"{when} the call")).to_be_visible()


async def test_calls_that_share_a_screenshot_show_it_each(shown: Shown) -> None:
    await shown.choose("test_parallel")
    calls = shown.details.locator(".one-call")
    await expect(calls).to_have_count(2)
    await calls.first.locator("summary").click()  # the last one is open
    after = [
        call.get_by_role("button", name="After the call: enlarge") for call in await calls.all()
    ]
    for each in after:
        await expect(each.get_by_role("img")).to_be_visible()
    kept = [str(await each.get_attribute("data-keep")) for each in after]
    assert len({each.rpartition(" ")[2] for each in kept}) == 1


async def test_the_faults_that_a_test_injected_are_shown_and_a_replay_is_copied(
    shown: Shown,
) -> None:
    await shown.choose("test_faults")
    faults = shown.details.get_by_role("region", name="Faults")
    await expect(faults).to_contain_text("delay port tool.result 0.2 s: up 1")
    await expect(faults).to_contain_text("kill_service_worker('stop')")
    await faults.get_by_role("button", name="Copy a replay").click()
    copied = await shown.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith('opentabs.faults.replay(\'{"seed":0')
    assert '"action":"delay"' in copied
    await shown.choose("test_one")
    await expect(shown.details.get_by_role("region", name="Faults")).to_have_count(0)


async def test_a_failure_is_shown_with_its_error_and_playwrights_trace(shown: Shown) -> None:
    await shown.choose("test_bad")
    failure = shown.details.get_by_role("region", name="Failure", exact=True)
    await expect(failure).to_contain_text('-  "greeting": "Good morning, Bob!"')
    await expect(failure.locator(".at")).to_contain_text("expect(opentabs.start(")
    trace = shown.details.get_by_role("region", name="Playwright’s trace")
    command = await trace.locator("pre").inner_text()
    assert command.startswith("playwright show-trace /")
    assert zipfile.is_zipfile(command.split()[-1])
    await shown.details.get_by_role("button", name="Copy command").click()
    copied = await shown.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("opentabs test ")
    assert copied.rstrip("'").endswith("tests/test_bad.py::test_bad[chromium]")


async def test_what_tests_print_and_raise_is_only_ever_text(shown: Shown) -> None:
    await shown.choose("test_hostile")
    await expect(shown.details.locator("h2")).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(shown.details).to_contain_text("<script>alert(2)</script>")
    assert await shown.page.evaluate("document.querySelectorAll('img[src=x]').length") == 0


@pytest.mark.parametrize(("width", "dark"), [(400, False), (400, True), (900, False), (1900, True)])
async def test_nothing_is_wider_than_the_window(shown: Shown, width: int, dark: bool) -> None:
    await shown.page.set_viewport_size({"width": width, "height": 800})
    await shown.page.emulate_media(color_scheme="dark" if dark else "light")
    for name in ("", "test_bad", "test_faults", "test_hostile", "tests/test_good.py"):
        await shown.page.evaluate("location.hash = '#/tests'")
        await expect(shown.row("test_one")).to_be_visible()
        if name:
            await shown.choose(name)
        assert await find_too_wide(shown.page) == [], name


async def test_everything_that_can_be_used_has_a_name(shown: Shown) -> None:
    for name in ("test_bad", "test_faults", "tests/test_good.py"):
        await shown.choose(name)
        assert await find_nameless(shown.page) == [], name


async def test_the_list_is_filtered_by_words_and_by_state(shown: Shown) -> None:
    await shown.page.keyboard.press("/")
    await expect(shown.page.get_by_label("Filter tests")).to_be_focused()
    await shown.page.keyboard.type("good morning")
    await expect(shown.row("test_bad")).to_be_visible()
    await expect(shown.row("test_one")).to_have_count(0)
    await shown.page.keyboard.press("Escape")
    await expect(shown.row("test_one").first).to_be_visible()
    await shown.page.keyboard.press("Escape")
    await expect(shown.page.get_by_label("Filter tests")).not_to_be_focused()
    await shown.page.get_by_label("State").select_option(label="Skipped")
    await expect(shown.row("test_two")).to_be_visible()
    await expect(shown.row("test_bad")).to_have_count(0)
    await shown.page.get_by_label("Filter tests").fill("nothing like this")
    await expect(shown.page.get_by_text("No test matches.")).to_be_visible()


async def test_only_the_browser_that_was_let_in_sees_tests_and_screenshots(
    shown: Shown,
) -> None:
    base = shown.page.url.partition("#")[0].rstrip("/")
    await shown.choose("test_one")
    screenshot = shown.details.get_by_role("img", name="Before the call")
    await expect(screenshot).to_be_visible()
    [cookie] = await shown.page.context.cookies(base)
    key = await shown.page.evaluate("localStorage.getItem('opentabs-console')")
    kept = str(await shown.details.locator(".screenshot").first.get_attribute("data-keep"))
    path = kept.rpartition(" ")[2]
    async with httpx2.AsyncClient() as client:
        answer = await client.get(base)
        assert (answer.status_code, "opentabs test --ui" in answer.text) == (401, True)
        # A program that listens on another port sees only the cookie.
        stolen = {"cookie": f"{cookie.get('name')}={cookie.get('value')}"}
        own = {**stolen, "x-opentabs-console": key}
        for asked in ("/stream?since=0", "/test?id=x", f"/screenshots/{path}"):
            assert (
                await client.get(f"{base}/console/api{asked}", headers=stolen)
            ).status_code == 401
        answer = await client.get(f"{base}/console/api/screenshots/{path}", headers=own)
        assert (answer.status_code, answer.content[:2]) == (200, b"\xff\xd8")
        answer = await client.get(f"{base}/console/api/screenshots/1/../../x.jpg", headers=own)
        assert answer.status_code == 404
        sent = await client.post(f"{base}/console/api/run", json={"what": "all"}, headers=own)
        assert sent.status_code == 403  # not from our page
        rebound = await client.get(base, headers={**own, "host": "evil.example"})
        assert rebound.status_code == 403


async def test_a_page_that_connects_again_is_live_although_nothing_happens(seen: Shown) -> None:
    page = await seen.page.context.new_page()
    await page.clock.install()
    await page.goto(seen.page.url)
    state = page.locator("#state")
    await expect(state).to_have_attribute("data-state", "live")
    async with page.expect_request("**/console/api/stream?*"):
        await page.clock.fast_forward(15_000)
    await expect(state).to_have_attribute("data-state", "live")
    await page.close()
