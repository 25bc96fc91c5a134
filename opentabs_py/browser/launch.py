"""Launch Chromium with the extension, through Playwright."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Final

import anyio
from playwright.async_api import BrowserContext, Dialog, Error

from opentabs_py.browser.driver import FAILURES, Driver, SharedDriver
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.process import end_browser
from opentabs_py.errors import BrowserError

CLOSE_WITHIN: Final = 0.8  # s; closing takes 0.1 to 0.5 s


Planned = Callable[[], Awaitable[LaunchPlan]]
"""Waits for the plan; a launcher can start other things before it is ready."""

Launcher = Callable[[Planned], AbstractAsyncContextManager[BrowserContext | None]]
"""Launches a browser as planned, and closes it at the end.

Yields None if the browser is driven outside this event loop. Raises `BrowserError`.
"""


@asynccontextmanager
async def launch_browser(
    planned: Planned, *, shared: SharedDriver | None = None
) -> AsyncGenerator[BrowserContext]:
    """Run a Chromium with the extension, as a Playwright context.

    Starts Playwright's driver before waiting for the plan.

    Args:
        planned: Waits for the plan.
        shared: The driver that it shares with other browsers, if it does.

    Raises:
        BrowserError: It did not start.
    """
    plan: LaunchPlan | None = None
    try:
        async with (shared or SharedDriver()).use() as driver:
            plan = await planned()
            plan.prepare()
            context = await _launch(driver, plan)
            try:
                yield context
            finally:
                # An error means that the driver has just died.
                with anyio.move_on_after(CLOSE_WITHIN, shield=True), suppress(*FAILURES):
                    await context.close()
    finally:
        if plan is not None:
            await end_browser(plan.scratch)  # if it did not close in time


async def _launch(driver: Driver, plan: LaunchPlan) -> BrowserContext:
    try:
        context = await driver.playwright.chromium.launch_persistent_context(
            plan.profile, **plan.options
        )
    except FAILURES as error:
        if driver.is_gone() or not isinstance(error, Error):
            raise BrowserError(
                "Playwright's driver died while starting the browser. Try again."
            ) from error
        raise plan.not_started(error.message) from error
    except anyio.get_cancelled_exc_class():
        # It might still start the browser. The session ends, and so do its other browsers.
        await driver.stop()
        raise
    driver.close_with(context)
    if plan.headed:
        await _leave_to_user(context)
    return context


async def _leave_to_user(context: BrowserContext) -> None:
    """Let the user answer dialogs, and let downloads go where the browser's settings say.

    By default, Playwright dismisses dialogs, and keeps downloads only until the browser closes.
    """

    def wait_for_user(_dialog: Dialog) -> None:
        pass  # Playwright dismisses only dialogs that nobody listens for

    context.on("dialog", wait_for_user)
    with suppress(*FAILURES):  # the browser has just been closed
        session: Any = await context.new_cdp_session(context.pages[0])
        await session.send(
            "Browser.setDownloadBehavior", {"behavior": "default", "eventsEnabled": True}
        )
