"""`opentabs test --ui`: a plugin's tests in a page, in a real browser, with real runs."""

import os
import re
import shlex
import shutil
import signal
import zipfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import httpx2
import pytest
from playwright.async_api import Browser, Page, Route, expect
from watchfiles import awatch

from e2e.documents import run
from e2e.live_page import READ_ALOUD, chromium
from e2e.on_disk import change
from e2e.processes import alive, command_line, descendants, is_alive
from e2e.runner.tests_page import COMMAND, Shown, opened, piped, shown_tests
from e2e.terminals import environment_of
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings

# The page is redrawn four times a second.
REDRAWN = "new Promise((done) => setTimeout(done, 600))"
# Each test adds a line to a file, so that the run itself says what ran.
CONFTEST = """
import os
import pytest

@pytest.fixture(autouse=True)
def note(request):
    with open(os.environ["RAN"], "a") as file:
        file.write(request.node.name.partition("[")[0] + "\\n")
"""
GOOD = """
import pytest

def test_one(opentabs):
    opentabs.open_start_page()
    assert opentabs.call("chat_hello", name="Ada")["greeting"] == "Hello, Ada!"

@pytest.mark.skip(reason="not yet")
def test_two():
    pass
"""
OTHER = """
def test_three():
    pass
"""
# Like `GOOD` and `BAD`, but without a browser: for tests that are only about which tests run.
QUICK = """
import pytest

def test_one():
    pass

@pytest.mark.skip(reason="not yet")
def test_two():
    pass
"""
WRONG = """
def test_bad():
    assert "morning" == "evening"
"""
BAD = """
from opentabs_py.testing import expect

def test_bad(opentabs, page):
    opentabs.open_start_page()
    opentabs.call("chat_hello", name="Ada")
    page.evaluate("document.body.style.background = 'rgb(200, 0, 0)'")
    expect(opentabs.start("chat_hello", name="Bob")).to_return({"greeting": "Good morning, Bob!"})
"""
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
HANGS = """
import os

def test_hangs(opentabs):
    page = opentabs.open_start_page()
    with open(os.environ["RAN"], "a") as file:
        file.write("opened")
    page.wait_for_timeout(3_600_000)
"""
# Runs without a browser until it is stopped.
SLEEPS = """
import time

def test_sleeps():
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built plugin without tests."""
    directory = tmp_path_factory.mktemp("plugins")
    made = run(["opentabs", "new", "chat", "--js"], directory)
    assert made.returncode == 0, made.stderr
    plugin = directory / "chat"
    built = run(["opentabs", "build", "."], plugin)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(plugin / "tests")
    return plugin


def plugin_with(template: Path, directory: Path, **tests: str) -> Path:
    plugin = directory / "chat"
    shutil.copytree(template, plugin, symlinks=True)
    (plugin / "tests").mkdir()
    (plugin / "tests" / "conftest.py").write_text(CONFTEST)
    for name, text in tests.items():
        (plugin / "tests" / f"test_{name}.py").write_text(text)
    return plugin


def ran(plugin: Path) -> list[str]:
    file = plugin.parent / "ran"
    return file.read_text().split() if file.exists() else []


def environment(plugin: Path) -> dict[str, str]:
    (plugin.parent / "tmp").mkdir(exist_ok=True)
    return {"RAN": str(plugin.parent / "ran"), "TMPDIR": str(plugin.parent / "tmp")}


@pytest.fixture(scope="module")
async def browser() -> AsyncGenerator[Browser]:
    async with chromium(load_settings(port=0)) as running:
        yield running


async def ended(shown: Shown) -> None:
    """Wait for the end of the run."""
    await expect(shown.summary).to_contain_text(re.compile(r"· in \d"))


# --- one run, seen from all sides ---


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
        wide = await shown.page.evaluate("""() => {
            const seen = [document.documentElement, ...document.querySelectorAll(
              ".details, .top, #notices, .list, .failure")];
            return seen.filter((each) => each.scrollWidth > each.clientWidth + 1).map(
              (each) => each.className || each.tagName);
        }""")
        assert wide == [], name


