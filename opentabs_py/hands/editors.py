"""Find the rich-text editors of a page that do not say what they are.

To the accessibility tree, an element with `contenteditable` and no role is a paragraph or a group
like any other, and while it is empty, it is nothing.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

import anyio
from playwright.async_api import ElementHandle, Frame, Locator, Page

from opentabs_py.browser.driver import FAILURES
from opentabs_py.hands.tree import Node

FOUND_WITHIN: Final = 1.0  # s; takes some ms for each frame
MOST: Final = 20  # in each frame
_EDITORS: Final = "[contenteditable]:not([contenteditable=false i], [role])"
_REF: Final = re.compile(r"\[ref=(\w+)\]")
# The snapshot begins with the body.
_BEFORE: Final = "(ancestor-or-self::*/preceding-sibling::* | ancestor::*)[ancestor-or-self::body]"
# A loop, because the page may have replaced what an array can do.
_INDEX: Final = """(all, it) => {
    for (let index = 0; index < all.length; index++) if (all[index] === it) return index;
    return -1;
}"""

Side = Literal["in", "before", "after"]


@dataclass(frozen=True, slots=True)
class EmptyEditor:
    """An editor that is not in the page's snapshot.

    Attributes:
        ref: Its own reference. Playwright's have no leading zero.
        near: The reference of an element in the snapshot; empty if there is none.
        side: Where it is: in that element, as the first, or before or after it.
    """

    ref: str
    near: str
    side: Side


@dataclass(slots=True)
class Editors:
    """The editors of a page."""

    _empty: dict[str, tuple[Frame, ElementHandle]] = field(
        default_factory=dict[str, tuple[Frame, ElementHandle]]
    )
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def find(self, page: Page) -> tuple[set[str], list[EmptyEditor]]:
        """Return the references of the editors, and those that are empty, as far as found in time.

        Playwright forgets the references outside of what it looks at, so the page itself is looked
        at after this: the elements keep theirs.
        """
        refs: set[str] = set()
        empty: list[EmptyEditor] = []

        async def find_in(frame: Frame) -> None:
            editors = frame.locator(_EDITORS)
            with suppress(*FAILURES):  # the frame is gone
                for index in range(min(await editors.count(), MOST)):
                    editor = editors.nth(index)
                    if ref := await _first_ref(editor):
                        refs.add(ref)
                    elif await editor.is_visible():
                        empty.append(await self._describe(frame, index, editor))

        with anyio.move_on_after(FOUND_WITHIN):
            async with anyio.create_task_group() as tasks:
                for frame in page.frames:
                    tasks.start_soon(find_in, frame)
        return refs, empty

    async def locate(self, ref: str) -> Locator | None:
        """Return the editor that was empty when it got this reference; None if there is none."""
        if ref not in self._empty:
            return None
        frame, handle = self._empty[ref]
        index = await _index(frame, handle)
        return None if index is None or index < 0 else frame.locator(_EDITORS).nth(index)

    async def _describe(self, frame: Frame, index: int, editor: Locator) -> EmptyEditor:
        ref = await self._ref(frame, index)
        if ref is None:
            ref = f"e0{next(self._numbers)}"
            self._empty[ref] = frame, await editor.element_handle()
        return EmptyEditor(ref, *await _find_near(frame, editor))

    async def _ref(self, frame: Frame, index: int) -> str | None:
        """Return the reference that an editor has already; forget those that are gone."""
        for ref, (where, handle) in [*self._empty.items()]:
            found = await _index(where, handle)
            if (where, found) == (frame, index):
                return ref
            if found is None or found < 0:
                self._empty.pop(ref, None)  # the look into another frame may have done so
            if found == -1:
                with suppress(*FAILURES):
                    await handle.dispose()
        return None


def insert(nodes: Sequence[Node], editors: Sequence[EmptyEditor]) -> list[Node]:
    """Return a page with the editors that are missing in it, which are given in its order."""
    found, rest = list(nodes), list[Node]()
    # Each goes right beside the element that it is near: of several after it, the last goes first.
    before = [each for each in editors if each.side == "before"]
    others = [each for each in editors if each.side != "before"]
    for editor in (*before, *reversed(others)):
        node = Node("textbox", attributes={"ref": editor.ref})
        if not editor.near or not _insert(found, node, editor):
            rest.insert(0, node)
    return [*found, *rest]


def _insert(nodes: list[Node], node: Node, editor: EmptyEditor) -> bool:
    for index, each in enumerate(nodes):
        if each.ref == editor.near:
            if editor.side == "in":
                each.children.insert(0, node)
            else:
                nodes.insert(index + (editor.side == "after"), node)
            return True
        if _insert(each.children, node, editor):
            return True
    return False


async def _index(frame: Frame, handle: ElementHandle) -> int | None:
    """Return which of a frame's editors an element is; -1 if it is none any more.

    None if its document is gone. If that has come back from the back/forward cache, Chrome counts
    its objects from the start: the handle is another one's now, and must not be disposed either.
    """
    try:
        await handle.owner_frame()  # Playwright knows that the handle is from before
        found: object = await frame.locator(_EDITORS).evaluate_all(_INDEX, handle)
    except FAILURES:
        return None
    return found if isinstance(found, int) else -1  # the page may have replaced what it takes


async def _first_ref(element: Locator) -> str:
    found = _REF.search(await element.aria_snapshot(mode="ai"))
    return found[1] if found else ""


async def _find_near(frame: Frame, editor: Locator) -> tuple[str, Side]:
    """Return an element of the snapshot near an editor, and where the editor is from there.

    A wrapper that is not in the snapshot has at most one element that is.
    """
    above = editor.locator("xpath=ancestor::*")
    before = editor.locator(f"xpath={_BEFORE}")
    count = await before.count()
    for index in range(count - 1, max(count - MOST, 0) - 1, -1):
        element = before.nth(index)
        if not (ref := await _first_ref(element)):
            continue
        if await above.and_(frame.locator(f"aria-ref={ref}")).count():
            return ref, "in"
        return ref, "before" if await above.and_(element).count() else "after"
    if frame.parent_frame is None:
        return "", "in"
    frames = frame.parent_frame.locator("iframe, frame")
    owner = await frames.evaluate_all(_INDEX, await frame.frame_element())
    return await _first_ref(frames.nth(owner)), "in"
