"""The tools that use a page, with a page that records what is done to it."""

from typing import Any, cast

import pytest
from playwright.async_api import Error

from opentabs_py.errors import ToolError
from opentabs_py.hands.watching import PageRequest, Watched
from tests.hands.one_page import PROGRESS, AlertingPage, AlertOf, HandsOnOne, PageOfDeadDriver

pytestmark = pytest.mark.anyio


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


async def test_a_dead_driver_fails_a_screenshot_and_says_so() -> None:
    with pytest.raises(ToolError, match="the handler is closed"):
        await HandsOnOne(PageOfDeadDriver()).page_screenshot(PROGRESS)


async def test_the_requests_of_a_page_of_a_dead_driver_have_no_responses() -> None:
    hands = HandsOnOne(None)
    hands.seen.seen.network.append(PageRequest(1, cast("Any", PageOfDeadDriver()), failure=None))
    bodies = await hands.page_network(PROGRESS, request=1)
    assert bodies["received"] == "(cannot be shown: RuntimeError)"


async def test_no_screenshot_waits_for_a_dialog() -> None:
    hands = HandsOnOne(AlertingPage(Watched()))
    hands.seen.seen.dialog = cast("Any", AlertOf("", "beforeunload"))
    with pytest.raises(ToolError, match="The page's beforeunload dialog is in the way"):
        await hands.page_screenshot(PROGRESS)
