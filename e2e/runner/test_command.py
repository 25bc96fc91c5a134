"""`opentabs test --ui` itself: it stays at a failure, is ended, and opens its page."""

import os
import re
import shlex
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from playwright.async_api import Browser, expect

from e2e.on_disk import change
from e2e.processes import alive, descendants, is_alive
from e2e.runner.plugins import (
    BAD,
    GOOD,
    OTHER,
    chromiums,
    ended,
    environment,
    plugin_with,
    ran,
)
from e2e.runner.tests_page import COMMAND, opened, piped, shown_tests
from e2e.terminals import environment_of
from e2e.waiting import PATIENT, until_file

# pytest leaves out tests in a class when it has collected them, and others before.
MIXED = """
class TestMixed:
    def test_good(self):
        pass

    def test_bad(self):
        assert "morning" == "evening"
"""

TWO_BAD = BAD + BAD.replace("def test_bad", "def test_worse").replace("from ", "# from ")


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
    with piped([*COMMAND, "--retries", "1"], plugin, environment(plugin)) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        url = next(line for line in lines if line.startswith("Tests at ")).split()[-1]
        async with opened(browser, url) as page:
            failure = page.get_by_role("alert", name="A failure")
            stays = "stays open (without a window) until you continue."
            await expect(failure).to_contain_text(stays)
            await failure.get_by_role("link", name="test_bad").click()
            error = page.get_by_role("region", name="Failure", exact=True)
            await expect(error).to_have_count(1)  # although the test runs again
            for _ in range(2):
                await failure.get_by_role("button", name="Continue").click()
            await expect(page.locator("#summary")).to_contain_text(" · in ")
            await expect(error.locator(".at")).to_have_count(1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENT)
    assert process.returncode == 0
    assert "Press Continue in the page of the tests." in output


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


async def test_tests_that_an_option_leaves_out_are_not_listed(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, mixed=MIXED)
    files = environment(plugin)
    await anyio.run_process(
        ["opentabs", "test", "."], cwd=plugin, env=environment_of(files), check=False
    )
    async with shown_tests(browser, plugin, files, options=["--lf"]) as shown:
        await shown.page.get_by_label("Pause on failure").uncheck()
        await ended(shown)
        await expect(shown.summary).to_contain_text("1 test · 1 failed")


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


async def test_what_is_open_of_a_running_test_says_that_it_has_stopped_with_the_command(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, good=GOOD)
    change(plugin / "src" / "tools" / "hello.js", "await sleep(100", "await sleep(3_600_000")
    async with shown_tests(browser, plugin, environment(plugin)) as shown:
        await shown.choose("test_one, running")
        said = shown.details.locator(".said")
        await expect(said).to_have_text("running")
        os.killpg(shown.terminal.process.pid, signal.SIGINT)
        await expect(shown.page.locator("#state")).to_contain_text("is not running")
        await expect(shown.details.locator(".pill")).to_have_text("not run")
        await expect(said).to_have_text("cancelled")
        run = shown.page.get_by_role("button", name=re.compile("^Run"))
        await expect(run).to_have_count(2)
        for each in [*await run.all(), *await shown.page.get_by_role("checkbox").all()]:
            await expect(each).to_be_disabled()
        await expect(shown.page.locator(".run-here:visible")).to_have_count(0)
        await shown.row("tests/test_good.py").first.click()
        await expect(shown.details.get_by_role("button", name="Run 2 tests")).to_be_disabled()
        assert await anyio.to_thread.run_sync(shown.terminal.wait) == 0


async def test_the_page_opens_in_the_users_browser(
    template: Path, short_path: Path, browser: Browser
) -> None:
    plugin = plugin_with(template, short_path, other=OTHER)
    opener, seen = short_path / "opener", short_path / "opened"
    opener.write_text(f'#!/bin/sh\necho "$1" > "{seen}.part" && mv "{seen}.part" "{seen}"\n')
    opener.chmod(0o755)
    more = {**environment(plugin), "BROWSER": str(opener)}
    with piped(["opentabs", "test", "--ui"], plugin, more) as process:
        await until_file(short_path, seen.exists)
        async with opened(browser, seen.read_text().strip()) as page:
            await expect(page.get_by_role("option", name="test_three, passed")).to_be_visible()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENT)
