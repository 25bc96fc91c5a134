"""The tools that use a page, with a page that records what is done to it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
import pytest
from playwright.async_api import Error, Page

from opentabs_py.core.tabs.owners import TabOwners
from opentabs_py.errors import ToolError
from opentabs_py.hands.pages import HandPages, PageRequest, PatientAction, Tab, Watched
from opentabs_py.hands.tools import Hands
from opentabs_py.hands.using import PageUser
from opentabs_py.python_tools.progress import Progress
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Silent:
    """Progress that nobody receives."""

    def heartbeat(self) -> None: ...


class OnePage(HandPages):
    """A list of one page, and what happened in it."""

    def __init__(self) -> None:
        self.seen = Watched()

    def watched(self, page: Page) -> Watched:  # noqa: ARG002
        return self.seen

    @asynccontextmanager
    async def as_active(self, page: Page) -> AsyncGenerator[None]:  # noqa: ARG002
        yield


class HandsOnOne(Hands):
    """Hands with a page whose actions just run."""

    def __init__(self, page: Any) -> None:
        self.seen = OnePage()
        super().__init__(self.seen, TabOwners)
        self._page = page

    async def find_tab(self, number: int | None) -> Tab:
        return Tab(number or 1, self._page, active=True, used=0)

    async def act(
        self,
        page: Page,  # noqa: ARG002
        progress: Progress,  # noqa: ARG002
        action: Callable[[], Awaitable[Any]],
    ) -> dict[str, Any]:
        await action()
        return {}


PROGRESS = cast("Progress", Silent())


class VisitedPage:
    """A page that can only navigate."""

    def __init__(self) -> None:
        self.visited: list[str] = []

    async def goto(self, url: str, *, timeout: float) -> None:  # noqa: ARG002, ASYNC109
        self.visited.append(url)


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:3000", "http://localhost:3000"),
        ("example.com/inbox", "https://example.com/inbox"),
        ("HTTP://example.com/", "HTTP://example.com/"),
    ],
)
async def test_a_page_is_named_as_for_tabs_open(typed: str, url: str) -> None:
    page = VisitedPage()
    await HandsOnOne(page).page_navigate(PROGRESS, typed)
    assert page.visited == [url]


@pytest.mark.parametrize(
    "typed", ["mailto:x", "https://a b", "https://a\tb", "javascript:alert(1)", ""]
)
async def test_what_is_not_a_web_page_is_not_opened(typed: str) -> None:
    page = VisitedPage()
    with pytest.raises(ToolError, match="write an http or https URL") as error:
        await HandsOnOne(page).page_navigate(PROGRESS, typed)
    assert error.value.detail.code == "INVALID_ARGUMENTS"
    assert not page.visited


class RequestOfClosedPage:
    """A request that has ended; its response is no longer available."""

    url = "https://a.example/data"
    method = "GET"
    resource_type = "fetch"
    post_data = None
    existing_response = None

    async def response(self) -> None:
        raise Error("Target page, context or browser has been closed")


async def test_the_requests_of_a_closed_page_are_listed_without_their_responses() -> None:
    hands = HandsOnOne(None)
    request = cast("Any", RequestOfClosedPage())
    hands.seen.seen.network.append(PageRequest(1, request, failure=None))
    [listed] = (await hands.page_network(PROGRESS, all=True))["requests"]
    assert (listed["url"], listed["status"]) == ("https://a.example/data", None)
    bodies = await hands.page_network(PROGRESS, request=1)
    assert bodies["received"] == "(cannot be shown: Error)"


class PageOfDeadDriver:
    """A page that cannot be used: the event loop reports that the driver's pipe is closed."""

    url = "https://a.example/"
    frames: Sequence[Any] = ()

    async def title(self) -> str:
        raise RuntimeError("the handler is closed")

    async def aria_snapshot(self, **_options: Any) -> str:
        raise RuntimeError("the handler is closed")

    async def screenshot(self, **_options: Any) -> bytes:
        raise RuntimeError("the handler is closed")

    response = title


async def test_a_dead_driver_fails_what_is_done_in_a_page_and_says_so() -> None:
    page = cast("Any", PageOfDeadDriver())
    hands = HandsOnOne(page)
    action = PatientAction(Watched(), PROGRESS.heartbeat, hands.failed)
    with pytest.raises(ToolError, match="the handler is closed"):
        await action.run(page.title)
    with pytest.raises(ToolError, match="the handler is closed"):
        await hands.look(page, PROGRESS, None, 100)
    with pytest.raises(ToolError, match="the handler is closed"):
        await hands.page_screenshot(PROGRESS)


async def test_a_page_of_a_dead_driver_has_no_title_and_its_requests_no_responses() -> None:
    page = cast("Any", PageOfDeadDriver())
    assert await HandsOnOne(page).about(page) == {"title": "", "url": "https://a.example/"}
    page.post_data = None
    bodies = await HandsOnOne(page).bodies(page)
    assert bodies["received"] == "(cannot be shown: RuntimeError)"


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


async def test_a_dialog_that_opens_during_a_look_ends_it_and_is_quoted() -> None:
    hands = HandsOnOne(None)
    page = cast("Any", AlertingPage(hands.seen.seen))
    for _ in range(2):
        with anyio.fail_after(PATIENT), pytest.raises(ToolError) as error:
            await hands.look(page, PROGRESS, None, 100)
        assert error.value.detail.code == "DIALOG_OPEN"
        assert 'alert dialog, "Two lines", is in the way' in error.value.detail.message


async def test_a_dialog_that_opens_after_an_action_is_its_result() -> None:
    hands = HandsOnOne(None)
    page = cast("Any", AlertingPage(hands.seen.seen))

    async def action() -> None: ...

    with anyio.fail_after(PATIENT):
        done = await PageUser.act(hands, page, PROGRESS, action)
    assert done["dialog"] == {"type": "alert", "message": "Two\nlines"}


async def test_no_screenshot_waits_for_a_dialog() -> None:
    hands = HandsOnOne(AlertingPage(Watched()))
    hands.seen.seen.dialog = cast("Any", AlertOf("", "beforeunload"))
    with pytest.raises(ToolError, match="The page's beforeunload dialog is in the way"):
        await hands.page_screenshot(PROGRESS)
