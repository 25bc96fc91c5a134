"""Decide whether a call may run: at once, after the user has allowed it, or not at all."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args
from urllib.parse import urlsplit

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.text import one_line, shorten

if TYPE_CHECKING:  # it imports pydantic, which takes longer than a command that asks
    from opentabs_py.core.protocol import DocumentState

Permission = Literal["off", "ask", "auto"]
Standing = Literal["named", "reviewed", "changed", "unreviewed", "page"]
"""What the user has said of a plugin.

- `named`: they named it for this run, on the command line or in a program; so are Python tools.
- `reviewed`: it is installed, and this build of it was approved, or needs no approval.
- `changed`: it is installed, and another build of it was approved.
- `unreviewed`: it is installed, and no build of it was ever approved.
- `page`: it is not a plugin; the page registered the tool, and its description is not verified.
"""
Answer = Literal["once", "session", "always", "no"]
About = Literal["permission", "sign_in"]

PERMISSIONS: Final[tuple[Permission, ...]] = get_args(Permission)
ANSWERS: Final[tuple[Answer, ...]] = get_args(Answer)
DEFAULT: Final = "default"  # the rule for whatever no other rule names; no plugin may be named so
ASK_FOR: Final = 120.0  # s; then an unanswered question counts as refused
LONGEST_ARGUMENTS: Final = 4000  # characters of JSON in a question
_RULE: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_]+)?")


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a tool's calls.

    Attributes:
        permission: `auto` runs them, `ask` asks the user first, `off` refuses them.
        because: Why, as in "it is off because ...".
        needs_review: Whether it is off until its plugin has been reviewed.
    """

    permission: Permission
    because: str
    needs_review: bool = False


@dataclass(frozen=True, slots=True)
class GatedTool:
    """What a decision depends on.

    Attributes:
        plugin: The plugin or Python module that it belongs to.
        name: Its MCP name.
        read_only: Whether it says that it changes nothing.
        standing: What the user has said of its plugin.
    """

    plugin: str
    name: str
    read_only: bool
    standing: Standing

    @property
    def own_name(self) -> str:
        """Its name within its plugin."""
        # The owner of a page's tools has two hyphens, which no plugin has.
        return self.name.removeprefix(mcp_name(self.plugin.replace("--", "-"), ""))

    @property
    def rule(self) -> str:
        """The rule that names it alone, for example `slack.send_message`."""
        return f"{self.plugin}.{self.own_name}"


def why_unreviewed(standing: Standing) -> str | None:
    """Return why a plugin must be reviewed, as in "it has ..."; None if it need not be."""
    match standing:
        case "changed":
            return "has changed since it was reviewed"
        case "unreviewed":
            return "has not been reviewed"
        case _:
            return None


def decide(rules: Mapping[str, Permission], tool: GatedTool) -> Decision:
    """Return what happens to a tool's calls; the most specific rule wins.

    A rule cannot stand in for a review, because it says nothing about the build that is there now.
    """
    if (why := why_unreviewed(tool.standing)) is not None:
        return Decision("off", f"the plugin {tool.plugin} {why}", needs_review=True)
    for rule in (tool.rule, f"{tool.plugin}.{tool.name}", tool.plugin, DEFAULT):
        if (permission := rules.get(rule)) is not None:
            return Decision(permission, f'the setting permissions."{rule}" is "{permission}"')
    if tool.standing == "named":
        return Decision("auto", f"{tool.plugin} was named when the server was started")
    if tool.read_only:
        return Decision("auto", "the tool only reads")
    if tool.standing == "page":
        return Decision("ask", "the page does not say that the tool only reads")
    return Decision("ask", "the tool may change something")


class GivenRules:
    """The permissions of the settings, and those given since, which may not be in them yet.

    Args:
        rules: The permissions in the settings.
    """

    def __init__(self, rules: Mapping[str, Permission]) -> None:
        self._settings = dict(rules)
        self._given: dict[str, Permission] = {}

    @property
    def all(self) -> dict[str, Permission]:
        """The permissions that count."""
        return {**self._settings, **self._given}

    def give(self, rule: str, permission: Permission) -> None:
        """Add a permission, which counts until the settings say something new about its rule."""
        self._given[rule] = permission

    def handle_settings(self, rules: Mapping[str, Permission]) -> None:
        """Handle that the settings were read again, perhaps before a permission was written."""
        for rule, permission in [*self._given.items()]:
            if rules.get(rule) == permission or rules.get(rule) != self._settings.get(rule):
                del self._given[rule]
        self._settings = dict(rules)


