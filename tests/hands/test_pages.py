"""What is remembered about the pages that hands use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from playwright.async_api import Error, Page

from opentabs_py.hands.pages import KEPT, KEPT_CLIENTS, LONGEST_MESSAGE, HandPages, Watched


@dataclass(frozen=True)
class Written:
    """A message in a page's console."""

    text: str
    type: str = "log"


@dataclass(eq=False)
class TalkingPage:
    """A page whose events a test emits."""

    handlers: dict[str, Callable[[Any], None]] = field(default_factory=dict[str, Any])

    def on(self, event: str, handler: Callable[[Any], None]) -> None:
        self.handlers[event] = handler


async def nothing() -> Any:
    return []


def test_of_the_console_the_last_messages_are_kept_and_of_each_the_beginning() -> None:
    page = TalkingPage()
    pages = HandPages(nothing, nothing, lambda: "", nothing)
    watched = pages.watched(cast("Page", page))
    for _ in range(KEPT):
        page.handlers["console"](Written("x" * 10_000))
    page.handlers["console"](Written("short"))
    page.handlers["pageerror"](Error("y" * 10_000))
    assert watched.lines == KEPT + 2
    assert len(watched.console) == KEPT
    assert max(len(text) for _, text in watched.console) == LONGEST_MESSAGE
    assert [*watched.console][-2] == ("log", "short")


def test_a_page_forgets_what_a_client_has_seen_when_it_goes_or_many_others_came() -> None:
    page = TalkingPage()
    pages = HandPages(nothing, nothing, lambda: "", nothing)
    watched = pages.watched(cast("Page", page))
    watched.seen_by("a").lines = watched.seen_by("b").lines = 1
    pages.forget_client("a")
    pages.forget_client("a")
    assert (watched.seen_by("a").lines, watched.seen_by("b").lines) == (0, 1)


def test_what_the_clients_that_looked_last_have_seen_is_kept() -> None:
    watched = Watched()
    watched.seen_by("first").lines = watched.seen_by(None).lines = 1
    for number in range(KEPT_CLIENTS - 1):
        watched.seen_by("first").lines += watched.seen_by(str(number)).lines
    assert watched.seen_by("first").lines == 1
    assert watched.seen_by(None).lines == 0
