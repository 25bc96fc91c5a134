"""Plan the tools of a plugin for a site."""

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from opentabs_py.core.shapes.shape import Shape, shape_of
from opentabs_py.generate.auth import address_of
from opentabs_py.generate.flows import Flows
from opentabs_py.generate.inputs import Inputs, inputs_of
from opentabs_py.generate.json_paths import Path, at
from opentabs_py.generate.names import (
    HAS_MORE,
    is_plural,
    list_member,
    singular,
    snake,
    title,
    unique,
    words_of,
)
from opentabs_py.generate.operations import Operation
from opentabs_py.generate.pagination import Pagination, find_items, find_pagination
from opentabs_py.generate.samples import Sample

_SIGNS_IN: Final = re.compile(
    r"(^|/)((log|sign)[-_]?(in|out|up|on|off)|register|oauth\d?|auth|token|refresh|password)(/|$)",
    re.IGNORECASE,
)
_ASSET: Final = re.compile(
    r"(^|/)(manifest|locales?|i18n|translations?|package|asset-manifest|_next|_nuxt)([/.]|$)",
    re.IGNORECASE,
)
_VERBS: Final = {"POST": "create", "PUT": "replace", "PATCH": "update", "DELETE": "delete"}
ICONS: Final = {
    "list": "list", "get": "file-text", "create": "plus", "replace": "pencil", "update": "pencil",
    "delete": "trash-2", "search": "search", "find": "search", "send": "send", "add": "plus",
    "remove": "trash-2",
}  # fmt: skip
_PERSON: Final = re.compile(r"me|self|whoami|viewer|current user|user ?info")
_SUFFIX: Final = re.compile(r"(Query|Mutation|Document)$")


@dataclass(frozen=True, slots=True)
class PlannedTool:
    """A tool that calls an operation of a site's API.

    Attributes:
        name: The tool's name, without the plugin's.
        description: What it does, for agents.
        icon: A Lucide icon.
        operation: What it calls.
        inputs: What goes into its requests.
        pagination: How it reads on, if the response is a list in pages.
        unwrap: Where the result is in a response.
        wrap: The member of the result that holds the value, if the value is not an object, or
            the items of a list in pages.
        result: What its results look like.
    """

    name: str
    description: str
    icon: str
    operation: Operation
    inputs: Inputs
    pagination: Pagination | None
    unwrap: Path = ()
    wrap: str = ""
    result: Shape = field(default_factory=Shape)

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.operation.is_read

    @property
    def ignores_answer(self) -> bool:
        """Whether it only sends something, to which the site does not answer with JSON."""
        return self.operation.style == "rest" and not self.operation.answered

    @property
    def source(self) -> str:
        """The request that it sends, such as `GET /api/messages`."""
        return str(self.operation)

    def answers(self, sample: Sample) -> bool:
        """Return whether a request was answered with what the tool returns."""
        return bool(sample.value) or not self.operation.answered

    def value_of(self, sample: Sample) -> Any:
        """Return the result of the tool for a response."""
        if not sample.value:
            return {"ok": True}
        value = at(sample.value[0], self.unwrap)
        return {self.wrap: value} if self.wrap else value


def plan_tools(
    operations: Sequence[Operation],
    flows: Flows,
    replaced: Collection[str],
    chosen: Sequence[str],
    credentials: Collection[str],
) -> Sequence[PlannedTool]:
    """Return the tools for some operations.

    Args:
        operations: What the site offers.
        flows: Where ids come from.
        replaced: What the recording has in place of secrets.
        chosen: Which operations, such as `GET /api/messages`; if none, all that are useful.
        credentials: The URLs that answer with what requests need, for which no tool is made.
    """
    tools: list[PlannedTool] = []
    for operation in operations:
        if operation.style == "page" or not (operation.works and operation.can_be_sent):
            continue
        if chosen and not any(is_meant(operation, each) for each in chosen):
            continue
        hands_out = any(address_of(each) in credentials for each in operation.samples)
        if not chosen and (hands_out or not _is_useful(operation)):
            continue
        taken = {tool.name for tool in tools}
        name = next((each for each in names_for(operation) if each not in taken), "")
        tools.append(
            _tool(operation, name or unique(snake(str(operation)), taken), flows, replaced)
        )
    return tools


def is_meant(operation: Operation, text: str) -> bool:
    """Return whether a string names an operation, such as `GET /api/channels/general/messages`."""
    if text in (operation.name, str(operation)):
        return True
    method, _, rest = text.strip().partition(" ")
    path, _, name = rest.strip().partition(" ")
    segments = path.removeprefix(operation.origin).split("/")[1:]
    return (
        method.upper() == operation.method
        and name == operation.name
        and len(segments) == len(operation.path)
        and all(
            known in (None, given) for known, given in zip(operation.path, segments, strict=True)
        )
    )


def _is_useful(operation: Operation) -> bool:
    path = "/".join(each or "" for each in operation.path)
    if operation.is_noise or _SIGNS_IN.search(path) or _ASSET.search(path):
        return False
    sends_password = any(
        "password" in name.lower() for each in operation.samples for name in each.payload or {}
    )
    has_response = bool(operation.answered) or not operation.is_read
    return has_response and not sends_password


