"""Snapshots of pages for models: short, and with every element that can be used.

Compared with Playwright's own snapshot, wrappers without a meaning are left out, only what can be
used has a reference, rows and options take one line, and what is too much is folded, with a word on
how to open it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Final

from opentabs_py.core.text import shorten
from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.hands.tree import BOXES, TEXT, Node

MOST_TOKENS: Final = 8_000
_PLAIN: Final = frozenset({"generic", "rowgroup", "listitem", "paragraph", "presentation", "none"})
_LISTS: Final = frozenset({"list", "listbox", "table", "grid", "menu", "tree", "feed", "tablist"})
_DIALOGS: Final = frozenset({"dialog", "alertdialog"})
_ENTRY: Final = "listitem"
_SHORT: Final = 200  # characters of a text that may share its line
# About how often difflib compares two lines at most, 0.2 µs each; 1,000 equal lines among others
# would take it 24 s.
_MOST_COMPARED: Final = 3_000_000
_LONG_CELL: Final = 20  # elements; a cell with more of them is not on the line of its row
_STATES: Final = ("checked", "disabled", "expanded", "invalid", "pressed", "selected")
_ROWS: Final = frozenset({"row"})
_CELLS: Final = frozenset({"cell", "gridcell", "columnheader", "rowheader"})


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a page is shown.

    Attributes:
        entries: How many entries of a list; 0 for all.
        text: How many characters of a text.
        links: Whether the URLs of links are.
    """

    entries: int = 0
    text: int = 2_000
    links: bool = False


# Texts are cut before lists are folded, so that what can be used stays as long as possible.
_CUT: Final = (Detail(), Detail(0, 400), Detail(0, 200), Detail(0, 100), Detail(0, 50))
_FOLDED: Final = (
    Detail(100, 200), Detail(40, 120), Detail(20, 100), Detail(10, 80), Detail(5, 60), Detail(3, 40)
)  # fmt: skip


def render(
    nodes: Sequence[Node], *, most: int = MOST_TOKENS, links: bool = False, start: int = 0
) -> str:
    """Return a page, or a part of it, as text.

    Args:
        nodes: What is there.
        most: How many tokens the text may have.
        links: Whether the URLs of links are in it.
        start: The entry of the outermost list to begin with.
    """
    simple = _simplified(nodes)

    def lines(detail: Detail) -> Iterator[str]:
        shown = replace(detail, links=links)
        if len(simple) == 1:
            return _element(simple[0], shown, 0, start)
        return _lines(simple, shown, 0, start=start)

    def fitting(detail: Detail) -> str | None:
        return _within(most, lines(detail))

    # Of a long page, not even the shortest texts fit: then the longer ones need not be tried.
    least = fitting(_CUT[-1])
    for detail in _FOLDED if least is None else _CUT[:-1]:
        if (text := fitting(detail)) is not None:
            return text
    return least or _cut([*lines(_FOLDED[-1])], most)


def render_whole(nodes: Sequence[Node]) -> str:
    """Return a page without folding its lists, to compare it with later."""
    return "\n".join(_lines(_simplified(nodes), Detail(), 0))


def _within(most: int, lines: Iterator[str]) -> str | None:
    """Return the lines as one text; None as soon as they have too many tokens.

    No token spans two lines, so each is counted by itself: a page of many times what can be sent is
    not written in all details only to be counted.
    """
    kept: list[str] = []
    count = -1
    for line in lines:
        count += estimate_tokens(line) + 1  # the line's end, which the last one lacks
        if count > most:
            return None
        kept.append(line)
    return "\n".join(kept)


def changes(before: str, after: str) -> str:
    """Return what is new in a text of `render`, each line below those that it is in."""
    old, new = before.splitlines(), after.splitlines()
    added, gone = _compare(old, new)
    shown: set[int] = set()
    for index, path in enumerate(_paths(new)):
        if index in added:
            shown.update(path)
    lines = [new[index] for index in sorted(shown)]
    if gone:
        lines.append(f"({gone} earlier line{' is' if gone == 1 else 's are'} gone)")
    return "\n".join(lines)


