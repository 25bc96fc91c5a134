"""Take the documentation's screenshots: `python -m e2e.screenshots [DIR]`."""

import contextlib
import sys
from pathlib import Path
from typing import Any, Final

import anyio
from playwright.async_api import Page, expect

from e2e.bench.many_plugins import write_plugins
from e2e.console.opened import console_page, go
from e2e.kit.report_page import open_report
from e2e.live_page import chromium
from e2e.runner.tests_page import shown_tests
from e2e.waiting import PATIENT_MS
from opentabs_py.config.settings import load_settings
from opentabs_py.demo import demo_plugin_dir
from opentabs_py.demo.site import create_demo_site
from opentabs_py.errors import CallError
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

DIRECTORY: Final = Path(__file__).parent.parent / "docs" / "img"
PAGE: Final = 0.7  # s; long enough to be seen
PICTURES: Final = (  # those in the documentation; any other directory gets all
    "console-approvals-light.png",
    "console-calls-dark-narrow.png",
    "console-calls-light.png",
    "console-plugins-light.png",
    "console-try-dark.png",
    "report-light.png",
    "tests-light.png",
)
WIDE, NARROW = (1120, 640), (400, 720)


async def take(directory: Path, scratch: Path) -> None:
    """Show a server with the demo in the console, and take a screenshot of each view."""
    settings = load_settings(port=0, profile=None, headed=False)
    settings = settings.model_copy(update={"permissions": {"demo.send_message": "ask"}})
    plugins = [demo_plugin_dir(), *write_plugins(scratch, 5)]
    listener = bind("127.0.0.1", 0)
    async with (
        serve_http(create_demo_site(page_delay=PAGE), listener),
        OpenTabs(plugins=plugins, settings=settings) as tabs,
        chromium(settings) as browser,
    ):
        tabs.internals.keep_history()
        await tabs.open(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        while tabs.plugin("demo").status != "ready":
            await tabs.internals.bridge.changed().wait()
        for dark, size in ((False, WIDE), (True, WIDE), (True, NARROW)):
            name = ("dark" if dark else "light") + ("-narrow" if size == NARROW else "")
            async with (
                console_page(browser, tabs, width=size[0], height=size[1], dark=dark) as page,
                anyio.create_task_group() as tasks,
            ):
                await show(page, tabs, tasks, directory, name)
                tasks.cancel_scope.cancel()


async def show(page: Page, tabs: OpenTabs, tasks: Any, directory: Path, name: str) -> None:
    """Take the screenshots of one colour scheme and width."""

    async def call(tool: str, arguments: dict[str, Any]) -> None:
        with contextlib.suppress(CallError):
            await tabs.call(tool, arguments)

    async def picture(view: str) -> None:
        file = f"console-{view}-{name}.png"
        if file in PICTURES or directory != DIRECTORY:
            await page.screenshot(path=directory / file)

    for _ in range(6):
        await call("demo_list_channels", {})
    await call("demo_export_messages", {"channelId": "lobby"})
    await picture("plugins")
    tasks.start_soon(call, "demo_export_messages", {"channelId": "general"})
    message = {"channelId": "general", "text": "Lunch at twelve?"}
    tasks.start_soon(call, "demo_send_message", message)
    await go(page, "calls")
    row = page.get_by_role("option", name="demo_export_messages, running").first
    await expect(row).to_contain_text("page 5", timeout=PATIENT_MS)
    if "narrow" not in name:
        await page.get_by_role("option", name="demo_export_messages, failed").first.click()
        await expect(page.locator(".details .error")).to_be_visible()
    await picture("calls")
    await go(page, "approvals")
    await expect(page.get_by_text("Lunch at twelve?").first).to_be_visible()
    await picture("approvals")
    await go(page, "try/demo_export_messages")
    await page.get_by_label("channelId", exact=True).fill("general")
    await page.get_by_role("button", name="Run").click()
    await expect(page.locator(".run")).to_contain_text("page 7", timeout=PATIENT_MS)
    await picture("try")


TESTS: Final = """
import pytest
from opentabs_py.testing import expect


@pytest.mark.parametrize("how", ["stop", "close"])
def test_a_greeting_survives_the_death_of_the_service_worker(opentabs, how):
    opentabs.open_start_page()
    opentabs.faults.delay("port", 0.2, kind="tool.result")
    call = opentabs.start("chat_hello", name="Ada")
    opentabs.faults.kill_service_worker(how)
    expect(call).to_return({"greeting": "Hello, Ada!"})


def test_hello_is_polite(opentabs):
    opentabs.open_start_page()
    call = opentabs.start("chat_hello", name="Ada")
    expect(call).to_return({"greeting": "Good morning, Ada!"})


def test_an_agent_receives_every_step(opentabs, mcp):
    opentabs.open_start_page()
    call = mcp.start("chat_hello", {"name": "Ada"})
    expect(call).to_progress(min=3, monotonic=True)


@pytest.mark.skip(reason="the site has no archive yet")
def test_the_archive_is_exported():
    ...
"""


async def take_tests(directory: Path, scratch: Path) -> None:
    """Run the tests of a new plugin in their page, and take a screenshot at the failure."""
    await anyio.run_process(["opentabs", "new", "chat"], cwd=scratch)
    plugin = scratch / "chat"
    await anyio.Path(plugin / "tests" / "test_more.py").write_text(TESTS.lstrip())
    settings = load_settings(port=0)
    for dark, size in ((False, WIDE), (True, WIDE), (False, NARROW), (True, NARROW)):
        name = ("dark" if dark else "light") + ("-narrow" if size == NARROW else "")
        file = f"tests-{name}.png"
        if file not in PICTURES and directory == DIRECTORY:
            continue
        async with (
            chromium(settings) as browser,
            shown_tests(browser, plugin, {}, width=size[0], height=size[1], dark=dark) as shown,
        ):
            stays = shown.page.get_by_role("alert", name="A failure")
            await expect(stays).to_be_visible(timeout=PATIENT_MS)
            if size == NARROW:
                await shown.page.screenshot(path=directory / file.replace("tests", "tests-list"))
            await shown.choose("test_hello_is_polite")
            picture = shown.details.get_by_role("img", name="At the failure")
            await expect(picture).to_have_js_property("complete", True)
            await shown.page.screenshot(path=directory / file)
            await shown.details.get_by_role(
                "region", name="Calls", exact=True
            ).scroll_into_view_if_needed()
            await shown.details.evaluate("all => all.scrollBy(0, 500)")
            if directory != DIRECTORY:
                await shown.page.screenshot(path=directory / file.replace("tests", "tests-calls"))


FLAKY: Final = """

def test_the_greeting_is_there_at_once(opentabs, tmp_path_factory):
    opentabs.open_start_page()
    seen = tmp_path_factory.getbasetemp() / "seen"
    first = not seen.exists()
    seen.touch()
    opentabs.call("chat_hello", name="Grace")
    assert not first, "the site is slow today"
"""


async def take_report(directory: Path, scratch: Path) -> None:
    """Run the tests of a new plugin, and take screenshots of the report."""
    await anyio.run_process(["opentabs", "new", "chat"], cwd=scratch)
    plugin = scratch / "chat"
    await anyio.Path(plugin / "tests" / "test_more.py").write_text(TESTS.lstrip() + FLAKY)
    command = ["opentabs", "test", "--retries", "1", "--tracing=retain-on-failure"]
    await anyio.run_process([*command, "--report", "report.html"], cwd=plugin, check=False)
    async with chromium(load_settings(port=0)) as browser:
        for dark, size in ((False, WIDE), (True, WIDE), (False, NARROW), (True, NARROW)):
            name = ("dark" if dark else "light") + ("-narrow" if size == NARROW else "")
            file = f"report-{name}.png"
            if file not in PICTURES and directory == DIRECTORY:
                continue
            width, height = size
            async with open_report(
                browser, plugin / "report.html", width=width, height=height, dark=dark
            ) as shown:
                await shown.choose("test_the_greeting_is_there_at_once, flaky")
                picture = shown.details.get_by_role("img", name="At the failure")
                await expect(picture).to_have_js_property("complete", True)
                await shown.page.screenshot(path=directory / file)


async def main() -> None:
    """Take all screenshots."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY
    await anyio.Path(directory).mkdir(parents=True, exist_ok=True)
    async with anyio.TemporaryDirectory() as scratch:
        await take(directory, Path(scratch))
        await take_tests(directory, Path(scratch))
    async with anyio.TemporaryDirectory() as scratch:
        await take_report(directory, Path(scratch))


if __name__ == "__main__":
    anyio.run(main)