def _tool(operation: Operation, name: str, flows: Flows, replaced: Collection[str]) -> PlannedTool:
    pagination = find_pagination(operation)
    inputs = inputs_of(operation, flows, pagination, replaced)
    unwrap: Path = {"graphql": ("data",), "rpc": ("result",)}.get(operation.style, ())
    verb = name.partition("_")[0]
    icon = ICONS.get(verb, "eye" if operation.is_read else "zap")
    if pagination is not None:
        named = [each for each in pagination.items if each not in ("edges", "nodes", "data")]
        wrap = list_member(named[-1] if named else noun_of(operation, name))
        lists = [pagination.items_of(each) for each in operation.answered]
        shape = shape_of(*({wrap: each, HAS_MORE: True} for each in lists))
        return PlannedTool(
            name, describe(operation, name, pages=True), icon, operation, inputs, pagination,
            unwrap, wrap, shape,
        )  # fmt: skip
    values = [at(each.value[0], unwrap) for each in operation.answered]
    wrap = ""
    if values and not all(isinstance(each, dict) for each in values):
        is_list = isinstance(values[0], list)
        wrap = list_member(noun_of(operation, name)) if is_list else "value"
        values = [{wrap: each} for each in values]
    shape = shape_of(*values) if values else shape_of({"ok": True})
    return PlannedTool(
        name, describe(operation, name), icon, operation, inputs, None, unwrap, wrap, shape
    )


def noun_of(operation: Operation, name: str) -> str:
    """Return what an operation lists."""
    last = next((each for each in reversed(operation.path) if each), "")
    last = " ".join(words_of(operation.name)[-1:]) if operation.name else last
    return last if is_plural(last) else name.partition("_")[2] or "items"


def names_for(operation: Operation) -> Iterator[str]:
    """Yield names for the tool of an operation, the best one first."""
    if operation.name:
        plain = snake(_SUFFIX.sub("", operation.name))
        first = plain.partition("_")[0]
        is_noun = operation.style == "graphql" and operation.is_read and first not in ICONS
        yield f"{'list' if is_plural(first) else 'get'}_{plain}" if is_noun else plain
        yield snake(operation.method, operation.name)
        return
    fixed = [each for each in operation.path if each and not re.fullmatch(r"v\d+|api|rest", each)]
    verb, noun, parents = _verb_and_noun(operation, fixed)
    if not noun:
        yield verb if verb == "search" else snake(verb, "home")
        return
    yield snake(verb, noun)
    for count in range(1, len(parents) + 1):
        yield snake(verb, *(singular(each) for each in parents[-count:]), noun)


def _verb_and_noun(operation: Operation, fixed: Sequence[str]) -> tuple[str, str, Sequence[str]]:
    if not fixed:
        return ("get" if operation.is_read else _VERBS.get(operation.method, "call"), "", ())
    last = fixed[-1]
    names_one = operation.path[-1] is None
    if operation.method == "GET" or (operation.is_read and operation.method == "POST"):
        if words_of(last)[:1] == ["search"]:
            return "search", (fixed[-2] if len(fixed) > 1 else ""), fixed[:-2]
        is_list = not names_one and (
            is_plural(last) or find_items([each.value[0] for each in operation.answered]) == ()
        )
        return ("list", last, fixed[:-1]) if is_list else ("get", singular(last), fixed[:-1])
    if operation.method == "POST" and not (is_plural(last) or names_one) and len(fixed) > 1:
        return last, singular(fixed[-2]), fixed[:-2]  # such as POST /messages/7/archive
    return _VERBS.get(operation.method, "call"), singular(last), fixed[:-1]


def describe(operation: Operation, name: str, *, pages: bool = False) -> str:
    """Return the description of the tool for an operation."""
    verb, _, noun = name.partition("_")
    words = noun.replace("_", " ")
    text = title(name)
    if verb == "get" and _PERSON.fullmatch(words):
        text = "Get who is signed in"
    elif words and verb in ICONS:
        if verb in ("list", "search"):
            text = f"{verb.capitalize()} the {words}"
        elif verb == "get" and (operation.name or operation.path[-1] is not None):
            text = f"Get the {words}"
        else:
            text = f"{verb.capitalize()} {_a(words)}"
    owner = next((" ".join(words_of(singular(each))) for each in _owners(operation)), "")
    if owner and owner not in words:
        text += f" {'in' if verb in ('create', 'add') else 'of'} {_a(owner)}"
    return f"{text}{', page by page' if pages else ''} ({operation})"


def _a(words: str) -> str:
    return f"{'an' if words[:1] in 'aeiou' else 'a'} {words}"


def _owners(operation: Operation) -> Sequence[str]:
    """Return the names of what the operation's path says it belongs to, the nearest one first."""
    path = operation.path[:-1] if operation.path and operation.path[-1] is None else operation.path
    return [
        before
        for before, after in reversed([*itertools.pairwise(path)])
        if after is None and before
    ]
