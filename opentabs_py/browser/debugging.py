"""The debugging connection to a running browser, kept so that its pages can be driven."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from playwright.async_api import Browser, BrowserContext

from opentabs_py.browser.discovery import DebuggingEndpoint
from opentabs_py.browser.driver import FAILURES, SharedDriver
from opentabs_py.errors import BrowserError

LOAD: Final = "Extensions.loadUnpacked"  # the CDP command; it also loads an extension again
LOAD_WITHIN: Final = 20.0  # s; takes less than a tenth of a second
_DISCONNECT_WITHIN: Final = 0.4  # s; takes some ms
_REFUSED: Final = ("403", "Forbidden")


class RefusedError(BrowserError):
    """The user, or the browser, does not allow the connection."""

    def __init__(self, endpoint: DebuggingEndpoint) -> None:
        super().__init__(
            f"{endpoint.browser} did not allow the connection; perhaps you pressed Cancel."
        )


@dataclass(frozen=True, slots=True)
class Debugged:
    """A browser that is debugged.

    Attributes:
        context: Its pages.
    """

    context: BrowserContext
    _browser: Browser
    _gone: anyio.Event

    @property
    def is_gone(self) -> bool:
        """Whether the connection has ended."""
        return self._gone.is_set()

    async def wait_gone(self) -> None:
        """Wait until the connection has ended."""
        await self._gone.wait()

    async def load(self, extension: Path) -> None:
        """Load an unpacked extension, or load it again.

        Raises:
            BrowserError: The browser does not.
        """
        try:
            with anyio.fail_after(LOAD_WITHIN):
                session: Any = await self._browser.new_browser_cdp_session()
                await session.send(LOAD, {"path": str(extension)})
                await session.detach()
        except (*FAILURES, TimeoutError) as error:
            raise BrowserError(f"The browser did not load the extension: {error}") from error


@asynccontextmanager
async def debug(endpoint: DebuggingEndpoint) -> AsyncGenerator[Debugged]:
    """Debug a running browser while the context is open, once its user allows that.

    The browser stays as it is: Playwright changes neither its downloads nor what its pages see.

    Raises:
        RefusedError: The user pressed Cancel.
        BrowserError: The browser went away, or Playwright did not start.
    """
    async with SharedDriver().use() as driver:
        try:
            browser = await driver.playwright.chromium.connect_over_cdp(
                endpoint.url,
                is_local=True,
                no_defaults=True,
                timeout=0,  # the browser answers when its user does
            )
        except FAILURES as error:
            text = str(error)
            if any(each in text for each in _REFUSED):
                raise RefusedError(endpoint) from error
            why = text.splitlines()[0]
            raise BrowserError(f"{endpoint.browser} closed the connection: {why}") from error
        gone = anyio.Event()
        context = browser.contexts[0]
        driver.close_with(context)
        context.on("close", lambda _: gone.set())
        browser.on("disconnected", lambda _: gone.set())
        try:
            yield Debugged(context, browser, gone)
        finally:
            # It disconnects; the browser stays open.
            with anyio.move_on_after(_DISCONNECT_WITHIN, shield=True), suppress(*FAILURES):
                await browser.close()
