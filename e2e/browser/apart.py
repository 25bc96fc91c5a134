"""A browser that outlives its servers, with an extension that was loaded by hand."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Page

from e2e.chain import PROBE
from opentabs_py.browser.chromium import find_chromium
from opentabs_py.browser.launch import launch_browser
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.switches import is_root
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs


@dataclass
class Apart:
    """The browser, and the port that its extension knows."""

    page: Page
    port: int

    def serve(self, *, port: int | None = None) -> OpenTabs:
        """Make a server that the browser's extension connects to."""
        settings = load_settings(port=self.port if port is None else port)
        return OpenTabs(browser="none", settings=settings, plugins=[PROBE])


@asynccontextmanager
async def launch_apart(directory: Path) -> AsyncGenerator[Apart]:
    """Launch the browser with the extension that servers stage for loading by hand."""
    async with OpenTabs(browser="none", settings=load_settings(port=0), plugins=[PROBE]) as staged:
        extension = staged.extension_dir
        port = int(staged.mcp_url.split(":")[2].split("/")[0])
    plan = LaunchPlan(
        find_chromium().path,
        extension,
        directory / "profile",
        scratch=directory,
        sandbox=not is_root(),
    )

    async def planned() -> LaunchPlan:
        return plan

    async with launch_browser(planned) as context:
        yield Apart(context.pages[0], port)
