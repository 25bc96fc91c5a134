"""Use the checkboxes, radio buttons and file fields that a page draws itself.

Such a page hides the real input (it is transparent, has no size, or lies behind what is drawn) and
lets its label receive the clicks. Playwright gives an input a reference only if it is visible and
receives clicks, and does not click one that its label covers.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from playwright.async_api import Locator, Page, Position
from playwright.async_api import TimeoutError as LateError

from opentabs_py.hands.tree import BOXES, Box, Node

# Seconds; takes some 30 ms. On a page that takes longer, a click on the label does the same.
UNCOVERED_WITHIN: Final = 0.3
_INPUTS: Final = "input:is([type=checkbox], [type=radio], [type=file])"
_LINKS: Final = "a, button"
_EDGE: Final = 4  # px
_KEPT: Final = 10_000  # references of a page that goes on changing for days


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an input is.

    Attributes:
        above: The reference of the nearest element that it is in.
        role: Its role.
        name: Its name.
        index: How many inputs of that role and name are before it there.
    """

    above: str
    role: Box
    name: str
    index: int


@dataclass(slots=True)
class DrawnInputs:
    """The inputs of a page that have no reference of Playwright's."""

    _refs: dict[_Place, str] = field(default_factory=dict[_Place, str])
    _places: dict[str, _Place] = field(default_factory=dict[str, _Place])
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def add_refs(self, nodes: Sequence[Node]) -> None:
        """Assign each of them a reference, which it keeps at later looks."""
        if len(self._refs) > _KEPT:
            self._refs.clear()
            self._places.clear()
        for top in nodes:
            for above in top.walk():
                if above.ref and above.role != "iframe":
                    self._add_refs_in(above)

    def locate(self, page: Page, ref: str) -> Locator | None:
        """Return the input that has this reference; None if there is none."""
        if (place := self._places.get(ref)) is None:
            return None
        above = page.locator(f"aria-ref={place.above}")
        return above.get_by_role(place.role, name=place.name, exact=True).nth(place.index)

    def _add_refs_in(self, above: Node) -> None:
        below = _inside(above, whole=False)
        own = {id(each) for each in below if each.role in BOXES and not each.ref}
        if not own:
            return
        before: dict[tuple[str, str], int] = {}
        for node in _inside(above, whole=True):
            if (role := BOXES.get(node.role)) is None:
                continue
            index = before.get((role, node.name), 0)
            before[role, node.name] = index + 1
            if id(node) in own:
                place = _Place(above.ref, role, node.name, index)
                ref = self._refs.get(place) or f"i{next(self._numbers)}"
                self._refs[place], self._places[ref] = ref, place
                node.attributes = {**node.attributes, "ref": ref}


def _inside(above: Node, *, whole: bool) -> Iterator[Node]:
    """Yield the elements in one, of its document: all, or those with no nearer reference."""
    for node in above.children:
        yield node
        if node.role != "iframe" and (whole or not node.ref):
            yield from _inside(node, whole=whole)


async def find_clickable(element: Locator, page: Page) -> tuple[Locator, Position | None]:
    """Return what to click for an element, and where: its label, if that is what can be clicked.

    Nowhere in particular, unless its label has links in it.
    """
    if not await element.and_(page.locator(_INPUTS)).count():
        return element, None
    try:
        await element.click(trial=True, timeout=UNCOVERED_WITHIN * 1000)
    except LateError:
        if (label := await _find_label(element)) is not None:
            has_links = await label.locator(_LINKS).count()
            return label, Position(x=_EDGE, y=_EDGE) if has_links else None
    return element, None


async def _find_label(element: Locator) -> Locator | None:
    """Return the first visible label of an input; it waits for neither."""
    handles = await element.element_handles()
    if not handles:
        return None  # the input is gone, as the click on it will say
    [handle] = handles
    frame, ident = await handle.owner_frame(), await handle.get_attribute("id")
    await handle.dispose()
    labels = element.locator("xpath=ancestor::label")
    if frame is not None and ident:
        named = f"label[for={json.dumps(ident, ensure_ascii=False)}]"
        labels = labels.or_(frame.locator(named))
    visible = labels.filter(visible=True)
    return visible.first if await visible.count() else None
