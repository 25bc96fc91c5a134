"""A browser of a session that is launched again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.launch import BackgroundLaunch, LaunchPlan, Planned
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.errors import BrowserError
from opentabs_py.session import browser as session_browser
from opentabs_py.session.browser import SessionBrowser

pytestmark = pytest.mark.anyio


class Launches:
    """A launcher of browsers whose extension never connects."""

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


def closed_browser(launches: Launches) -> SessionBrowser:
    launch = BackgroundLaunch(launches)
    launch.go_by(LaunchPlan(Path("chromium"), Path("extension"), Path("profile"), Path("scratch")))
    browser = SessionBrowser("default", launch, reopen=())
    browser.bridge = Bridge(secret="", origin="", version="0", clock=AlarmClock())
    browser.handle_gone()
    return browser


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_browser, "CONNECT_WITHIN", 0)


async def test_a_browser_that_was_launched_again_in_vain_is_launched_by_the_next_call() -> None:
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


async def test_a_browser_that_is_kept_closed_is_launched_by_no_call() -> None:
    browser = closed_browser(Launches())
    assert browser.bridge.bring_browser is not None
    browser.keep_closed()
    assert browser.bridge.bring_browser is None
