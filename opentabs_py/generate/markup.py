"""A minimal HTML tree, for finding lists, labels and forms."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from opentabs_py.core.markup import MarkupReader

_VOID: Final = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905
)
# An element that begins ends these, which need no end tag of their own.
_ENDS: Final[Mapping[str, Sequence[str]]] = {
    "li": ("li",), "dt": ("dt", "dd"), "dd": ("dt", "dd"), "option": ("option",),
    "tr": ("tr", "td", "th"), "td": ("td", "th"), "th": ("td", "th"),
    "tbody": ("thead", "tbody", "tr", "td", "th"), "p": ("p",),
}  # fmt: skip
_BARRIERS: Final = frozenset(
    {"ul", "ol", "dl", "table", "select", "form", "section", "article", "div"}
)
_HIDDEN: Final = "template"  # its content is not part of the page
_DEEPEST: Final = 512  # elements in each other; what is deeper is put beside them, as by Chromium


@dataclass(slots=True, eq=False)
class Element:
    """An element; `children` are elements and texts."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list["Element | str"])

    @property
    def classes(self) -> Sequence[str]:
        """Its classes."""
        return self.attributes.get("class", "").split()

    @property
    def elements(self) -> list["Element"]:
        """Its children that are elements."""
        return [each for each in self.children if isinstance(each, Element)]

    @property
    def ancestors(self) -> Iterator["Element"]:
        """The elements that it is in, the nearest first."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def walk(self) -> Iterator["Element"]:
        """Yield the elements in it, in the order of the page."""
        pending = self.elements[::-1]
        while pending:
            each = pending.pop()
            yield each
            pending += each.elements[::-1]

    @property
    def text(self) -> str:
        """Its text, with single spaces."""
        return " ".join("".join(_texts(self)).split())


def _texts(element: Element) -> Iterator[str]:
    pending = element.children[::-1]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            yield each
        elif each.tag != _HIDDEN:
            pending += each.children[::-1]


def parse(html: str) -> Element:
    """Return a page as a tree; its root is not in the page."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return parser.root


class _Parser(MarkupReader):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("")
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._end_implied(tag)
        parent = self._open[min(len(self._open), _DEEPEST) - 1]
        element = Element(tag, {name: value or "" for name, value in attrs}, parent)
        parent.children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        last = len(self._open) - 1
        for index in range(last, max(last - _DEEPEST, 0), -1):
            if self._open[index].tag == tag:
                del self._open[index:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def _end_implied(self, tag: str) -> None:
        ends = _ENDS.get(tag, ())
        index = len(self._open) - 1
        lowest = max(index - _DEEPEST, 0)
        while ends and index > lowest and self._open[index].tag not in _BARRIERS:
            if self._open[index].tag in ends:
                del self._open[index:]
            index -= 1