def parse_rules(value: object) -> dict[str, Permission]:
    """Return rules as a settings file has them, with the tables of TOML's dotted keys flattened.

    Raises:
        ValueError: A name or a permission is not valid.
    """
    if not isinstance(value, Mapping):
        raise ValueError('write a table, such as {default = "ask", slack = "auto"}')  # noqa: TRY004
    rules: dict[str, Permission] = {}
    for name, said in _flatten(cast("Mapping[str, Any]", value)):
        if not _RULE.fullmatch(name):
            raise ValueError(
                f"{shorten(name)!r} is not a valid name; write `default`, a plugin, or plugin.tool"
            )
        if said not in PERMISSIONS:
            raise ValueError(f"{name} cannot be {said!r}; write {', '.join(PERMISSIONS)}")
        rules[name] = said
    return rules


def _flatten(rules: Mapping[str, Any]) -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for name, said in rules.items():
        if isinstance(said, Mapping):
            table = cast("Mapping[str, Any]", said)
            flat += [(f"{name}.{tool}", each) for tool, each in table.items()]
        else:
            flat.append((name, said))
    return flat


def parse_rule(text: str) -> tuple[str, Permission]:
    """Return a rule written as `slack.send_message=ask`.

    Raises:
        ValueError: It has another form.
    """
    name, equals, said = text.partition("=")
    if not equals:
        raise ValueError(
            f"{shorten(text)!r} has no '='; write PLUGIN=ask, PLUGIN.TOOL=off or default=auto"
        )
    [(rule, permission)] = parse_rules({name.strip(): said.strip()}).items()
    return rule, permission


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call would run, as far as that is known.

    Attributes:
        site: The host, with its port if it has one.
        title: The title of the tab.
        tab_id: The tab. A call that the user allows runs in this one, or not at all.
    """

    site: str | None = None
    title: str | None = None
    tab_id: int | None = None


NOWHERE: Final = Place()


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the user about one call.

    Attributes:
        id: The question's id.
        tool: The tool's MCP name.
        title: The tool's name for users.
        plugin: The plugin that the tool belongs to.
        rule: The rule that `always` adds to the settings.
        arguments: The call's arguments, as JSON, perhaps cut.
        client: The client that makes the call, if it gave its name.
        place: Where the call would run. The title of the tab usually shows whose account it is.
        answers: The possible answers.
        about: Whether the call may run, or whether the user has signed in on its page.
        by_client: Whether the client that makes the call asks its user itself.
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
    at: float = 0.0


def ask_text(question: Question) -> str:
    """Return a question as one line for the user, without the arguments."""
    who = "An agent" if question.client is None else one_line(shorten(question.client, 60))
    place = question.place
    where = "" if place.site is None else f" on {one_line(shorten(place.site, 100))}"
    if place.title is not None:
        title = one_line(shorten(place.title, 60))
        where += f" (tab {json.dumps(title, ensure_ascii=False)})"
    title = one_line(shorten(question.title, 60))
    wants = f"{who} wants to use {question.tool}, “{title}”{where}"
    if question.about == "sign_in":
        return f"{wants}, but the page is not ready. Sign in there; then the call continues."
    return f"{wants}. Allow it?"


def find_place(documents: "Sequence[DocumentState]", plugin: str, tab_id: int | None) -> Place:
    """Return where a call would run.

    Args:
        documents: The documents of which it would be one.
        plugin: The tool's plugin.
        tab_id: The tab that the caller has chosen, if any.
    """
    fitting = [each for each in documents if plugin in each.plugins]
    if tab_id is not None:
        fitting = [each for each in fitting if each.tab_id == tab_id]
    sites = {urlsplit(each.url).netloc for each in fitting}
    site = sites.pop() if len(sites) == 1 else None
    only = fitting[0] if len(fitting) == 1 else None
    return Place(
        site or None,
        None if only is None else only.title,
        None if only is None else only.tab_id,
    )


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return a call's arguments as JSON for the user; says so if some of it is cut off.

    Of large arguments, only the beginning is written: with line breaks, json needs 0.3 s per MB.
    """
    parts: list[str] = []
    left = LONGEST_ARGUMENTS
    encoder = json.JSONEncoder(ensure_ascii=False, indent=2, default=repr)
    for part in encoder.iterencode(arguments):
        parts.append(part[:left])
        left -= len(part)
        if left < 0:
            parts.append("\n… and more, which is cut off")
            break
    return "".join(parts)


_ANSWER_TEXTS: Final[Mapping[Answer, str]] = {
    "once": "Yes, once",
    "session": "Yes, for this session",
    "always": "Yes, always",
    "no": "No",
}
_SIGN_IN_TEXTS: Final[Mapping[Answer, str]] = {"once": "Yes, signed in", "no": "Not now"}


def answer_texts(questions: Sequence[Question]) -> Mapping[Answer, str]:
    """Return the answers that all of these questions have, each with its text for the user."""
    about_signing_in = all(each.about == "sign_in" for each in questions)
    texts = _SIGN_IN_TEXTS if about_signing_in else _ANSWER_TEXTS
    return {
        answer: text
        for answer, text in texts.items()
        if all(answer in each.answers for each in questions)
    }