def _compare(old: Sequence[str], new: Sequence[str]) -> tuple[set[int], int]:
    """Return which lines are new, and how many of the old ones are gone."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    was, now = old[start : len(old) - end], new[start : len(new) - end]
    counts = Counter(was)
    pairs = len(was) + len(now) + sum(counts[line] for line in now)
    if pairs * min(len(was), len(now)) > _MOST_COMPARED:
        return _compare_counts(old, new)
    added: set[int] = set()
    gone = 0
    for kind, i, j, k, m in SequenceMatcher(a=was, b=now, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            gone += j - i
        if kind in ("replace", "insert"):
            added.update(range(start + k, start + m))
    return added, gone


def _compare_counts(old: Sequence[str], new: Sequence[str]) -> tuple[set[int], int]:
    """Return the same for lines in any order, each with the one that it is in."""
    left = Counter(tuple(old[each] for each in path[-2:]) for path in _paths(old))
    added: set[int] = set()
    for index, path in enumerate(_paths(new)):
        placed = tuple(new[each] for each in path[-2:])
        if left[placed]:
            left[placed] -= 1
        else:
            added.add(index)
    return added, left.total()


def _paths(lines: Sequence[str]) -> Iterator[Sequence[int]]:
    """Yield, for each line, the lines that it is in and itself."""
    path: list[int] = []
    for index, line in enumerate(lines):
        while path and _depth(lines[path[-1]]) >= _depth(line):
            path.pop()
        path.append(index)
        yield path


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _simplified(nodes: Sequence[Node]) -> list[Node]:
    """Return elements without the wrappers that say nothing, and without repeated texts."""
    found: list[Node] = []
    for node in nodes:
        children = _simplified(node.children)
        is_line = node.role == _ENTRY and _fits_a_line(children)
        if is_line or node.role == "combobox" or node.role in _CELLS or node.role in _ROWS:
            found.append(replace(node, children=children))
        elif node.role in _PLAIN and not node.is_used and not node.name:
            if node.text:
                found.append(Node(TEXT, text=node.text))
            found += children
        else:
            if node.role == "group" and children and children[0].role == "heading":
                children[0] = _summary(children[0])
            found.append(replace(node, children=_without_name(node, children)))
    return _without_labels(found)


def _summary(heading: Node) -> Node:
    """Return a heading that begins a group, as that of a `<details>` does, as one can click it."""
    return replace(heading, attributes={"cursor": "pointer", **heading.attributes})


def _without_name(node: Node, children: list[Node]) -> list[Node]:
    """Leave out a text that is all of an element's name."""
    if len(children) == 1 and children[0].role == TEXT and children[0].text == node.name:
        return []
    return children


def _without_labels(nodes: list[Node]) -> list[Node]:
    """Leave out the texts that the next element has as its name, or the box before them."""
    around = [*nodes, Node(TEXT)]  # nothing is after the last one, nor before the first

    def is_label(index: int) -> bool:
        text, before, after = nodes[index].text, around[index - 1], around[index + 1]
        return text == after.name or (before.role in BOXES and text == before.name)

    return [
        node
        for index, node in enumerate(nodes)
        if node.role != TEXT or not node.text or not is_label(index)
    ]


def _lines(
    nodes: Sequence[Node], detail: Detail, depth: int, ref: str = "", start: int = 0
) -> Iterator[str]:
    end = len(nodes)
    if detail.entries and end - start > detail.entries + 1:
        end = start + detail.entries
    for node in nodes[start:end]:
        yield from _element(node, detail, depth)
    if rest := nodes[max(start, end) :]:
        used = sum(each.is_used for node in rest for each in node.walk())
        where = f'ref="{ref}", ' if ref else ""
        holds = f" with {used} elements to use" if used else ""
        yield f"{' ' * depth}… {len(rest)} more{holds}: page_snapshot({where}start={end})"
        for dialog in _dialogs(rest):
            yield from _element(dialog, detail, depth)


def _element(node: Node, detail: Detail, depth: int, start: int = 0) -> Iterator[str]:
    """Yield the lines of an element; `start` is the first of its children that is in them."""
    indent = " " * depth
    if node.role == TEXT:
        yield f"{indent}{_text(node.text, detail)}"
        return
    if node.role in _ROWS and not any(map(_is_block, node.children)):
        yield f"{indent}{_row(node, detail)}"
        return
    if node.role in _CELLS and not _is_block(node):
        if text := _inline(node, detail):
            yield f"{indent}{node.role}: {text}"
        return
    if node.role == _ENTRY and _fits_a_line(node.children):
        yield f"{indent}- {' '.join(_inline(each, detail) for each in node.children)}"
        return
    line = indent + _label(node, detail)
    if node.role == "combobox":
        options = [each for each in node.children if each.role == "option"]
        if options:
            yield f"{line}: {_options(options[start:], detail)}"
            return
    if node.text:
        line += f": {_text(node.text, detail)}"
    yield line
    yield from _lines(_below(node), detail, depth + 1, node.ref, start)