async def test_everything_that_can_be_used_has_a_name(shown: Shown) -> None:
    named = {"button", "link", "searchbox", "combobox", "checkbox", "listbox", "option", "region"}
    named |= {"complementary", "img", "DisclosureTriangle", "banner"}
    session = await shown.page.context.new_cdp_session(shown.page)
    for name in ("test_bad", "test_faults", "tests/test_good.py"):
        await shown.choose(name)
        tree = await session.send("Accessibility.getFullAXTree")
        nameless = [
            node
            for node in tree["nodes"]
            if not node["ignored"]
            and node["role"]["value"] in named
            and not node.get("name", {}).get("value", "").strip()
        ]
        assert nameless == [], name


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


# --- runs ---


async def test_one_test_a_file_the_failed_ones_or_all_run(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, good=QUICK, other=OTHER, bad=WRONG)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await shown.page.get_by_label("Pause on failure").uncheck()
        await ended(shown)
        assert sorted(ran(plugin)) == ["test_bad", "test_one", "test_three"]

        await shown.choose("test_three")
        await shown.details.get_by_role("button", name="Run again").click()
        await until_ran(plugin, 4)
        await ended(shown)
        await shown.choose("tests/test_good.py")
        await shown.details.get_by_role("button", name="Run 2 tests").click()
        await until_ran(plugin, 5)
        await ended(shown)
        await shown.page.get_by_role("button", name="Run failed (1)").click()
        await until_ran(plugin, 6)
        await ended(shown)
        assert ran(plugin)[3:] == ["test_three", "test_one", "test_bad"]
        # Tests that did not run keep their state.
        await expect(shown.summary).to_contain_text("4 tests · 1 failed · 2 passed · 1 skipped")

        await shown.page.get_by_role("button", name="Run all").click()
        await until_ran(plugin, 9)
        await ended(shown)
        assert sorted(ran(plugin)[6:]) == ["test_bad", "test_one", "test_three"]


async def until_ran(plugin: Path, count: int) -> None:
    await until(plugin.parent, lambda: len(ran(plugin)) >= count)


async def until(directory: Path, is_true: Callable[[], bool]) -> None:
    """Wait for a condition that depends on a file."""
    with anyio.fail_after(PATIENT):
        changes = awatch(directory, rust_timeout=100, yield_on_timeout=True, recursive=False)
        async for _ in changes:
            if is_true():
                return


async def test_a_change_builds_the_plugin_and_runs_again_what_ran_last(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, good=GOOD, other=OTHER)
    tool = plugin / "src" / "tools" / "hello.js"
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await ended(shown)
        assert sorted(ran(plugin)) == ["test_one", "test_three"]

        (plugin / "tests" / "test_other.py").write_text(OTHER + OTHER.replace("three", "four"))
        await expect(shown.row("test_four, passed")).to_be_visible()
        await ended(shown)
        assert sorted(ran(plugin)[2:]) == ["test_four", "test_three"]  # only that file

        await shown.page.get_by_label("Pause on failure").uncheck()
        await shown.choose("test_one")
        await shown.details.get_by_role("button", name="Run again").click()
        await until_ran(plugin, 5)
        await ended(shown)
        change(tool, "Hello, ", "Good morning, ")
        await expect(shown.row("test_one, failed")).to_be_visible()
        await expect(shown.summary).to_contain_text("src/tools/hello.js changed")
        await ended(shown)
        assert ran(plugin)[4:] == ["test_one", "test_one"]  # only that one, because it ran last

        change(tool, '"hand"', '"hnad"')
        build = shown.page.get_by_role("alert", name="The build")
        await expect(build).to_contain_text("is not a Lucide icon")
        change(tool, '"hnad"', '"hand"')
        await expect(build).to_have_count(0)
        await until_ran(plugin, 7)
        await ended(shown)

        async with shown.page.expect_response("**/switch"):
            await shown.page.get_by_label("Run on change").uncheck()
        change(tool, "Good morning, ", "Hello, ")
        await shown.page.get_by_role("button", name="Run failed (1)").click()
        await expect(shown.row("test_one, passed")).to_be_visible()
        await ended(shown)
        assert len(ran(plugin)) == 8  # the change alone ran nothing, but was built


