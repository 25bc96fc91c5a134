"""What clients have seen of the pages that hands use."""

from typing import Any, cast

from playwright.async_api import Page

from opentabs_py.hands.pages import HandPages
from opentabs_py.hands.tree import Node
from tests.hands.test_watching import TalkingPage


async def nothing() -> Any:
    return []


def test_a_page_forgets_what_a_client_has_seen_when_it_goes_or_many_others_came() -> None:
    page = TalkingPage()
    pages = HandPages(nothing, nothing, lambda: "", nothing, mask=str, is_own=lambda _url: False)
    watched = pages.watched(cast("Page", page))
    watched.seen_by("a").lines = watched.seen_by("b").lines = 1
    pages.forget_client("a")
    pages.forget_client("a")
    assert (watched.seen_by("a").lines, watched.seen_by("b").lines) == (0, 1)


def test_a_reference_was_shown_to_a_client_if_it_is_in_its_last_snapshot_of_any_page() -> None:
    one, other = (cast("Page", TalkingPage()) for _ in range(2))
    pages = HandPages(nothing, nothing, lambda: "", nothing, mask=str, is_own=lambda _url: False)
    pages.watched(one).seen_by("a").nodes = {"e1": Node("button")}
    pages.watched(other).seen_by("b").nodes = {"e2": Node("button")}
    assert pages.has_shown("e1", "a")
    assert not pages.has_shown("e2", "a")
    assert not pages.has_shown("e1", "b")
    assert not pages.has_shown("e1", None)
