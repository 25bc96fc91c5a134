"""The console, opened in a browser."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page

from e2e.live_page import live_page
from opentabs_py.session.session import OpenTabs

VIEWS = ("plugins", "try", "calls", "approvals", "tabs", "logs")


@asynccontextmanager
async def console_page(
    browser: Browser, tabs: OpenTabs, *, width: int = 1280, height: int = 800, dark: bool = False
) -> AsyncGenerator[Page]:
    """The console's page, signed in; its errors fail the test."""
    url = tabs.console_url()
    async with live_page(browser, url, width=width, height=height, dark=dark) as page:
        yield page


async def go(page: Page, path: str) -> None:
    """Show a view by its address."""
    await page.evaluate("(path) => { location.hash = `#/${path}`; }", path)
