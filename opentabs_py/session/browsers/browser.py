"""One browser of a session: its link, its launch, and its pages."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from playwright.async_api import BrowserContext, Page

from opentabs_py.browser.crashes import start_worker_at_crashes
from opentabs_py.browser.driver import FAILURES
from opentabs_py.browser.urls import cannot_open, with_scheme
from opentabs_py.errors import BrowserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from anyio.abc import TaskGroup

    from opentabs_py.bridge.bridge import Bridge
    from opentabs_py.bridge.pages import Pages
    from opentabs_py.browser.attach import Attachment
    from opentabs_py.browser.discovery import Attach
    from opentabs_py.browser.signed_in import State
    from opentabs_py.session.browsers.background_launch import BackgroundLaunch

logger = logging.getLogger(__name__)

CONNECT_WITHIN = 20.0  # s; usually takes half a second, on a loaded machine several


@dataclass(slots=True)
class _Relaunch:
    """A relaunch under way, and why it failed."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    error: Exception | None = None

    async def wait(self) -> None:
        """Wait for its end.

        Raises:
            BrowserError: It failed.
        """
        await self.ended.wait()
        if self.error is not None:
            raise BrowserError(str(self.error)) from self.error


class _LatestLink:
    """The link to the extension that a browser was given last.

    After its user has removed an extension, which had its id, the browser counts as another.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    @property
    def connected(self) -> bool:
        """Whether it is connected."""
        return self._pages.bridges[-1].connected

    async def wait_connected(self) -> None:
        """Wait until it is connected."""
        while not self.connected:
            await self.changed().wait()

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of any connection."""
        return self._pages.changed()


