"""A session's browser that is launched again."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from playwright.async_api import Error

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.launch import Launcher, Planned
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.errors import BrowserError
from opentabs_py.session.browsers import browser as session_browser
from opentabs_py.session.browsers.background_launch import BackgroundLaunch
from opentabs_py.session.browsers.browser import SessionBrowser
from tests.fakes import FakeSocket, hello
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


PLAN = LaunchPlan(Path("chromium"), Path("extension"), Path("profile"), Path("scratch"))


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


@asynccontextmanager
async def closed_browser(
    launcher: Launcher, *, relaunch_urls: Sequence[str] = ()
) -> AsyncGenerator[SessionBrowser]:
    """Yield a browser that was launched, and that its user has closed."""
    async with anyio.create_task_group() as tasks:
        launch = BackgroundLaunch(launcher, tasks)
        launch.set_plan(PLAN)
        await launch.result()
        browser = SessionBrowser("default", launch, relaunch_urls=relaunch_urls)
        browser.bridge = Bridge(secret="", origin="", clock=AlarmClock())
        async with anyio.create_task_group() as browser._tasks:
            browser.handle_gone()
            yield browser
        await launch.close()


async def test_a_browser_whose_relaunch_failed_is_launched_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_browser, "CONNECT_WITHIN", 0)
    launches = Launches()
    async with closed_browser(launches) as browser:
        for count in (2, 3):
            with pytest.raises(BrowserError, match="did not connect"):
                await browser.relaunch()
            assert (launches.count, launches.open, browser.is_gone) == (count, 0, True)
            assert browser.bridge.relaunch_browser is not None


async def test_a_browser_that_dies_while_it_is_relaunched_does_not_end_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def die(_: object) -> None:
        raise Error("Target page, context or browser has been closed")

    launches = Launches()
    async with closed_browser(launches) as browser:
        monkeypatch.setattr(browser, "_adopt_context", die)
        for _ in range(2):
            with pytest.raises(BrowserError, match="has been closed"):
                await browser.relaunch()
            assert launches.open == 0


async def test_a_browser_that_is_kept_closed_is_launched_by_no_call() -> None:
    async with closed_browser(Launches()) as browser:
        assert browser.bridge.relaunch_browser is not None
        browser.keep_closed()
        assert browser.bridge.relaunch_browser is None


async def test_a_caller_that_is_cancelled_leaves_no_browser_half_relaunched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    launches, opened = Launches(), list[str]()
    pages = ["https://chat.example/"]
    socket = FakeSocket()

    async def open_page(url: str) -> None:
        opened.append(url)

    async with (
        anyio.create_task_group() as tasks,
        closed_browser(launches, relaunch_urls=pages) as browser,
    ):
        monkeypatch.setattr(browser, "open", open_page)
        cancelled = anyio.CancelScope()
        async with anyio.create_task_group() as callers:

            async def give_up() -> None:
                with cancelled:
                    await browser.relaunch()

            callers.start_soon(give_up)
            callers.start_soon(browser.relaunch)
            await until_all_wait()
            assert not browser.is_gone  # it waits for its extension
            cancelled.cancel()
            await until_all_wait()
            tasks.start_soon(browser.bridge.serve, socket)
            socket.say(hello())
            sync = await socket.hear("plugins.sync")
            socket.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        assert (launches.count, opened) == (2, pages)
        tasks.cancel_scope.cancel()
    socket.dispose()


async def test_one_task_enters_and_leaves_a_launcher() -> None:
    states: list[str] = []

    @asynccontextmanager
    async def launcher(planned: Planned) -> AsyncGenerator[None]:
        await planned()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            states.append("open")
            yield
            await anyio.lowlevel.checkpoint()
            states.append("closed")
            tasks.cancel_scope.cancel()

    async with closed_browser(launcher) as browser:
        assert browser.launch is not None
        await browser.launch.relaunch()
        assert states == ["open", "closed", "open"]
    assert states == ["open", "closed", "open", "closed"]


async def test_whatever_a_launcher_raises_a_browser_error_says_it() -> None:
    @asynccontextmanager
    async def launcher(planned: Planned) -> AsyncGenerator[None]:
        await planned()
        yield print(1 // 0)

    async with anyio.create_task_group() as tasks:
        launch = BackgroundLaunch(launcher, tasks)
        launch.set_plan(PLAN)
        with pytest.raises(BrowserError, match=r"ZeroDivisionError: .* by zero") as caught:
            await launch.result()
        assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_a_launch_is_cancelled_by_closing_it() -> None:
    async with anyio.create_task_group() as tasks:
        launch = BackgroundLaunch(Launches(), tasks)  # which waits for its plan
        await until_all_wait()
        await launch.close()
        with pytest.raises(BrowserError, match="was cancelled"):
            await launch.result()


async def test_what_fails_while_a_browser_closes_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @asynccontextmanager
    async def launcher(planned: Planned) -> AsyncGenerator[None]:
        await planned()
        yield
        raise OSError("the profile is gone")

    async with closed_browser(launcher):
        pass
    assert "Closing the browser failed: the profile is gone" in caplog.text