def _dialogs(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield the dialogs in elements, which are shown even if those are folded."""
    for node in nodes:
        if node.role in _DIALOGS:
            yield node
        else:
            yield from _dialogs(node.children)


def _fits_a_line(nodes: Sequence[Node]) -> bool:
    """Return whether several elements can share a line."""
    return len(nodes) > 1 and not any(_below(each) or len(each.text) > _SHORT for each in nodes)


def _is_block(node: Node) -> bool:
    """Return whether too much is in a cell for one line, as in tables that lay out a page."""
    return next(islice(_elements(node), _LONG_CELL, None), None) is not None


def _elements(node: Node) -> Iterator[Node]:
    """Yield an element and those in it, without options, which are folded on their line."""
    yield node
    if node.role != "combobox":
        for each in node.children:
            yield from _elements(each)


def _title(node: Node) -> Node | None:
    """Return the heading that is all of an element to use, such as a link, and so its name."""
    if node.name or not node.is_used or len(node.children) != 1:
        return None
    (only,) = node.children
    is_name = only.role == "heading" and not (only.children or only.text or only.is_used)
    return only if is_name else None


def _below(node: Node) -> Sequence[Node]:
    """Return what is in an element and not on its line."""
    return [] if _title(node) else node.children


def _states(node: Node) -> list[str]:
    found = [(state, node.attributes[state]) for state in _STATES if state in node.attributes]
    return [f"{state}={value}" if value else state for state, value in found]


def _label(node: Node, detail: Detail) -> str:
    """Return an element in words: its role, name, states and reference."""
    level = node.attributes.get("level", "")
    words = [node.role + level]
    # Of rows and cells, it is what is in them.
    if node.name and node.role not in _CELLS and (node.role not in _ROWS or node.is_used):
        words.append(f'"{_text(node.name, detail)}"')
    if title := _title(node):
        words.append(_label(title, detail))
    words += _states(node)
    if "active" in node.attributes and node.is_used:
        words.append("focused")
    if node.ref and (node.is_used or node.role in _LISTS or node.role == "iframe"):
        words.append(node.ref)
    if detail.links and node.url:
        words.append(f"-> {shorten(node.url, 200)}")
    return " ".join(words)


def _row(node: Node, detail: Detail) -> str:
    """Return a row of a table on one line."""
    return f"{_label(node, detail)}: {' | '.join(_inline(each, detail) for each in node.children)}"


def _inline(node: Node, detail: Detail) -> str:
    """Return an element of a row on one line."""
    options = [each for each in node.children if each.role == "option"]
    if node.role == "combobox" and options:
        return f"{_label(node, detail)}: {_options(options, detail)}"
    parts: list[str] = []
    if node.role not in _CELLS and node.role != TEXT:
        parts.append(_label(node, detail))
    elif node.role in _CELLS and node.name and not node.children:
        parts.append(_text(node.name, detail))
    if node.text:
        parts.append(_text(node.text, detail))
    parts += [_inline(each, detail) for each in _below(node)]
    if node.role in _CELLS:
        parts += _states(node)
        if node.is_used:
            parts.append(node.ref)
    return " ".join(each for each in parts if each)


def _options(options: Sequence[Node], detail: Detail) -> str:
    most = detail.entries or len(options)
    texts = [
        ("*" if "selected" in each.attributes else "")
        + _text(each.name or each.text, detail)
        + (" (disabled)" if "disabled" in each.attributes else "")
        for index, each in enumerate(options)
        if "selected" in each.attributes or index < most
    ]
    more = len(options) - len(texts)
    return " | ".join(texts) + (f" | … {more} more" if more > 0 else "")


def _text(text: str, detail: Detail) -> str:
    plain = " ".join(text.split())
    if len(plain) <= detail.text:
        return plain
    return f"{plain[: detail.text]}… ({len(plain) - detail.text} more characters)"


def _cut(lines: Sequence[str], most: int) -> str:
    """Return the beginning of a text that cannot be folded any further."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate_tokens("\n".join(lines[:middle])) <= most - 40:
            low = middle
        else:
            high = middle - 1
    rest = len(lines) - low
    return "\n".join([*lines[:low], f"… {rest} more lines; take a part: page_snapshot(ref=…)"])
