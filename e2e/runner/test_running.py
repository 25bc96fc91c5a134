"""Tests are run from their page, again after a change, and stopped."""

import re
from pathlib import Path

import anyio
from playwright.async_api import Browser, Route, expect

from e2e.live_page import READ_ALOUD
from e2e.on_disk import change
from e2e.runner.plugins import (
    CONFTEST,
    GOOD,
    OTHER,
    QUICK,
    WRONG,
    chromiums,
    ended,
    environment,
    plugin_with,
    ran,
    until_ran,
)
from e2e.runner.tests_page import shown_tests

# The page is redrawn four times a second.
REDRAWN = "new Promise((done) => setTimeout(done, 600))"

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


async def test_a_run_is_read_aloud_when_it_ends_and_not_as_it_goes_on(
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
        await shown.page.evaluate("readAloud.length = 0")
        await shown.page.get_by_role("button", name="Run all").click()
        await expect(shown.row("test_sleeps, running")).to_be_visible()
        assert await shown.page.evaluate("readAloud") == []


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
