"""What is remembered about a page, and what each client has seen of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from playwright.async_api import Error, Page

from opentabs_py.hands.secrets import Secrets
from opentabs_py.hands.tree import Node
from opentabs_py.hands.watching import KEPT, KEPT_CLIENTS, LONGEST_MESSAGE, Watched, watch


@dataclass(frozen=True)
class Written:
    """A message in a page's console."""

    text: str
    type: str = "log"


@dataclass(frozen=True)
class Requested:
    """A request that has ended."""

    url: str = "https://site.test/"
    failure: str | None = None


@dataclass(eq=False)
class TalkingPage:
    """A page whose events a test emits."""

    handlers: dict[str, Callable[[Any], None]] = field(default_factory=dict[str, Any])

    def on(self, event: str, handler: Callable[[Any], None]) -> None:
        self.handlers[event] = handler


def test_of_the_console_the_last_messages_are_kept_and_of_each_the_beginning() -> None:
    page = TalkingPage()
    watched = watch(cast("Page", page), str)
    for _ in range(KEPT):
        page.handlers["console"](Written("x" * 10_000))
    page.handlers["console"](Written("short"))
    page.handlers["pageerror"](Error("y" * 10_000))
    assert watched.lines == KEPT + 2
    assert len(watched.console) == KEPT
    assert max(len(text) for _, text in watched.console) == LONGEST_MESSAGE
    assert [*watched.console][-2] == ("log", "short")


def test_of_a_message_that_is_cut_no_part_of_a_secret_is_kept() -> None:
    page = TalkingPage()
    secret = "0123456789abcdef" * 300
    watched = watch(cast("Page", page), Secrets({"KEY": secret}).mask)
    page.handlers["console"](Written(f"{'x' * 900} {secret}"))
    page.handlers["pageerror"](Error(secret))
    assert [text[-16:] for _, text in watched.console] == ["xxx <secret KEY>", "<secret KEY>"]


def test_nothing_of_a_page_is_kept_once_it_is_closed() -> None:
    page = TalkingPage()
    watched = watch(cast("Page", page), str)
    page.handlers["requestfinished"](Requested())
    watched.seen_by("a").nodes = {"e1": Node("button")}
    assert watched.network
    page.handlers["close"](page)
    assert (len(watched.network), watched.seen) == (0, {})


def test_what_the_clients_that_looked_last_have_seen_is_kept() -> None:
    watched = Watched()
    watched.seen_by("first").lines = watched.seen_by(None).lines = 1
    for number in range(KEPT_CLIENTS - 1):
        watched.seen_by("first").lines += watched.seen_by(str(number)).lines
    assert watched.seen_by("first").lines == 1
    assert watched.seen_by(None).lines == 0


def test_an_element_is_the_one_that_the_client_has_seen_or_else_any_other_client() -> None:
    watched = Watched()
    watched.seen_by("a").nodes = {"e1": Node("button", "Old"), "e2": Node("link")}
    watched.seen_by("b").nodes = {"e1": Node("button", "New")}
    assert watched.find_node("e1", "a") == Node("button", "Old")
    assert watched.find_node("e1", "c") == Node("button", "Old")  # of the client that was here last
    assert watched.find_node("e2", "b") == Node("link")
    assert watched.find_node("e3", "a") is None
