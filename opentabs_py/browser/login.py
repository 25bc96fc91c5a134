"""A browser window for the user to sign in."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
from playwright.async_api import BrowserContext

from opentabs_py.browser.driver import FAILURES, SharedDriver
from opentabs_py.browser.launch import launch_browser
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.signed_in import State
from opentabs_py.browser.urls import cannot_open, with_scheme
from opentabs_py.errors import BrowserError

LOOK_AGAIN: Final = 1.0  # s; what is saved if the window is closed is at most this old
ENDS_WITHIN: Final = 1.0  # s; for a look at a page, whose script may be busy
_STORED: Final = "[location.origin, Object.entries(localStorage)]"


async def sign_in(plan: LaunchPlan, url: str, finished: Callable[[], Awaitable[None]]) -> State:
    """Open a window, and return its sign-in state once the user is done.

    Args:
        plan: How to launch the browser.
        url: The page to open.
        finished: Called once the page is open; returns when the user says that they are done. They
            may also close the window.

    Raises:
        BrowserError: The browser did not start, the page cannot be opened, or the driver died.
    """

    async def planned() -> LaunchPlan:
        await anyio.lowlevel.checkpoint()
        return plan

    driver = SharedDriver()
    async with launch_browser(planned, shared=driver) as context:
        closed = anyio.Event()
        context.on("close", lambda _: closed.set())
        page = context.pages[0] if context.pages else await context.new_page()
        try:
            await page.goto(with_scheme(url))
        except FAILURES as error:
            driver.check()
            raise cannot_open(url, error) from error
        seen, ended = _Seen(), anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def wait(done: Callable[[], Awaitable[object]]) -> None:
                await done()
                ended.set()
                # Playwright logs an error if a call is cancelled while its driver dies.
                await anyio.sleep(ENDS_WITHIN)
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait, finished)
            tasks.start_soon(wait, closed.wait)
            await seen.follow(context, ended)
            tasks.cancel_scope.cancel()
        driver.check()
        if closed.is_set():
            return seen.state
        try:
            state: Any = await context.storage_state(indexed_db=True)
        except FAILURES as error:
            driver.check()
            reason = str(error).partition("\n")[0]
            raise BrowserError(f"Cannot read the sign-in: {reason}. Sign in again.") from error
        return dict(state)


class _Seen:
    """The last known state of a browser, used if its window is closed."""

    def __init__(self) -> None:
        self._cookies: list[Any] = []
        self._stored: dict[str, list[list[str]]] = {}

    @property
    def state(self) -> State:
        origins = [
            {
                "origin": origin,
                "localStorage": [{"name": name, "value": value} for name, value in entries],
            }
            for origin, entries in self._stored.items()
            if entries
        ]
        return {"cookies": self._cookies, "origins": origins}

    async def follow(self, context: BrowserContext, ended: anyio.Event) -> None:
        while not ended.is_set():
            with suppress(*FAILURES):  # the window is closing
                self._cookies = await context.cookies()
            for page in context.pages:
                with suppress(*FAILURES):  # it is being left, or has no storage
                    origin, entries = await page.evaluate(_STORED)
                    self._stored[origin] = entries
            with anyio.move_on_after(LOOK_AGAIN):
                await ended.wait()
