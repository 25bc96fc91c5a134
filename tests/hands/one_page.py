"""Hands with one page, and pages that do not answer."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
from playwright.async_api import Page

from opentabs_py.core.tabs.owners import TabOwners
from opentabs_py.hands.pages import HandPages, Tab
from opentabs_py.hands.secrets import Secrets
from opentabs_py.hands.tools import Hands
from opentabs_py.hands.used_page import UsedPage
from opentabs_py.hands.watching import Watched
from opentabs_py.python_tools.progress import Progress

NO_SECRETS = Secrets({})


class Silent:
    """Progress that nobody receives."""

    def heartbeat(self) -> None: ...


PROGRESS = cast("Progress", Silent())


class OnePage(HandPages):
    """A list of one page, and what happened in it."""

    def __init__(self, watched: Watched | None = None, *, is_own: bool = False) -> None:
        self.seen = watched or Watched()
        self.is_own = lambda _url: is_own

    def watched(self, page: Page) -> Watched:  # noqa: ARG002
        return self.seen

    @asynccontextmanager
    async def as_active(self, page: Page) -> AsyncGenerator[None]:  # noqa: ARG002
        yield


def use(page: Any, watched: Watched | None = None, *, is_own: bool = False) -> UsedPage:
    """Return a page that a call uses."""
    tab = Tab(1, page, active=True, used=0)
    pages = OnePage(watched, is_own=is_own)
    return UsedPage(tab, pages, "", secrets=NO_SECRETS, heartbeat=lambda: None)


class ActingPage(UsedPage):
    """A page whose actions just run."""

    async def act(self, action: Callable[[], Awaitable[Any]]) -> dict[str, Any]:
        await action()
        return {}


class HandsOnOne(Hands):
    """Hands with a page whose actions just run."""

    def __init__(self, page: Any) -> None:
        self.seen = OnePage()
        super().__init__(self.seen, TabOwners, secrets=NO_SECRETS)
        self._page = page

    async def use(self, number: int | None, progress: Progress) -> UsedPage:
        tab = Tab(number or 1, self._page, active=True, used=0)
        return ActingPage(tab, self.pages, "", secrets=NO_SECRETS, heartbeat=progress.heartbeat)


class PageOfDeadDriver:
    """A page that cannot be used: the event loop reports that the driver's pipe is closed."""

    url = "https://a.example/"
    frames: Sequence[Any] = ()
    post_data = None

    async def title(self) -> str:
        raise RuntimeError("the handler is closed")

    async def aria_snapshot(self, **_options: Any) -> str:
        raise RuntimeError("the handler is closed")

    async def screenshot(self, **_options: Any) -> bytes:
        raise RuntimeError("the handler is closed")

    response = title


@dataclass
class AlertOf:
    """A dialog."""

    message: str
    type: str = "alert"


@dataclass
class AlertingPage:
    """A page that opens a dialog while it is looked at, and then does not answer."""

    watched: Watched
    url: str = "https://a.example/"
    frames: Sequence[Any] = ()

    async def aria_snapshot(self, **_options: Any) -> str:
        self.watched.dialog = cast("Any", AlertOf("Two\nlines"))
        self.watched.has_dialog.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def wait_for_load_state(self, *_state: Any, **_options: Any) -> None: ...

    async def screenshot(self, **_options: Any) -> bytes:
        raise AssertionError


class PageThatStops(PageOfDeadDriver):
    """A page that answers nothing any more once something was done in it."""

    async def wait_for_load_state(self, *_state: Any, **_options: Any) -> None: ...
