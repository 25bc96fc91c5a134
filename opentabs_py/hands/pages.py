"""The pages that hands use, by the number of their tab."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import anyio
from playwright.async_api import BrowserContext, Dialog, Page

from opentabs_py.browser.driver import FAILURES
from opentabs_py.core import codes
from opentabs_py.core.protocol import TabTarget
from opentabs_py.core.questions import host_of
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import ChainError, ToolError
from opentabs_py.hands.watching import Watched, watch

_KNOWN_WITHIN: Final = 2.0  # s; Playwright hears of a new page some ms after its extension does
_SESSION_WITHIN: Final = 1.0  # s; takes some ms, but waits while a dialog is open


@dataclass(frozen=True, slots=True)
class Driven:
    """A browser that Playwright drives.

    Attributes:
        context: Its pages.
        attached: Whether it is the user's own, in which nothing may change that no tool changes.
    """

    context: BrowserContext
    attached: bool


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of a browser.

    Attributes:
        number: Its number among those of all browsers.
        page: Its page.
        active: Whether it is the active tab of its window.
        used: When it was last active; larger is later.
    """

    number: int
    page: Page
    active: bool
    used: float


class HandPages:
    """The pages of the browsers that a session drives.

    Args:
        browsers: Returns the browsers that are there now.
        targets: Returns which tab is which target, in all browsers, as their extensions know it.
        missing: Returns advice for the user when there is no browser.
        bring: Launches the browsers that were closed, if they may be launched again.
        mask: Hides the secrets in a text.
        is_own: Returns whether a URL is of a page of ours, in which no agent may act: it could
            answer in the user's place.
    """

    def __init__(
        self,
        browsers: Callable[[], Awaitable[Sequence[Driven]]],
        targets: Callable[[], Awaitable[Sequence[TabTarget]]],
        missing: Callable[[], str],
        bring: Callable[[], Awaitable[None]],
        *,
        mask: Callable[[str], str],
        is_own: Callable[[str], bool],
    ) -> None:
        self.is_own = is_own
        self._browsers = browsers
        self._find_targets = targets
        self._missing = missing
        self._bring = bring
        self._mask = mask
        self._came = anyio.Event()  # at the next page
        self._targets: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self._watched: WeakKeyDictionary[Page, Watched] = WeakKeyDictionary()
        self._following: WeakKeyDictionary[BrowserContext, bool] = WeakKeyDictionary()

    async def tabs(self, number: int | None = None) -> Sequence[Tab]:
        """Return the tabs of all browsers, without those that show pages of ours.

        Args:
            number: A tab that is waited for if its extension knows it and Playwright does not: it
                may have been opened just now.
        """
        await self._bring()
        browsers = await self._browsers()
        if not browsers:
            raise ToolError(
                self._missing(),
                codes.EXTENSION_NOT_CONNECTED,
                category="connection",
                retryable=True,
            )
        while True:
            came = self._came
            known, found = await self._known(browsers), await self._find_targets()
            unknown = [each.tab_id for each in found if each.target_id not in known]
            if number not in unknown:
                break
            with anyio.move_on_after(_KNOWN_WITHIN) as waiting:
                await came.wait()
            if waiting.cancelled_caught:
                break
        return [
            Tab(each.tab_id, known[each.target_id], each.active, each.last_used)
            for each in found
            if each.target_id in known and not self.is_own(known[each.target_id].url)
        ]

    async def wait_left(self, number: int, site: str | None) -> None:
        """Wait until a tab is closed or leaves a site; return at once if it is not there."""
        try:
            tabs = await self.tabs(number)
        except (ToolError, ChainError):
            return
        for tab in tabs:
            if tab.number == number:
                watched = self.watched(tab.page)
                while not watched.closed.is_set() and host_of(tab.page.url) == (site or ""):
                    await watched.moved.wait()

    async def _known(self, browsers: Sequence[Driven]) -> Mapping[str, Page]:
        """Return the pages that Playwright knows, by their targets."""
        known: dict[str, Page] = {}
        for browser in browsers:
            self.follow(browser.context)
            for page in browser.context.pages:
                with suppress(*FAILURES):  # it has just been closed
                    known[await self._target(page)] = page
        return known

    @asynccontextmanager
    async def as_active(self, page: Page) -> AsyncGenerator[None]:
        """Let a page behave as if its tab were active, while something is done in it.

        Playwright does that for all pages of a browser that it launches. The user's own browser is
        left as it is, and its pages in the background neither move nor get the focus.
        """
        browsers = await self._browsers()
        if not any(each.attached and each.context == page.context for each in browsers):
            yield
            return
        session: Any = None
        with suppress(*FAILURES):  # the page is gone, which the action says better
            session = await page.context.new_cdp_session(page)
            await session.send("Emulation.setFocusEmulationEnabled", {"enabled": True})
        try:
            yield
        finally:
            if session is not None:
                # It continues by itself: while a dialog is open, the browser does not answer.
                with anyio.move_on_after(_SESSION_WITHIN, shield=True), suppress(*FAILURES):
                    await session.detach()

    def watched(self, page: Page) -> Watched:
        """Return what happened in a page since it was first seen."""
        watched = self._watched.get(page)
        if watched is None:
            watched = self._watched[page] = watch(page, self._mask)
        return watched

    def has_shown(self, ref: str, client: SessionKey | None) -> bool:
        """Return whether the last snapshot of any page that a client took has a reference."""
        seen = (each.seen.get(client) for each in self._watched.values())
        return any(each is not None and ref in each.nodes for each in seen)

    def forget_client(self, client: SessionKey) -> None:
        """Forget what a client has seen, whose session has ended."""
        for watched in self._watched.values():
            watched.seen.pop(client, None)

    def follow(self, context: BrowserContext) -> None:
        """Watch the pages of a browser from now on."""
        if context not in self._following:
            self._following[context] = True
            context.on("page", self._see)
            # Of all pages at once: until a new page had its own listener, Playwright would dismiss
            # its dialogs.
            context.on("dialog", self._ask)
        for page in context.pages:
            self.watched(page)

    def _see(self, page: Page) -> None:
        self.watched(page)
        self._came.set()
        self._came = anyio.Event()

    def _ask(self, dialog: Dialog) -> None:
        if dialog.page is not None:  # else Playwright does not know it yet, so the user answers
            self.watched(dialog.page).handle_dialog(dialog)

    async def _target(self, page: Page) -> str:
        known = self._targets.get(page)
        if known is None:
            watched = self.watched(page)
            session: Any = await page.context.new_cdp_session(page)
            info = await session.send("Target.getTargetInfo")

            def close(_: Any) -> None:
                watched.handle_closed()

            # The user may answer a dialog too, of which Playwright says nothing.
            session.on("Page.javascriptDialogClosed", close)
            if watched.dialog is None:
                with anyio.move_on_after(_SESSION_WITHIN):
                    await session.send("Page.enable")
            known = self._targets[page] = str(info["targetInfo"]["targetId"])
        return known
