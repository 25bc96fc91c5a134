"""Starting the extension's service worker again after a crash that took its process too."""

import logging
from collections.abc import Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Error, Page

logger = logging.getLogger(__name__)

ATTEMPTS = 3
CONNECTS_WITHIN = 1.0  # s; a tenth of one is usual


def start_worker_at_crashes(
    context: BrowserContext, origin: str, is_connected: Callable[[], bool], tasks: TaskGroup
) -> None:
    """Start the extension's worker whenever a page crashes.

    A page whose relay lives on starts it by connecting. When all pages crashed with it, nothing
    does until an alarm half a minute later, and no call would be told of the crash before.

    Args:
        context: The browser.
        origin: The extension's.
        is_connected: Tells whether the extension is connected.
        tasks: Where this is done.
    """

    async def start_worker(page: Page) -> None:
        for _ in range(ATTEMPTS):
            try:
                # The browser answers for the page: one that has crashed will do.
                cdp: Any = await context.new_cdp_session(page)
                await cdp.send("ServiceWorker.enable")
                # Changes nothing for a worker that runs.
                await cdp.send("ServiceWorker.startWorker", {"scopeURL": f"{origin}/"})
                await cdp.detach()
            except Error as error:
                logger.debug("The extension's worker was not started: %s", error.message)
            await anyio.sleep(CONNECTS_WITHIN)
            if is_connected():
                return

    def take_crash(page: Page) -> None:
        tasks.start_soon(start_worker, page)

    def watch(page: Page) -> None:
        page.on("crash", take_crash)

    for page in context.pages:
        watch(page)
    context.on("page", watch)
