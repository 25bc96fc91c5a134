"""The marks in HTML that plugins rely on: classes, ids, names of fields, test ids."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from opentabs_py.core.markup import MarkupReader
from opentabs_py.core.shapes.texts import is_generated, is_id

PASSWORD: Final = 'input[type="password"]'  # noqa: S105 (a selector)
_NAMED: Final = ("name", "data-testid", "data-test-id", "data-qa", "role", "itemprop", "property")
_TAG: Final = re.compile(r"[.#\[]")
_EXPECTED: Final = 6  # elements; that none of so many is there by chance is very unlikely
_MOST: Final = 4_000  # different ones; a page with more is made of generated names


def marks_of(html: str) -> Mapping[str, int]:
    """Return the CSS selectors that find a page's elements, and how many each one finds.

    They are tags, and tags with a class, an id, a test id or another name.
    Names that a build has made, such as `css-1x2y3z`, are left out: they change by themselves.
    """
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.marks


def lost_marks(
    was: Sequence[Mapping[str, int]], now: Sequence[Mapping[str, int]], *, suspected: bool = False
) -> Sequence[str]:
    """Return the selectors that found something on each of some pages, and find nothing now.

    Some classes come and go with what a page shows. So a selector counts only if, by its share of
    the elements with its tag, it should find several now, or if it found all of them.

    Args:
        was: The marks of the earlier pages.
        now: Those of the later ones.
        suspected: Whether something that depends on the page is broken. Then all count.
    """
    if not was or not now:
        return []
    always = set[str].intersection(*({*each} for each in was))
    lost = sorted(always.difference(*now))
    if suspected:
        return lost
    before, since = _sum(was), _sum(now)
    return [
        mark
        for mark in lost
        if (tag := tag_of(mark)) in since
        and (before[mark] == before[tag] or before[mark] / before[tag] * since[tag] > _EXPECTED)
    ]


def tag_of(mark: str) -> str:
    """Return the tag of a selector of `marks_of`."""
    return _TAG.split(mark, maxsplit=1)[0]


def _sum(pages: Sequence[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for page in pages:
        total.update(page)
    return total


class _Reader(MarkupReader):
    def __init__(self) -> None:
        super().__init__()
        self.marks: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if len(self.marks) > _MOST:
            return
        self.marks[tag] += 1
        for name, value in attrs:
            if not value:
                continue
            if name == "class":
                for each in value.split():
                    if not is_generated(each):
                        self.marks[f"{tag}.{each}"] += 1
            elif name == "id" and not (is_generated(value) or is_id(value)):
                self.marks[f"{tag}#{value}"] += 1
            elif name in _NAMED and not is_id(value):
                self.marks[f'{tag}[{name}="{value}"]'] += 1
            elif tag == "input" and name == "type" and value.lower() == "password":
                self.marks[PASSWORD] += 1
