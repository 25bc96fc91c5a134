"""Wait until a page has loaded, or shows a text."""

import json
from contextlib import suppress
from typing import Final

import anyio
from playwright.async_api import Error, Page
from playwright.async_api import TimeoutError as LateError

from opentabs_py.browser.driver import FAILURES

ANSWERS_WITHIN: Final = 1.0  # s; a page whose script is busy does not answer
LOADED_WITHIN: Final = 30.0  # s; then a page counts as there, though parts of it are not
LOOK_EVERY: Final = 0.1  # s


async def wait_loaded(page: Page) -> None:
    """Wait until the page that a tab has gone back or forward to has loaded.

    If it is late, that is not an error: who gets one goes back once more.
    """
    state: object = None
    with suppress(*FAILURES), anyio.move_on_after(ANSWERS_WITHIN):
        state = await page.evaluate("document.readyState")
    if state != "complete":  # else it may come from the back/forward cache, which fires no load
        with suppress(*FAILURES):
            await page.wait_for_load_state(timeout=LOADED_WITHIN * 1000)


async def wait_shown(page: Page, text: str, *, shown: bool, within: float) -> None:
    """Wait until any frame of a page shows a text, or until none does any more.

    Args:
        page: The page.
        text: The text.
        shown: Whether to wait until it is shown, or until it is gone.
        within: Seconds.

    Raises:
        Error: That is not so in time.
    """
    with anyio.move_on_after(within):
        while await _shows(page, text) != shown:  # noqa: ASYNC110 (a page does not say)
            await anyio.sleep(LOOK_EVERY)
        return
    what = "shown" if shown else "gone"
    raise LateError(f"Timeout {within:g} s exceeded: {json.dumps(text)} is not {what}")


async def _shows(page: Page, text: str) -> bool:
    for frame in page.frames:
        with suppress(Error):  # it is gone, or on its way to another page
            if await frame.get_by_text(text).filter(visible=True).count():
                return True
    return False
