"""When Playwright's driver dies, all who wait for the browser see it as closed."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from mcp.client import Client

from e2e.chain import PROBE, Running, Tab, wait_for_document
from e2e.processes import alive, command_line, descendants
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs


def driver_in(pids: set[int]) -> int:
    """Return the driver among these processes."""
    [driver] = [pid for pid in pids if "run-driver" in command_line(pid)]
    return driver


@dataclass
class Apart:
    """A session with its own driver, in its own temporary directory."""

    tabs: OpenTabs
    children: set[int]
    temporary: Path

    @property
    def driver(self) -> int:
        return driver_in(self.children)

    @property
    def browser(self) -> int:
        [browser] = [
            pid
            for pid in self.children
            if f"--user-data-dir={self.tabs.extension_dir.parent}/profile" in command_line(pid)
            and not any(word.startswith("--type=") for word in command_line(pid))
        ]
        return browser

    def alive(self) -> dict[int, str]:
        return alive(self.children)


@pytest.fixture
async def apart(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Apart]:
    """The test leaves it, because the fixture does not see how the test ends."""
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))
    before = descendants(os.getpid())
    tabs = OpenTabs(plugins=[PROBE], settings=load_settings(port=0))
    await tabs.__aenter__()
    apart = Apart(tabs, descendants(os.getpid()) - before, short_path)
    yield apart
    for pid in apart.alive():
        os.kill(pid, signal.SIGKILL)


async def test_running_calls_end_when_the_driver_dies_as_when_the_browser_is_closed(
    site: str, apart: Apart
) -> None:
    url = f"{site}/driver"
    page = await apart.tabs.open(url)
    tab = Tab(page, (await wait_for_document(apart.tabs, url)).tab_id, apart.tabs)
    async with anyio.create_task_group() as group:
        running: Running = await tab.start(group, [{"wait": 60_000}], "orphan")
        os.kill(apart.driver, signal.SIGKILL)
        await running.wait()
        with anyio.fail_after(PATIENT):
            await apart.tabs.browser.wait_gone()
    await apart.tabs.__aexit__(None, None, None)

    assert running.error is not None
    assert running.error.detail.code == "TAB_CLOSED"


@pytest.mark.parametrize("state", ["running", "stopped"])
async def test_leaving_a_session_whose_driver_died_is_quiet_and_leaves_nothing(
    state: str, apart: Apart
) -> None:
    if state == "stopped":  # so that it does not notice the driver's death
        os.kill(apart.browser, signal.SIGSTOP)
    os.kill(apart.driver, signal.SIGKILL)
    with anyio.fail_after(PATIENT):
        await apart.tabs.browser.wait_gone()
    await apart.tabs.__aexit__(None, None, None)
    gc.collect()  # unretrieved errors are reported now, which fails the test

    assert list(apart.temporary.iterdir()) == []
    with anyio.fail_after(PATIENT):
        while apart.alive():  # noqa: ASYNC110 (no event)
            await anyio.sleep(0.01)


@asynccontextmanager
async def serving(short_path: Path, *options: str) -> AsyncGenerator["Served"]:
    """A server in its own process, which ends with the block."""
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0", *options]
    with tempfile.TemporaryDirectory() as settings:
        # Other tests may have changed the user's settings, and this server would warn about them.
        own = {"TMPDIR": str(short_path), "XDG_CONFIG_HOME": settings}
        async with await anyio.open_process(
            [*command, "--plugin", str(PROBE)], env={**os.environ, **own}
        ) as process:
            try:
                served = Served(process)
                await served.wait_said("MCP at ")
                yield served
            finally:
                with suppress(ProcessLookupError):
                    process.kill()


@dataclass
class Served:
    process: Process
    said: str = ""

    @property
    def url(self) -> str:
        return self.said.partition("MCP at ")[2].split()[0]

    async def wait_said(self, words: str) -> None:
        """Wait until a text appears on stderr."""
        assert self.process.stderr is not None
        with anyio.fail_after(2 * PATIENT):
            while words not in self.said or not self.said.endswith("\n"):
                self.said += (await self.process.stderr.receive()).decode()

    async def end(self) -> int:
        """Wait until it has ended, and return its exit code."""
        assert self.process.stderr is not None
        with anyio.fail_after(PATIENT):
            async for said in self.process.stderr:
                self.said += said.decode()
            return await self.process.wait()

    def kill(self, what: str) -> None:
        """Kill its driver, or its browser."""
        pids = descendants(self.process.pid)
        if what == "driver":
            os.kill(driver_in(pids), signal.SIGKILL)
            return
        for pid in pids:
            if any("--load-extension" in word for word in command_line(pid)):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("what", ["browser", "driver"])
async def test_serve_opens_its_browser_again_at_the_next_call(
    what: str, site: str, short_path: Path
) -> None:
    async with serving(short_path, "--open", f"{site}/again") as served:
        served.kill(what)
        await served.wait_said("the next call reopens it")
        async with Client(served.url) as client:
            result = await client.call_tool("probe_echo", {"value": "after"})
        served.process.terminate()
        await served.end()

    assert result.structured_content == {"value": "after"}
    assert [each async for each in anyio.Path(short_path).iterdir()] == []


@pytest.mark.parametrize("transport", [(), ("--stdio",)], ids=["http", "stdio"])
async def test_serve_ends_with_its_browser_where_it_is_asked_to(
    transport: tuple[str, ...], short_path: Path
) -> None:
    async with serving(short_path, "--exit-with-browser", *transport) as served:
        served.kill("driver")
        await served.wait_said("The browser was closed or died; the server exits")
        code = await served.end()

    assert code == 0, served.said
    assert served.said.splitlines()[-1].endswith("the server exits")
    assert [each async for each in anyio.Path(short_path).iterdir()] == []


async def test_calls_at_once_open_one_browser_and_a_closing_session_none(site: str) -> None:
    url = f"{site}/reopened"
    async with OpenTabs(
        plugins=[PROBE], settings=load_settings(port=0), relaunch_urls=[url]
    ) as tabs:
        first = tabs.context
        await first.close()
        async with anyio.create_task_group() as group:
            for value in range(4):
                group.start_soon(tabs.call, "probe_echo", {"value": value})
        second, browser = tabs.context, tabs.browser
        pages = [page.url for page in second.pages]

    assert second is not first
    assert pages == [url]
    assert browser.context is second


async def test_a_profile_in_use_is_an_error_that_names_it_and_its_browser_is_left_alone(
    tmp_path: Path,
) -> None:
    settings = load_settings(port=0, profile=tmp_path / "profile")
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        with pytest.raises(BrowserError, match=r"The profile .*profile is in use by another"):
            async with OpenTabs(plugins=[PROBE], settings=settings):
                pass
        assert len(tabs.context.pages) == 1


async def test_several_browsers_share_a_driver_and_come_back_when_it_dies(
    site: str, tmp_path: Path
) -> None:
    profiles = {name: tmp_path / name for name in ("work", "home")}
    before = descendants(os.getpid())
    async with OpenTabs(
        plugins=[PROBE], browsers=profiles, settings=load_settings(port=0), relaunch_urls=[]
    ) as tabs:
        browsers = tabs.browsers.values()
        first = driver_in(descendants(os.getpid()) - before)
        os.kill(first, signal.SIGKILL)
        with anyio.fail_after(PATIENT):
            for browser in browsers:
                await browser.wait_gone()
            for browser in browsers:
                await browser.relaunch()
        for browser in browsers:
            await browser.open(f"{site}/page")
        second = driver_in(descendants(os.getpid()) - before)

        assert second != first

        await tabs.browsers["work"].context.close()
        with anyio.fail_after(PATIENT):
            await tabs.browsers["work"].relaunch()

        assert driver_in(descendants(os.getpid()) - before) == second
        assert not tabs.browsers["home"].is_gone
    assert alive(descendants(os.getpid()) - before) == {}


async def test_a_driver_that_hangs_when_its_session_ends_is_killed(apart: Apart) -> None:
    os.kill(apart.driver, signal.SIGSTOP)
    await apart.tabs.__aexit__(None, None, None)
    assert apart.alive() == {}
    assert list(apart.temporary.iterdir()) == []
