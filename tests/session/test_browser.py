"""A session's browser that is launched again."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Error

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.launch import BackgroundLaunch, LaunchPlan, Planned
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.errors import BrowserError
from opentabs_py.session import browser as session_browser
from opentabs_py.session.browser import SessionBrowser
from tests.fakes import FakeSocket, hello
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


class Launches:
    """A launcher of browsers without windows; their extension does not connect by itself."""

    def __init__(self) -> None:
        self.open = 0
        self.count = 0

    @asynccontextmanager
    async def __call__(self, planned: Planned) -> AsyncGenerator[None]:
        await planned()
        self.open += 1
        self.count += 1
        yield
        self.open -= 1


def closed_browser(launches: Launches, *, reopen: Sequence[str] = ()) -> SessionBrowser:
    launch = BackgroundLaunch(launches)
    launch.go_by(LaunchPlan(Path("chromium"), Path("extension"), Path("profile"), Path("scratch")))
    browser = SessionBrowser("default", launch, reopen=reopen)
    browser.bridge = Bridge(secret="", origin="", version="0", clock=AlarmClock())
    browser.handle_gone()
    return browser


async def test_a_browser_whose_relaunch_failed_is_launched_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_browser, "CONNECT_WITHIN", 0)
    launches = Launches()
    browser = closed_browser(launches)
    assert browser.launch is not None
    async with anyio.create_task_group() as browser._tasks:
        await browser.launch.run()
        for count in (2, 3):
            with pytest.raises(BrowserError, match="did not connect"):
                await browser.reopen()
            assert (launches.count, launches.open, browser.is_gone) == (count, 0, True)
            assert browser.bridge.bring_browser is not None


async def test_a_browser_that_dies_while_it_is_relaunched_does_not_end_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser = closed_browser(Launches())

    async def die(_: object) -> None:
        raise Error("Target page, context or browser has been closed")

    monkeypatch.setattr(browser, "_handle", die)
    assert browser.launch is not None
    async with anyio.create_task_group() as browser._tasks:
        await browser.launch.run()
        for _ in range(2):
            with pytest.raises(BrowserError, match="has been closed"):
                await browser.reopen()
        browser._tasks.cancel_scope.cancel()


async def test_a_browser_that_is_kept_closed_is_launched_by_no_call() -> None:
    browser = closed_browser(Launches())
    assert browser.bridge.bring_browser is not None
    browser.keep_closed()
    assert browser.bridge.bring_browser is None


async def test_a_caller_that_is_cancelled_leaves_no_browser_half_relaunched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launches, opened = Launches(), list[str]()
    browser = closed_browser(launches, reopen=["https://chat.example/"])

    async def open_page(url: str) -> None:
        opened.append(url)

    monkeypatch.setattr(browser, "open", open_page)
    assert browser.launch is not None
    async with anyio.create_task_group() as browser._tasks:
        await browser.launch.run()
        cancelled = anyio.CancelScope()
        async with anyio.create_task_group() as callers:

            async def give_up() -> None:
                with cancelled:
                    await browser.reopen()

            callers.start_soon(give_up)
            callers.start_soon(browser.reopen)
            await until_all_wait()
            assert not browser.is_gone  # it waits for its extension
            cancelled.cancel()
            await until_all_wait()
            socket = FakeSocket()
            browser._tasks.start_soon(browser.bridge.serve, socket)
            socket.say(hello())
            sync = await socket.hear("plugins.sync")
            socket.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        assert (launches.count, opened) == (2, ["https://chat.example/"])
        browser._tasks.cancel_scope.cancel()
    socket.dispose()
