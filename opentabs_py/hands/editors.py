"""Find the rich-text editors of a page that do not say what they are.

To the accessibility tree, an element with `contenteditable` and no role is a paragraph or a group
like any other.
"""

import re
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final

import anyio
from playwright.async_api import Frame, Page

from opentabs_py.browser.driver import FAILURES

FOUND_WITHIN: Final = 1.0  # s; takes some ms for each frame
MOST: Final = 20  # in each frame
_EDITORS: Final = "[contenteditable]:not([contenteditable=false i], [role])"
_REF: Final = re.compile(r"\[ref=(\w+)\]")


async def find_editors(page: Page) -> AbstractSet[str]:
    """Return the references of the editors; as many as are found in time.

    Playwright forgets the references outside of what it looks at, so the page itself is looked at
    after this: the elements keep theirs.
    """
    found: set[str] = set()

    async def find_in(frame: Frame) -> None:
        editors = frame.locator(_EDITORS)
        with suppress(*FAILURES):  # the frame is gone
            for index in range(min(await editors.count(), MOST)):
                shown = await editors.nth(index).aria_snapshot(mode="ai")
                if ref := _REF.search(shown):
                    found.add(ref[1])

    with anyio.move_on_after(FOUND_WITHIN):
        async with anyio.create_task_group() as tasks:
            for frame in page.frames:
                tasks.start_soon(find_in, frame)
    return found
