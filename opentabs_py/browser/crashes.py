"""Restart the extension's service worker after a crash that also killed its process."""

import logging
from collections.abc import Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Page

from opentabs_py.browser.driver import FAILURES

logger = logging.getLogger(__name__)

ATTEMPTS = 3
CONNECTS_WITHIN = 1.0  # s; usually takes 0.1


def start_worker_at_crashes(
    context: BrowserContext, origin: str, is_connected: Callable[[], bool], tasks: TaskGroup
) -> None:
    """Start the extension's worker whenever a page crashes.

    A page whose relay survives restarts the worker by connecting. If all pages crashed with it,
    only an alarm half a minute later would, and calls would not learn of the crash until then.

    Args:
        context: The browser.
        origin: The extension's origin.
        is_connected: Returns whether the extension is connected.
        tasks: The task group to run in.
    """

    async def start_worker(page: Page) -> None:
        for _ in range(ATTEMPTS):
            try:
                # The browser answers for the page, so a crashed one will do.
                cdp: Any = await context.new_cdp_session(page)
                await cdp.send("ServiceWorker.enable")
                # This has no effect on a running worker.
                await cdp.send("ServiceWorker.startWorker", {"scopeURL": f"{origin}/"})
                await cdp.detach()
            except FAILURES as error:
                logger.debug("Could not start the extension's worker: %s", error)
            await anyio.sleep(CONNECTS_WITHIN)
            if is_connected():
                return

    def watch(page: Page) -> None:
        page.on("crash", lambda page: tasks.start_soon(start_worker, page))

    for page in context.pages:
        watch(page)
    context.on("page", watch)
