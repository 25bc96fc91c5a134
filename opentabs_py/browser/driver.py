"""Playwright's driver: the process between this one and the browser, and what its end means."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from playwright.async_api import BrowserContext, Playwright, async_playwright

from opentabs_py.errors import BrowserError
from opentabs_py.places import cache_dir

NODE_CACHE = "NODE_COMPILE_CACHE"
DRIVER_WITHIN = 20.0  # s; a third of one is usual


@dataclass(frozen=True, slots=True)
class Driver:
    """A running driver.

    Attributes:
        playwright: What it is used by; its `stop` ends it.
    """

    playwright: Playwright
    _gone: "asyncio.Future[None]"  # done, with an exception, when it has died

    def is_gone(self) -> bool:
        """Return whether it has died, rather than been stopped."""
        return self._gone.done()

    def close_with(self, context: BrowserContext) -> None:
        """Have a context close when the driver dies, as it does when the browser is closed.

        All that listens to the context's `close` is notified. Playwright alone does not do that:
        it fails the calls to its API, and whoever makes none learns nothing.
        """
        implementation: Any = context._impl_obj  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
        self._gone.add_done_callback(lambda _: implementation._on_close())  # noqa: SLF001


async def start_driver() -> Driver:
    """Start a driver.

    Raises:
        BrowserError: It does not start, or dies at once.
    """
    manager = async_playwright()
    playwright: Playwright | None = None
    # Cancelled half way, it would leave its process behind.
    with compile_cache(), anyio.move_on_after(DRIVER_WITHIN, shield=True):
        try:
            playwright = await manager.start()
        except Exception as error:  # it raises no narrower one when the driver dies
            raise BrowserError(
                f"Playwright's driver did not start: {error}. `opentabs doctor` tells more."
            ) from error
    if playwright is None:
        raise BrowserError(
            f"Playwright's driver did not start within {DRIVER_WITHIN:g} s. Is the machine busy? "
            "`opentabs doctor` tells more."
        )
    # There is no public event for the driver's end.
    client: Any = manager._client  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    gone: asyncio.Future[None] = client._transport.on_error_future  # noqa: SLF001
    gone.add_done_callback(lambda done: done.exception())  # else it is logged as never retrieved
    return Driver(playwright, gone)


@contextmanager
def compile_cache() -> Generator[None]:
    """Have a driver of Playwright's that is started meanwhile keep what Node compiles of it.

    The next then starts a fourth sooner. Where the directory cannot be written, nothing is kept.
    """
    if NODE_CACHE in os.environ:
        yield  # the user's own
        return
    os.environ[NODE_CACHE] = str(cache_dir() / "node")
    try:
        yield
    finally:
        os.environ.pop(NODE_CACHE, None)
