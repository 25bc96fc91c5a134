"""A server with plugins of all kinds, a browser, and the console in it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Browser, Page

from e2e.chain import PROBE
from e2e.console.opened import console_page
from e2e.console.plugins import write_broken, write_evil, write_forms, write_lacking
from e2e.live_page import chromium
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the plugins."""
    return tmp_path_factory.mktemp("plugins")


@pytest.fixture(scope="module")
async def served(
    directory: Path,
    site: str,  # noqa: ARG001 (entered before, because it is left after)
) -> AsyncGenerator[OpenTabs]:
    """A server with plugins of all kinds."""
    settings = load_settings(port=0, profile=None, headed=False)
    plugins = [
        PROBE,
        write_forms(directory),
        write_evil(directory),
        write_broken(directory),
        write_lacking(directory, "days"),
    ]
    async with OpenTabs(plugins=plugins, settings=settings) as tabs:
        tabs.internals.keep_history()
        yield tabs


@pytest.fixture(scope="module")
async def browser(served: OpenTabs) -> AsyncGenerator[Browser]:
    async with chromium(served.settings) as running:
        yield running


@pytest.fixture
async def tab(served: OpenTabs, site: str) -> AsyncGenerator[Page]:
    """A tab in which the plugins are ready."""
    page = await served.open(f"{site}/page")
    with anyio.fail_after(PATIENT):
        while any(served.plugin(name).status != "ready" for name in ("probe", "forms", "evil")):
            await served.internals.bridge.changed().wait()
    yield page
    await page.goto("about:blank")


@pytest.fixture
async def page(served: OpenTabs, browser: Browser) -> AsyncGenerator[Page]:
    async with console_page(browser, served) as opened:
        yield opened
