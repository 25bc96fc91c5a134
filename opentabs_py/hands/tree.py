"""Playwright's aria snapshot as a tree.

A snapshot is YAML of a simple kind: each line is an element, `- role "name" [attribute]: text`, and
what is indented below it is in it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

_LINE: Final = re.compile(r"(?P<indent> *)- (?P<rest>.*)")
_ELEMENT: Final = re.compile(
    r'(?P<role>[\w-]+)(?: (?P<name>"(?:[^"\\]|\\.)*"|/(?:[^/\\]|\\.)*/))?'
    r"(?P<attributes>(?: \[[^\]]*\])*)"
)
_QUOTED_KEY: Final = re.compile(r"'((?:[^']|'')*)'")
_KEY: Final = re.compile(r'(?:"(?:[^"\\]++|\\.)*"|\[[^\]]*\]|[^":\[]++|:(?! |$))*')
_ATTRIBUTE: Final = re.compile(r"\[([\w-]+)(?:=([^\]]*))?\]")
_HEX: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\x([0-9a-fA-F]{2})")  # YAML's, which JSON lacks
TEXT: Final = "text"
USED: Final = frozenset(
    """
    button checkbox combobox link listbox menuitem menuitemcheckbox menuitemradio option radio
    searchbox slider spinbutton switch tab textbox treeitem
    """.split()  # noqa: SIM905 (a list has one line per word)
)
"""The roles that one can use."""
Box = Literal["checkbox", "radio", "switch"]
BOXES: Final[Mapping[str, Box]] = {each: each for each in get_args(Box)}
"""The roles that one checks; a box usually stands before its label."""


@dataclass(slots=True)
class Node:
    """An element of a page, or a text.

    Attributes:
        role: Its ARIA role; `text` for a text.
        name: Its accessible name.
        text: Its text, if it has no elements in it.
        attributes: Its states, such as `checked`, and its `ref`.
        url: Where a link leads.
        children: What is in it.
    """

    role: str
    name: str = ""
    text: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    children: list["Node"] = field(default_factory=list["Node"])

    @property
    def ref(self) -> str:
        """Its reference; empty for texts."""
        return self.attributes.get("ref", "")

    @property
    def is_used(self) -> bool:
        """Whether one can click it, type into it or choose it."""
        # The `<summary>` of a `<details>` has no role of its own.
        is_summary = self.role == "generic" and self.name != ""
        return self.role in USED or "cursor" in self.attributes or is_summary

    def walk(self) -> Iterator["Node"]:
        """Yield it and everything in it, in the order of the page."""
        yield self
        for each in self.children:
            yield from each.walk()


def parse(snapshot: str) -> Sequence[Node]:
    """Return what a snapshot contains."""
    root = Node("")
    above: list[tuple[int, Node]] = [(-1, root)]
    for line in snapshot.split("\n"):  # names may have other ends of lines, such as U+0085
        if (found := _LINE.fullmatch(line)) is None:
            continue
        depth = len(found["indent"])
        while above[-1][0] >= depth:
            above.pop()
        parent = above[-1][1]
        key, value = _split(found["rest"])
        if key == "/url":
            parent.url = value
        elif key.startswith("/"):
            continue  # such as a placeholder
        else:
            node = _node(key, value)
            parent.children.append(node)
            above.append((depth, node))
    return root.children


def _node(key: str, value: str) -> Node:
    if key == TEXT:
        return Node(TEXT, text=value)
    found = _ELEMENT.match(key)
    if found is None:
        return Node(TEXT, text=f"{key} {value}".strip())
    name = found["name"] or ""
    return Node(
        found["role"],
        _unquoted(name) if name.startswith('"') else name,
        value,
        dict(_ATTRIBUTE.findall(found["attributes"])),
    )


def _split(rest: str) -> tuple[str, str]:
    """Return the key and the value of a line; YAML quotes a key that it could misunderstand."""
    if rest.startswith("'"):
        end = _QUOTED_KEY.match(rest)
        key, after = (end[1].replace("''", "'"), rest[end.end() :]) if end else (rest, "")
    else:
        end = _KEY.match(rest)
        key, after = (end[0], rest[end.end() :]) if end else (rest, "")
    return key.strip(), _unquoted(after.removeprefix(":").strip())


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            return str(json.loads(_HEX.sub(r"\1\\u00\2", text)))
        except ValueError:
            return text[1:-1]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return text
