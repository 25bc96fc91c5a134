"""The questions to the user about a call, and the possible answers."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, get_args
from urllib.parse import urlsplit

from opentabs_py.core.text import one_line, shorten, visible

Answer = Literal["once", "session", "always", "no"]
About = Literal["permission", "sign_in"]

ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
ASK_FOR: Final = 120.0  # s; then an unanswered question counts as refused
LONGEST_ARGUMENTS: Final = 4000  # characters of JSON in a question
_LONGEST_HOST: Final = 100  # characters, with the port
_NO_QUOTES: Final = str.maketrans("“”", '""')  # in a text between them
_ANSWER_TEXTS: Final[Mapping[Answer, str]] = {
    "once": "Yes, once",
    "session": "Yes, for this session",
    "always": "Yes, always",
    "no": "No",
}
_SIGN_IN_TEXTS: Final[Mapping[Answer, str]] = {"once": "Yes, signed in", "no": "Not now"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call would run, as far as that is known.

    Attributes:
        site: The host, with its port if it has one.
        title: The title of the tab.
        tab_id: The tab. A call that the user allows runs in this one, or not at all.
        element: What it would use there, as in `button "Buy"`; empty if it is about the whole page.
    """

    site: str | None = None
    title: str | None = None
    tab_id: int | None = None
    element: str = ""


NOWHERE: Final = Place()


class ShownTab(Protocol):
    """What a question needs to know of a tab, such as a `DocumentState`."""

    @property
    def tab_id(self) -> int:
        """The tab."""
        ...

    @property
    def url(self) -> str:
        """The URL of its page."""
        ...

    @property
    def title(self) -> str:
        """The title of its page."""
        ...

    @property
    def plugins(self) -> Collection[str]:
        """The plugins that run in it."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user about one call.

    Attributes:
        id: The question's id.
        tool: The tool's MCP name.
        title: The tool's name for users.
        plugin: The plugin or Python module that the tool belongs to.
        rule: The rule that `always` adds to the settings.
        arguments: The call's arguments, as visible JSON, perhaps cut.
        client: The client that makes the call, if it gave its name.
        place: Where the call would run. The title of the tab usually shows whose account it is.
        answers: The possible answers.
        about: Whether the call may run, or whether the user has signed in on its page.
        by_client: Whether the client that makes the call asks its user itself.
        call_id: The id of the call, which waits for the answer.
        at: When it was asked, in seconds on the clock of calls.
    """

    id: str
    tool: str
    title: str
    plugin: str
    rule: str
    arguments: str
    client: str | None = None
    place: Place = NOWHERE
    answers: tuple[Answer, ...] = ANSWERS
    about: About = "permission"
    by_client: bool = False
    call_id: str | None = None
    at: float = 0.0


def ask_text(question: Question) -> str:
    """Return a question as one line for the user, without the arguments."""
    who = "An agent" if question.client is None else one_line(shorten(question.client, 60))
    place = question.place
    where = f" on the {one_line(shorten(place.element, 300))}" if place.element else ""
    if place.site is not None:
        where += f" on {one_line(shown_host(place.site))}"
    if place.title is not None:
        title = one_line(shorten(place.title, 60))
        where += f" (tab {json.dumps(title, ensure_ascii=False)})"
    tool = question.tool
    if question.title != tool:
        tool += f", “{one_line(shorten(question.title, 60)).translate(_NO_QUOTES)}”"
    wants = f"{who} wants to use {tool}{where}"
    if question.about == "sign_in":
        return f"{wants}, but the page is not ready. Sign in there; then the call continues."
    return f"{wants}. Allow it?"


def host_of(url: str) -> str:
    """Return the host of a URL, with its port if it has one; empty if it has no host."""
    return urlsplit(url).netloc.rpartition("@")[2]  # a user name could look like another host


def shown_host(host: str) -> str:
    """Return a host for users; of a long one, the end, which says whose it is."""
    return host if len(host) <= _LONGEST_HOST else f"…{host[1 - _LONGEST_HOST :]}"


def find_place(documents: Sequence[ShownTab], plugin: str, tab_id: int | None) -> Place:
    """Return where a call would run.

    Args:
        documents: The documents of which it would be one.
        plugin: The tool's plugin.
        tab_id: The tab that the caller has chosen, if any.
    """
    fitting = [each for each in documents if plugin in each.plugins]
    if tab_id is not None:
        fitting = [each for each in fitting if each.tab_id == tab_id]
    sites = {host_of(each.url) for each in fitting}
    site = sites.pop() if len(sites) == 1 else None
    only = fitting[0] if len(fitting) == 1 else None
    return Place(
        site or None,
        None if only is None else only.title,
        None if only is None else only.tab_id,
    )


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as JSON for the user; says so if some of it is cut off.

    Invisible characters, and those that reorder what is shown, are escaped: the user reads what
    the tool gets.

    Of large arguments, only the beginning is written: with line breaks, json needs 0.3 s per MB.
    """
    parts: list[str] = []
    left = LONGEST_ARGUMENTS
    encoder = json.JSONEncoder(ensure_ascii=False, indent=2, default=repr)
    for part in encoder.iterencode(arguments):
        parts.append(visible(part[:left]))
        left -= len(part)
        if left < 0:
            parts.append("\n… (cut off)")
            break
    return "".join(parts)


def answer_texts(questions: Sequence[Question]) -> Mapping[Answer, str]:
    """Return the answers that all of these questions have, each with its text for the user."""
    about_signing_in = all(each.about == "sign_in" for each in questions)
    texts = _SIGN_IN_TEXTS if about_signing_in else _ANSWER_TEXTS
    return {
        answer: text
        for answer, text in texts.items()
        if all(answer in each.answers for each in questions)
    }