class SessionBrowser:
    """A browser that a session uses.

    Args:
        name: Its name, for users and agents.
        launch: Its launch; None for one that is running already.
        attach: Load the extension into it; None if the user does that by hand.
        relaunch_urls: If a call needs it after it was closed or has died, relaunch it and open
            these pages in it. None: such calls fail.

    Attributes:
        bridge: The link to its extension; set before `start`.
        sign_in: The cookies and the storage that it begins with, if it is launched.
        restarts: How often it was relaunched.
        closed_by_us: Whether `close` was called, and it has not been relaunched since.
        on_driven: Called when it can be driven, if it is attached to. With it, the debugging
            connection is kept; set before `start`.
    """

    bridge: Bridge

    def __init__(
        self,
        name: str,
        launch: BackgroundLaunch | None,
        *,
        attach: Attach | None = None,
        relaunch_urls: Sequence[str] | None,
    ) -> None:
        self.name = name
        self.launch = launch
        self.attach = attach
        self.sign_in: State | None = None
        self.restarts = 0
        self.closed_by_us = False
        self.on_driven: Callable[[BrowserContext], None] | None = None
        self._relaunch_urls = relaunch_urls
        self._context: BrowserContext | None = None
        self._first: Page | None = None  # the empty one of a launch, until something is opened
        self._gone = anyio.Event()
        self._relaunch: _Relaunch | None = None  # while it is being relaunched
        self._attachment: Attachment | None = None
        self._tasks: TaskGroup
        self._pages: Pages

    def __repr__(self) -> str:
        return f"<SessionBrowser {self.name}>"

    @property
    def context(self) -> BrowserContext:
        """Playwright's browser context; its pages are the browser's tabs.

        Raises:
            BrowserError: This session did not launch the browser.
        """
        if self._context is None:
            raise BrowserError("This session did not launch a browser. Open pages in your own.")
        return self._context

    @property
    def driven(self) -> BrowserContext | None:
        """Playwright's context of it, if it was launched, or its debugging connection is kept."""
        return self._context if self._attachment is None else self._attachment.context

    @property
    def is_gone(self) -> bool:
        """Whether it was closed or died while the session ran."""
        return self._gone.is_set()

    async def start(self, tasks: TaskGroup, extension: Path, pages: Pages) -> None:
        """Wait until it is running and its extension is connected, if it is launched.

        Args:
            tasks: Tasks that run as long as the session.
            extension: The extension that is staged for it.
            pages: The pages of all browsers.

        Raises:
            BrowserError: It did not start or connect.
        """
        self._tasks, self._pages = tasks, pages
        if self.launch is not None:
            await self._adopt_context(await self.launch.result())
            await self._wait_connected(self.launch)
        elif self.attach is not None:
            from opentabs_py.browser.attach import Attachment  # rarely needed

            self._attachment = Attachment(
                extension,
                _LatestLink(pages),
                self.attach,
                show=self._show,
                on_driven=self.on_driven,
            )
            tasks.start_soon(self._attachment.run)

    async def detach(self) -> None:
        """Remove the extension from a browser that it was loaded into."""
        if self._attachment is None or self.attach is None or self.attach.keep:
            return
        with anyio.CancelScope(shield=True):  # bounded
            bridges = [each for each in self._pages.bridges if each.connected]
            removed = [await each.remove_extension("the server stops") for each in bridges]
            if removed and all(removed):
                self._attachment.handle_removed()

    def keep_closed(self) -> None:
        """Stop relaunching it."""
        self._relaunch_urls = None
        self.bridge.relaunch_browser = None

    async def wait_gone(self) -> None:
        """Wait until it was closed or died."""
        await self._gone.wait()

    async def wait_back(self) -> None:
        """Wait until it has been relaunched, and its pages have been opened again."""
        while self.is_gone:
            await self.bridge.changed().wait()
        if self._relaunch is not None:
            await self._relaunch.ended.wait()

    def handle_gone(self) -> None:
        """Record that it was closed or died; for launchers that yielded no context."""
        self.bridge.handle_browser_gone()
        self._gone.set()
        if self._relaunch_urls is not None:
            self.bridge.relaunch_browser = self._relaunch_for_call

    async def relaunch(self) -> None:
        """Relaunch it in the same way, if it was closed or has died.

        It is relaunched in a task of the session, for all who wait for it: a cancelled one does not
        leave it half open.

        Raises:
            BrowserError: It did not start or connect.
        """
        if self._relaunch is not None:
            await self._relaunch.wait()
        if self.launch is not None and self.is_gone:
            if self._relaunch is None:  # else another caller has woken up first
                self._relaunch = _Relaunch()
                self._tasks.start_soon(self._run_relaunch, self.launch, self._relaunch)
            await self._relaunch.wait()

    async def _run_relaunch(self, launch: BackgroundLaunch, relaunch: _Relaunch) -> None:
        try:
            context = await launch.relaunch()
            try:
                await self._adopt_context(context)
                await self._wait_connected(launch)
            except Exception:
                await launch.close()
                self.handle_gone()  # so that the next call tries again
                raise
            self.restarts += 1
            for url in self._relaunch_urls or ():
                try:
                    await self.open(url)
                except BrowserError as error:
                    logger.warning("%s", error)
        except Exception as error:  # noqa: BLE001 (those who wait raise it)
            relaunch.error = error
        finally:
            self._relaunch = None
            relaunch.ended.set()

    async def close(self) -> None:
        """Close it, as its user might; `relaunch` starts it again."""
        gone = self._gone
        self.closed_by_us = True
        with suppress(*FAILURES):  # it has just died
            await self.context.close()
        await gone.wait()

    async def open(self, url: str) -> Page:
        """Open a page in a new tab and wait for it to load.

        Args:
            url: With or without its scheme, as users type it.

        Raises:
            BrowserError: The page cannot be opened.
        """
        # A page is tried once: Chromium's error page still comes after `goto` has failed, and
        # would end the next one.
        first, self._first = self._first, None
        page = None
        try:
            if first is None or first.is_closed() or first.url != "about:blank":
                page = await self.context.new_page()
            else:
                page = first
            answer = await page.goto(with_scheme(url))
        except FAILURES as error:
            if page is not None and page is not first:
                await close_page(page)
            raise cannot_open(url, error) from error
        if answer is not None and answer.status >= 400:
            logger.warning("%s answered %d %s", url, answer.status, answer.status_text)
        return page

    async def _relaunch_for_call(self) -> None:
        from opentabs_py.core import failures

        try:
            await self.relaunch()
        except BrowserError as error:
            raise failures.no_browser(str(error)) from error

    async def _wait_connected(self, launch: BackgroundLaunch) -> None:
        with anyio.move_on_after(CONNECT_WITHIN) as scope:
            await self.bridge.wait_connected()
        if scope.cancelled_caught:
            raise launch.plan.not_connected(CONNECT_WITHIN)

    async def _adopt_context(self, context: BrowserContext | None) -> None:
        if context is not None and self.sign_in is not None:
            state: Any = self.sign_in
            try:
                await context.set_storage_state(state)
            except FAILURES as error:  # it has just died, or cannot read the state
                why = str(error).partition("\n")[0]
                raise BrowserError(f"Cannot restore the saved sign-in: {why}") from error
        self._context = context
        self._gone = anyio.Event()
        self.closed_by_us = False
        self.bridge.handle_browser()
        if context is not None:
            context.on("close", self._handle_closed)
            self._first = context.pages[0] if context.pages else None
            start_worker_at_crashes(
                context, self.bridge.origin, lambda: self.bridge.connected, self._tasks
            )

    def _show(self, text: str) -> None:
        tabs = self.bridge.tabs
        tabs.advice = text
        tabs.lacks_debugging = self._attachment is not None and self._attachment.lacks_context
        if text:
            logger.warning("%s", text)

    def _handle_closed(self, context: BrowserContext) -> None:
        if context is self._context:
            self.handle_gone()


async def close_page(page: Page) -> None:
    """Close a page; a browser's last one is emptied, since a browser without a page exits."""
    with suppress(*FAILURES):  # the page or its browser is gone already
        if len(page.context.pages) > 1:
            await page.close()
        else:
            await page.goto("about:blank")
