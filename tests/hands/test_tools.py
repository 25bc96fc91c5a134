"""The tools that use a page, with a page that records what is done to it."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from playwright.async_api import Error, Page

from opentabs_py.core.tab_owners import TabOwners
from opentabs_py.errors import ToolError
from opentabs_py.hands.pages import HandPages, PageRequest, Tab, Watched
from opentabs_py.hands.tools import Hands
from opentabs_py.python_tools.progress import Progress

pytestmark = pytest.mark.anyio


class Silent:
    """Progress that nobody hears."""

    def heartbeat(self) -> None: ...


class OnePage(HandPages):
    """Pages of which there is one, and what happened in it."""

    def __init__(self) -> None:
        self.seen = Watched()

    def watched(self, page: Page) -> Watched:  # noqa: ARG002
        return self.seen


class HandsOnOne(Hands):
    """Hands on a page whose actions just run."""

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
    """A page that only goes to URLs."""

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
    """A request that has ended; nobody can be asked for its response any more."""

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