async def test_a_switch_stays_as_it_was_set_while_the_server_is_slow(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, other=OTHER)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await shown.row("test_three, passed").wait_for()
        asked, may_pass = anyio.Event(), anyio.Event()

        async def hold(route: Route) -> None:
            asked.set()
            await may_pass.wait()
            await route.continue_()

        await shown.page.route("**/switch", hold)
        switch = shown.page.get_by_label("Pause on failure")
        await switch.uncheck()
        await asked.wait()
        await shown.page.evaluate(REDRAWN)
        await expect(switch).not_to_be_checked()
        async with shown.page.expect_response("**/switch"):
            may_pass.set()
        await shown.page.evaluate(REDRAWN)
        await expect(switch).not_to_be_checked()


async def test_a_file_that_cannot_be_imported_is_shown_and_the_others_run(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, other=OTHER, wrong="import nothing_like_this")
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await ended(shown)
        assert ran(plugin) == ["test_three"]
        await shown.choose("tests/test_wrong.py, failed")
        await expect(shown.details).to_contain_text("No module named 'nothing_like_this'")
        change(plugin / "tests" / "test_wrong.py", "import nothing_like_this", QUICK)
        await expect(shown.row("test_one, passed")).to_be_visible()
        await expect(shown.row("tests/test_wrong.py, failed")).to_have_count(0)


async def test_a_run_is_stopped_with_its_browser(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, hangs=HANGS)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await expect(shown.row("test_hangs, running")).to_be_visible()
        await until_ran(plugin, 2)
        assert chromiums(shown)
        await shown.page.get_by_role("button", name="Stop").click()
        await expect(shown.row("test_hangs, not run")).to_be_visible()
        await ended(shown)
        assert chromiums(shown) == set()


async def test_how_long_a_run_takes_is_not_read_aloud(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, sleeps=SLEEPS)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await expect(shown.row("test_sleeps, running")).to_be_visible()
        await expect(shown.summary).to_contain_text(re.compile(r"\d s"))
        await shown.page.evaluate(READ_ALOUD)
        await expect(shown.summary).not_to_have_text(await shown.summary.inner_text())
        assert await shown.page.evaluate("readAloud") == []
        await shown.page.get_by_role("button", name="Stop").click()
        await ended(shown)
        assert "in " in (await shown.page.evaluate("readAloud"))[-1]


async def test_a_run_that_cannot_begin_says_so(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, other=OTHER)
    (plugin / "tests" / "conftest.py").write_text("import nothing_like_this")
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        alert = shown.page.get_by_role("alert").filter(has_text="pytest exited with 4")
        await expect(alert).to_be_visible()
        (plugin / "tests" / "conftest.py").write_text(CONFTEST)
        await expect(shown.row("test_three, passed")).to_be_visible()
        await expect(alert).to_have_count(0)


# --- at a failure ---

TWO_BAD = BAD + BAD.replace("def test_bad", "def test_worse").replace("from ", "# from ")


def chromiums(shown: Shown) -> set[int]:
    """The browsers of the tests."""
    return {
        pid
        for pid in descendants(shown.terminal.process.pid)
        if any(word.startswith("--load-extension=") for word in command_line(pid))
    }


