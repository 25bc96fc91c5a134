"""The pages that hands use, by the number of their tab, and what happened in them."""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import anyio
from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Error, Page, Request

from opentabs_py.browser.driver import FAILURES
from opentabs_py.core import codes
from opentabs_py.core.protocol import TabTarget
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import shorten
from opentabs_py.errors import ToolError
from opentabs_py.hands.editors import Editors
from opentabs_py.hands.tree import Node

_HEARTBEAT: Final = 5.0  # s
KEPT: Final = 300  # messages and requests of each page
KEPT_CLIENTS: Final = 16  # for each page; the snapshot of a large one takes some MB
# Characters of a message; more than a tool shows, so that a secret which is cut is not shown.
LONGEST_MESSAGE: Final = 4_000
_KNOWN_WITHIN: Final = 2.0  # s; Playwright hears of a new page some ms after its extension does
_SESSION_WITHIN: Final = 1.0  # s; takes some ms, but waits while a dialog is open
_DONE: Final = "click action done"  # in Playwright's log; then it waits for a navigation


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


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of a page, and how it ended."""

    number: int
    request: Request
    failure: str | None


@dataclass(slots=True)
class Seen:
    """What a client has seen of a page.

    Attributes:
        shown: The snapshot that it took last.
        nodes: What was in it, by reference.
        lines: How many messages in the console it has read.
        requests: The number of the last request that it has read.
    """

    shown: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    lines: int = 0
    requests: int = 0


@dataclass(slots=True)
class Watched:
    """What happened in a page.

    Attributes:
        console: What it wrote there, with the kind.
        network: Its requests.
        dialog: The dialog that waits for an answer.
        has_dialog: Set while there is one.
        opened: The pages that it opened in other tabs, as long as they are there.
        requests: How many requests have ended.
        lines: How many messages were written to the console.
        editors: Its rich-text editors.
        seen: What each client has seen of it, by its session; the one that looked last is last.
    """

    console: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    network: deque[PageRequest] = field(default_factory=lambda: deque(maxlen=KEPT))
    dialog: Dialog | None = None
    has_dialog: anyio.Event = field(default_factory=anyio.Event)
    opened: WeakSet[Page] = field(default_factory=WeakSet[Page])
    requests: int = 0
    lines: int = 0
    editors: Editors = field(default_factory=Editors)
    seen: dict[str | None, Seen] = field(default_factory=dict[str | None, Seen])

    def seen_by(self, client: SessionKey | None) -> Seen:
        """Return what a client has seen, by its session; None for all that have none."""
        seen = self.seen.pop(client) if client in self.seen else Seen()
        self.seen[client] = seen
        if len(self.seen) > KEPT_CLIENTS:
            del self.seen[next(iter(self.seen))]
        return seen

    def find_node(self, ref: str, client: SessionKey | None) -> Node | None:
        """Return the element of a reference as this client has seen it, or else another one."""
        self.seen_by(client)  # which is the last now
        seen = (each.nodes.get(ref) for each in reversed(self.seen.values()))
        return next((node for node in seen if node is not None), None)

    def handle_closed(self) -> None:
        """Record that the dialog was answered."""
        if self.dialog is not None:
            self.dialog, self.has_dialog = None, anyio.Event()


class HandPages:
    """The pages of the browsers that a session drives.

    Args:
        browsers: Returns the browsers that are there now.
        targets: Returns which tab is which target, in all browsers, as their extensions know it.
        missing: Returns advice for the user when there is no browser.
        bring: Launches the browsers that were closed, if they may be launched again.
    """

    def __init__(
        self,
        browsers: Callable[[], Awaitable[Sequence[Driven]]],
        targets: Callable[[], Awaitable[Sequence[TabTarget]]],
        missing: Callable[[], str],
        bring: Callable[[], Awaitable[None]],
    ) -> None:
        self._browsers = browsers
        self._find_targets = targets
        self._missing = missing
        self._bring = bring
        self._came = anyio.Event()  # at the next page
        self._targets: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self._watched: WeakKeyDictionary[Page, Watched] = WeakKeyDictionary()
        self._following: WeakKeyDictionary[BrowserContext, bool] = WeakKeyDictionary()

    async def tabs(self, number: int | None = None) -> Sequence[Tab]:
        """Return the tabs of all browsers.

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
            if each.target_id in known
        ]

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
            watched = self._watched[page] = Watched()
            self._watch(page, watched)
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
        for page in context.pages:
            self.watched(page)

    def _see(self, page: Page) -> None:
        self.watched(page)
        self._came.set()
        self._came = anyio.Event()

    def _watch(self, page: Page, watched: Watched) -> None:
        def write(message: ConsoleMessage) -> None:
            watched.console.append((message.type, shorten(message.text, LONGEST_MESSAGE)))
            watched.lines += 1

        def fail(error: Error) -> None:
            watched.console.append(("uncaught", shorten(str(error), LONGEST_MESSAGE)))
            watched.lines += 1

        def end(request: Request) -> None:
            watched.requests += 1
            watched.network.append(PageRequest(watched.requests, request, request.failure))

        def ask(dialog: Dialog) -> None:
            watched.dialog = dialog
            watched.has_dialog.set()

        page.on("console", write)
        page.on("pageerror", fail)
        page.on("requestfinished", end)
        page.on("requestfailed", end)
        page.on("dialog", ask)
        page.on("popup", watched.opened.add)

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


class PatientAction:
    """Waits for an action of Playwright, or for the dialog that it opens.

    Args:
        watched: What happens in the page.
        heartbeat: Called now and then until it ends, so that the call does not time out.
        failed: Returns the error of a failed action.
    """

    def __init__(
        self,
        watched: Watched,
        heartbeat: Callable[[], None],
        failed: Callable[[Exception], ToolError],
    ) -> None:
        self._watched = watched
        self._heartbeat = heartbeat
        self._failed = failed

    async def run(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Run an action; return None if a dialog is in its way.

        Raises:
            ToolError: The action failed.
        """
        result: list[Any] = []
        failures: list[Exception] = []

        async def act(scope: anyio.CancelScope) -> None:
            try:
                result.append(await action())
            except FAILURES as error:
                failures.append(error)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act, tasks.cancel_scope)
            while self._watched.dialog is None:
                with anyio.move_on_after(_HEARTBEAT):
                    await self._watched.has_dialog.wait()
                self._heartbeat()
            tasks.cancel_scope.cancel()
        if failures:
            raise self._failed(failures[0])
        return result[0] if result else None


def action_failed(message: str) -> ToolError:
    """Return the error of an action, with what Playwright saw in its way."""
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("Call log", "====="))]
    text = ". ".join(dict.fromkeys(each.rstrip(".") for each in causes[:1] + causes[-3:]))
    if "Timeout" in text and _DONE in message:
        return ToolError(
            f"The page was clicked, but the next one is late: {text}. Do not click again; wait for "
            "the page with page_wait_for, or take a snapshot.",
            codes.ACTION_TIMED_OUT,
            category="timeout",
        )
    if "Timeout" in text:
        return ToolError(
            f"The action timed out: {text}. Take a snapshot to see why.",
            codes.ACTION_TIMED_OUT,
            category="timeout",
            retryable=True,
        )
    return ToolError(f"{text}.", codes.ACTION_FAILED)
