"""The pages that hands use, by the number of their tab, and what happened in them."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import anyio
from playwright.async_api import BrowserContext, ConsoleMessage, Dialog, Error, Page, Request

from opentabs_py.core.browsers import BLOCK
from opentabs_py.errors import ToolError
from opentabs_py.hands.tree import Node

_HEARTBEAT: Final = 5.0  # s
KEPT: Final = 300  # messages and requests of each page
# The worker knows the number of each tab; Playwright knows the same pages as targets.
_TABS: Final = """
async () => {
  const [targets, tabs] = await Promise.all([chrome.debugger.getTargets(), chrome.tabs.query({})]);
  const ids = new Map(targets.map((each) => [each.tabId, each.id]));
  return tabs.map((tab) => ({
    id: tab.id, target: ids.get(tab.id) ?? null, active: tab.active, at: tab.lastAccessed ?? 0,
  }));
}
"""


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab of a browser.

    Attributes:
        number: Its number among those of all browsers.
        page: Its page.
        active: Whether it is in front in its window.
        used: When it was in front last; larger is later.
    """

    number: int
    page: Page
    active: bool
    used: float


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of a page, and how it ended."""

    number: int
    request: Request
    failure: str | None


@dataclass(slots=True)
class Watched:
    """What happened in a page.

    Attributes:
        console: What it wrote there, with the kind.
        network: Its requests.
        dialog: The dialog that waits for an answer.
        asks: Set while there is one.
        shown: The snapshot that was taken last.
        nodes: What was in it, by reference.
        requests: How many requests have ended.
        lines: How many messages were written to the console.
        read_console: How many of those a client has read.
        read_network: The number of the last request that a client has read.
    """

    console: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    network: deque[Sent] = field(default_factory=lambda: deque(maxlen=KEPT))
    dialog: Dialog | None = None
    asks: anyio.Event = field(default_factory=anyio.Event)
    shown: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    requests: int = 0
    read_console: int = 0
    read_network: int = 0
    lines: int = 0


class HandPages:
    """The pages of the browsers that a session has launched.

    Args:
        contexts: Return each browser's context and number, or raise a BrowserError.
    """

    def __init__(self, contexts: Callable[[], Sequence[tuple[BrowserContext, int]]]) -> None:
        self._contexts = contexts
        self._targets: WeakKeyDictionary[Page, str] = WeakKeyDictionary()
        self._watched: WeakKeyDictionary[Page, Watched] = WeakKeyDictionary()
        self._following: WeakKeyDictionary[BrowserContext, bool] = WeakKeyDictionary()

    async def tabs(self) -> Sequence[Tab]:
        """Return the tabs of all browsers."""
        found: list[Tab] = []
        contexts = self._contexts()
        if not contexts:
            raise ToolError(
                "There is no browser that this server has launched, and hands work in no other. "
                "Ask the user to start one: opentabs serve --hands.",
                "EXTENSION_NOT_CONNECTED",
                category="connection",
            )
        for context, number in contexts:
            self._follow(context)
            if not context.service_workers:
                continue
            known = {await self._target(page): page for page in context.pages}
            reported: Any = await context.service_workers[0].evaluate(_TABS)
            found += [
                Tab(each["id"] + number * BLOCK, page, each["active"], each["at"])
                for each in reported
                if (page := known.get(each["target"])) is not None
            ]
        return found

    def watched(self, page: Page) -> Watched:
        """Return what happened in a page since it was first seen."""
        watched = self._watched.get(page)
        if watched is None:
            watched = self._watched[page] = Watched()
            self._watch(page, watched)
        return watched

    def _follow(self, context: BrowserContext) -> None:
        """Watch the pages of a browser from now on."""
        if context not in self._following:
            self._following[context] = True
            context.on("page", self._see)
        for page in context.pages:
            self.watched(page)

    def _see(self, page: Page) -> None:
        self.watched(page)

    def _watch(self, page: Page, watched: Watched) -> None:
        def write(message: ConsoleMessage) -> None:
            watched.console.append((message.type, message.text))
            watched.lines += 1

        def fail(error: Error) -> None:
            watched.console.append(("uncaught", str(error)))
            watched.lines += 1

        def end(request: Request) -> None:
            watched.requests += 1
            watched.network.append(Sent(watched.requests, request, request.failure))

        def ask(dialog: Dialog) -> None:
            watched.dialog = dialog
            watched.asks.set()

        page.on("console", write)
        page.on("pageerror", fail)
        page.on("requestfinished", end)
        page.on("requestfailed", end)
        page.on("dialog", ask)

    async def _target(self, page: Page) -> str:
        known = self._targets.get(page)
        if known is None:
            session: Any = await page.context.new_cdp_session(page)
            info = await session.send("Target.getTargetInfo")
            await session.detach()
            known = self._targets[page] = str(info["targetInfo"]["targetId"])
        return known


class Waiting:
    """Waits for an action of Playwright, or for the dialog that it opens.

    Args:
        watched: What happens in the page.
        heartbeat: Called now and then meanwhile, so that the call does not time out.
    """

    def __init__(self, watched: Watched, heartbeat: Callable[[], None]) -> None:
        self._watched = watched
        self._heartbeat = heartbeat

    async def run(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Run an action; return None if a dialog is in its way.

        Raises:
            ToolError: The action failed.
        """
        result: list[Any] = []
        failures: list[Error] = []

        async def act(scope: anyio.CancelScope) -> None:
            try:
                result.append(await action())
            except Error as error:
                failures.append(error)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act, tasks.cancel_scope)
            while self._watched.dialog is None:
                with anyio.move_on_after(_HEARTBEAT):
                    await self._watched.asks.wait()
                self._heartbeat()
            tasks.cancel_scope.cancel()
        if failures:
            raise action_failed(failures[0])
        return result[0] if result else None


def action_failed(error: Error) -> ToolError:
    """Return the error of an action, with what Playwright saw in its way."""
    lines = [line.strip(" -") for line in error.message.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("Call log", "====="))]
    text = ". ".join(dict.fromkeys(each.rstrip(".") for each in said[:1] + said[-3:]))
    if "Timeout" in text:
        return ToolError(
            f"The page did not let it happen in time: {text}. Take a snapshot to see why.",
            "ACTION_TIMED_OUT",
            category="timeout",
            retryable=True,
        )
    return ToolError(f"{text}.", "ACTION_FAILED")