async def test_it_stays_at_a_failure_until_one_continues_in_the_page_or_the_terminal(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, bad=TWO_BAD)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        failure = shown.page.get_by_role("alert", name="A failure")
        await expect(failure).to_contain_text("test_bad has failed")
        open_browser = chromiums(shown)
        assert open_browser
        assert ran(plugin) == ["test_bad"]
        # What is known so far is already shown.
        await shown.choose("test_bad")
        await expect(shown.details).to_contain_text("Good morning, Bob!")
        await expect(shown.details.get_by_role("img", name="At the failure")).to_be_visible()

        await failure.get_by_role("button", name="Continue").click()
        await expect(failure).to_contain_text("test_worse has failed")
        assert all(map(is_alive, open_browser))
        shown.terminal.type("\n")
        await ended(shown)
        await expect(failure).to_have_count(0)
        assert ran(plugin) == ["test_bad", "test_worse"]

        await shown.page.get_by_role("button", name="Run all").click()
        await expect(failure).to_contain_text("test_bad has failed")
        await shown.page.get_by_label("Pause on failure").uncheck()
        await ended(shown)
        assert ran(plugin)[2:] == ["test_bad", "test_worse"]


async def test_without_a_terminal_only_the_page_continues(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, bad=BAD)
    with piped(COMMAND, plugin, environment(plugin)) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(line for line in lines if line.startswith("Tests at ")).split()[-1]
        async with opened(browser, url) as page:
            failure = page.get_by_role("alert", name="A failure")
            stays = "stays open (without a window) until you continue."
            await expect(failure).to_contain_text(stays)
            await failure.get_by_role("button", name="Continue").click()
            await expect(page.locator("#summary")).to_contain_text(" · in ")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENT)
    assert process.returncode == 0
    assert "Press Continue in the page of the tests." in output


# --- the command itself ---


async def test_the_command_that_is_copied_of_a_checked_tool_checks_it_again(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path)
    options = ["--fuzz", "2", "--seed", "3", "--writes"]
    async with shown_tests(browser, plugin, environment(plugin), options=options) as shown:
        await shown.choose("test_chat_hello, passed")
        await shown.details.get_by_role("button", name="Copy command").click()
        copied = await shown.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"opentabs test . {' '.join(options)} -k test_chat_hello"
    again = await anyio.run_process(
        shlex.split(copied), cwd=plugin, env=environment_of(environment(plugin)), check=False
    )
    assert b"1 passed" in again.stdout, again.stdout.decode()


@pytest.mark.parametrize("at", ["a failure", "rest"])
async def test_ctrl_c_leaves_no_process_and_no_file(
    template: Path, short_path: Path, browser: Browser, at: str
) -> None:
    plugin = plugin_with(template, short_path, bad=BAD if at == "a failure" else GOOD)
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        if at == "rest":
            await ended(shown)
        else:
            await expect(shown.page.get_by_role("alert", name="A failure")).to_be_visible()
        process = shown.terminal.process
        family = {process.pid, *descendants(process.pid)}
        os.killpg(process.pid, signal.SIGINT)
        assert await anyio.to_thread.run_sync(shown.terminal.wait) == 0
        assert alive(family) == {}
        left = [each.name for each in (plugin.parent / "tmp").iterdir()]
        assert [name for name in left if not name.startswith("pytest-of")] == []
        await expect(shown.page.locator("#state")).to_contain_text("is not running")
        await expect(shown.page.get_by_role("alert", name="A failure")).to_have_count(0)
        await expect(shown.page.get_by_role("button", name="Stop")).to_be_hidden()


async def test_the_page_opens_in_the_users_browser(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, other=OTHER)
    opener, seen = short_path / "opener", short_path / "opened"
    opener.write_text(f'#!/bin/sh\necho "$1" > "{seen}.part" && mv "{seen}.part" "{seen}"\n')
    opener.chmod(0o755)
    more = {**environment(plugin), "BROWSER": str(opener)}
    with piped(["opentabs", "test", "--ui"], plugin, more) as process:
        await until(short_path, seen.exists)
        async with opened(browser, seen.read_text().strip()) as page:
            await expect(page.get_by_role("option", name="test_three, passed")).to_be_visible()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENT)
