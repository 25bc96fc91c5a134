"""Hide what is in password fields, and in others of which a page shows only dots."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import anyio
from playwright.async_api import Frame, Locator, Page

from opentabs_py.browser.driver import FAILURES
from opentabs_py.hands.tree import Node

HIDDEN: Final = "(a password, hidden)"
FOUND_WITHIN: Final = 3.0  # s; to find out which fields hold passwords takes 2 ms each
RULED_OUT_WITHIN: Final = 1.0  # s; that none of a frame's fields shows dots takes 2 ms
AT_ONCE: Final = 16  # fields; with thousands, other tabs would have to wait
SHORTEST: Final = 4  # characters; a shorter one would be hidden everywhere by chance
# A loop, because the page may have replaced what an array can do.
_DOTS: Final = """all => {
    for (const each of all) {
        const security = getComputedStyle(each).webkitTextSecurity;
        if (security && security !== "none") return true;
    }
    return false;
}"""
_FIELDS: Final = frozenset({"textbox", "searchbox", "combobox"})  # the roles of a text field


async def hide_passwords(
    page: Page,
    nodes: Mapping[str, Node],
    every: Iterable[Node],
    *,
    is_hidden: Callable[[str], bool],
) -> bool:
    """Replace what is in fields that show dots, wherever it appears.

    An element that such a field labels has it in its name. A field counts as one if it does not
    say in time that it is none, or is gone by then.

    Args:
        page: The page.
        nodes: Its elements, by reference.
        every: All that it shows.
        is_hidden: Whether a text is hidden already.

    Returns:
        Whether all fields have answered in time.
    """
    fields = [each for each in nodes.values() if each.role in _FIELDS and each.text]
    hidden = {each.ref for each in fields if not is_hidden(each.text)}
    passwords: set[str] = set()
    others = page.locator(":not(input[type=password])")
    limiter = anyio.CapacityLimiter(AT_ONCE)
    with_dots = {*page.frames} if hidden else set[Frame]()  # or not known to have none

    async def rule_out_dots(frame: Frame) -> None:
        with suppress(*FAILURES):  # the frame is gone
            if not await frame.locator("input, textarea").evaluate_all(_DOTS):
                with_dots.discard(frame)

    async def check(ref: str) -> None:
        async with limiter:
            with suppress(*FAILURES):
                field = page.locator(f"aria-ref={ref}")
                is_other = await field.and_(others).count()
                if is_other and not (with_dots and await _has_dots(field)):
                    hidden.discard(ref)
                else:
                    passwords.add(nodes[ref].text)

    with anyio.move_on_after(FOUND_WITHIN) as asking:
        with anyio.move_on_after(RULED_OUT_WITHIN):  # a frame whose script is busy does not answer
            async with anyio.create_task_group() as tasks:
                for frame in [*with_dots]:
                    tasks.start_soon(rule_out_dots, frame)
        async with anyio.create_task_group() as tasks:
            for ref in [*hidden]:
                tasks.start_soon(check, ref)
    for ref in hidden:
        nodes[ref].text = HIDDEN
    for password in passwords:
        if len(password) >= SHORTEST:
            for node in every:
                node.name = node.name.replace(password, HIDDEN)
    return not asking.cancelled_caught


async def _has_dots(field: Locator) -> bool:
    # By its handle: a reference is known only where Playwright took the snapshot, not to the page.
    handle = await field.element_handle()
    try:
        return bool(await handle.evaluate(f"field => ({_DOTS})([field])"))
    finally:
        await handle.dispose()
