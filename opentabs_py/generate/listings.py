"""Find the list that a page shows, and the fields of its entries."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from opentabs_py.core.shapes.texts import is_generated
from opentabs_py.generate.markup import Element
from opentabs_py.generate.names import camel, unique

_ROWS: Final = frozenset({"tr", "li", "article", "div", "section", "a"})
_AROUND: Final = frozenset({"nav", "header", "footer", "aside", "form", "select", "head"})
_MOST_FIELDS: Final = 20
_MOST_TRIED: Final = 100  # fields; each costs a search of the entries
_MOST_ENTRIES: Final = 200  # in which fields are looked for
_MOST_GROUPS: Final = 40  # that are looked at; each costs a search of the page
_MOST_NESTED: Final = 8  # entries of one list that an element may be in, on average
# Of CSS, without escapes
_IDENTIFIER: Final = re.compile(r"(?:--|-?[^\W\d])[\w-]*")

Row = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Field:
    """What a page shows of each entry of a list.

    Attributes:
        name: The member of the entry.
        selector: The CSS selector of its element within the entry; empty for the entry itself.
        attribute: The attribute that holds it; empty if it is the text.
    """

    name: str
    selector: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class PageListing:
    """A list of a page.

    Attributes:
        selector: The CSS selector of its entries.
        fields: What is shown of each.
    """

    selector: str
    fields: Sequence[Field]

    def rows(self, page: Element) -> Sequence[Row]:
        """Return the entries of the list in a page."""
        return [
            {each.name: _read(entry, each) for each in self.fields}
            for entry in select(page, self.selector)
        ]


def find_listing(pages: Sequence[Element]) -> PageListing | None:
    """Return the most substantial list of some pages of a kind; None if they have none."""
    best: tuple[int, PageListing] | None = None
    for page in pages:
        most = _MOST_NESTED * sum(1 for _ in page.walk())
        for selector, entries in _groups(page):
            inner = (each for entry in entries for each in entry.walk())
            if next(islice(inner, most, None), None) is not None:
                continue  # reading entries that are in each other could take hours
            fields = [*_fields(entries)]
            score = len(entries) * min(len(fields), 6)
            if len(fields) > 1 and (best is None or score > best[0]):
                best = score, PageListing(selector, fields)
    return None if best is None else best[1]


def details(page: Element) -> Mapping[str, str]:
    """Return what a page shows with labels: in definition lists, and in rows with one heading."""
    found: dict[str, str] = {}
    following = {
        before: after for parent in page.walk() for before, after in pairwise(parent.elements)
    }
    for element in page.walk():
        if element.tag == "dt":
            after = following.get(element)
            if after is not None and after.tag == "dd":
                found[_label(element)] = after.text
        elif element.tag == "tr" and [each.tag for each in element.elements] == ["th", "td"]:
            heading, value = element.elements
            found[_label(heading)] = value.text
    return {label: text for label, text in found.items() if label}


def heading(page: Element) -> str:
    """Return the heading of a page, or else its title."""
    for tag in ("h1", "title"):
        for element in page.walk():
            if element.tag == tag and element.text:
                return element.text
    return ""


def select(page: Element, selector: str) -> Sequence[Element]:
    """Return the elements that a selector of this module finds."""
    *above, last = selector.split(" ")
    found: list[Element] = []
    pending = [(each, above) for each in page.elements[::-1]]
    while pending:
        element, missing = pending.pop()
        is_one = not missing and _matches(element, last)
        if is_one and not (element.tag == "tr" and not _cells(element)):
            found.append(element)
        missing = [part for part in missing if not _matches(element, part)]
        pending += [(each, missing) for each in element.elements[::-1]]
    return found


def _label(element: Element) -> str:
    return element.text.removesuffix(":").strip()


def _groups(page: Element) -> Iterator[tuple[str, Sequence[Element]]]:
    """Yield the selectors that find the most entries of a list, and the entries."""
    counts: Counter[str] = Counter()
    pending = [(each, "") for each in page.elements[::-1]]
    while pending:
        parent, around = pending.pop()
        if parent.tag in _AROUND:
            continue
        around = _named(parent) or around
        pending += [(each, around) for each in parent.elements[::-1]]
        kinds = Counter(_mark(each) for each in parent.elements if each.tag in _ROWS)
        for mark, count in kinds.items():
            if count > 1:
                counts[f"{around} {mark}".strip()] += count
    longest = {selector for selector, _ in counts.most_common(_MOST_GROUPS)}
    for selector in counts:
        if selector in longest:
            yield selector, select(page, selector)


def _fields(entries: Sequence[Element]) -> Iterator[Field]:
    """Yield what is shown of the entries, where at least half of them show it."""
    entries = entries[:_MOST_ENTRIES]
    named: dict[str, Field] = {}
    tried = 0

    def note(name: str, selector: str, attribute: str = "") -> None:
        nonlocal tried
        tried += 1
        if len(named) >= _MOST_FIELDS or tried > _MOST_TRIED or not name:
            return
        given = Field(unique(camel(name), named), selector, attribute)
        shown = sum(bool(_read(entry, given)) for entry in entries)
        if shown * 2 >= len(entries):
            named[given.name] = given

    for attribute in ("data-id", "id"):
        if all(each.attributes.get(attribute) for each in entries) and "id" not in named:
            note("id", "", attribute)
    if entries and entries[0].tag == "tr":
        headings = _headings(entries[0])
        for index, cell in enumerate(_cells(entries[0])):
            selector = f"td:nth-of-type({index + 1})"
            name = headings[index] if index < len(headings) else ""
            name = name or next(iter(cell.classes), "") or f"column {index + 1}"
            note(name, selector)
            if any(each.tag == "a" for each in cell.walk()):
                note(f"{name} url", f"{selector} a", "href")
    else:
        marks = Counter(
            (mark, each.tag) for entry in entries for each in entry.walk()
            if (mark := _named(each)) and not any(_named(inner) for inner in each.walk())
        )  # fmt: skip
        for (mark, tag), count in marks.items():
            if count * 2 < len(entries):
                continue  # trying each of them would cost a search of all entries
            name = re.split(r"[.#\[\"=\]]+", mark)[-1] or mark.split('"')[-2]
            note(name, mark, "datetime" if tag == "time" else "")
        if any(each.tag == "a" for entry in entries for each in (entry, *entry.walk())):
            note("url", "" if entries[0].tag == "a" else "a", "href")
    yield from named.values()


def _headings(row: Element) -> Sequence[str]:
    table = next((each for each in row.ancestors if each.tag == "table"), None)
    if table is None:
        return []
    head = next((each for each in table.walk() if each.tag == "tr" and not _cells(each)), None)
    return [] if head is None else [each.text for each in head.elements]


def _cells(row: Element) -> Sequence[Element]:
    return [each for each in row.elements if each.tag == "td"]


def _read(entry: Element, given: Field) -> str | None:
    found = entry
    if given.selector:
        *above, last = given.selector.split(" ")
        inner = next(
            (
                each
                for each in entry.walk()
                if _matches(each, last)
                and all(any(_matches(it, part) for it in each.ancestors) for part in above)
            ),
            None,
        )
        if inner is None:
            return None
        found = inner
    return found.attributes.get(given.attribute) if given.attribute else found.text


def _mark(element: Element) -> str:
    """Return the selector of an element by its tag and class."""
    return f"{element.tag}.{known}" if (known := _class_of(element)) else element.tag


def _named(element: Element) -> str:
    """Return the selector of an element that has a name of some kind; empty if it has none."""
    name = element.attributes.get("id", "")
    if not is_generated(name) and _IDENTIFIER.fullmatch(name):
        return f"#{name}"
    for attribute in ("itemprop", "data-field", "data-testid"):
        value = element.attributes.get(attribute, "")
        if value and re.fullmatch(r"[\w-]+", value):
            return f'[{attribute}="{value}"]'
    known = _class_of(element)
    return f"{element.tag}.{known}" if known and _IDENTIFIER.fullmatch(element.tag) else ""


def _class_of(element: Element) -> str:
    """Return the class that names an element; empty if it has none that a selector can have."""
    names = (each for each in element.classes if not is_generated(each))
    return next((each for each in names if _IDENTIFIER.fullmatch(each)), "")


def _matches(element: Element, selector: str) -> bool:
    """Return whether one of the simple selectors of this module finds an element."""
    if selector.startswith("#"):
        return element.attributes.get("id") == selector[1:]
    if selector.startswith("["):
        name, _, value = selector[1:-1].partition("=")
        return element.attributes.get(name) == value.strip('"')
    tag, _, position = selector.partition(":nth-of-type(")
    if position:
        alike = [each for each in (element.parent or element).elements if each.tag == tag]
        return element in alike and alike.index(element) == int(position[:-1]) - 1
    tag, _, name = selector.partition(".")
    return element.tag == tag and (not name or name in element.classes)
