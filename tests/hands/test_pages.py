"""What is remembered about the pages that hands use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from playwright.async_api import Error, Page

from opentabs_py.hands.pages import KEPT, LONGEST_MESSAGE, HandPages


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
