"""The server's event loop in a background thread, and how the test's thread waits for it.

Playwright's sync API dispatches its events, including `page.route` handlers, only while the test's
thread is inside one of its calls. So any wait that may depend on a page happens inside Playwright.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_futures
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, suppress
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import BrowserContext, Error, Page, Playwright

T = TypeVar("T")

ANSWERS_WITHIN = 0.5  # s; a page that does not hang needs a millisecond


class ServerThread:
    """A running event loop; `close` stops it.

    Attributes:
        playwright: The Playwright sync API of the test's thread, once it is running.
    """

    def __init__(self) -> None:
        self.playwright: Playwright | None = None
        self._stack = ExitStack()
        options = {"use_uvloop": sys.platform != "win32"}
        self._portal: BlockingPortal = self._stack.enter_context(
            start_blocking_portal("asyncio", options)
        )

    def close(self) -> None:
        """Stop the loop, and cancel everything still running in it."""
        self._portal.call(self._portal.stop, True)
        self._stack.close()

    def start(self, function: Callable[..., Awaitable[T]], *args: Any) -> "Future[T]":
        """Start a coroutine function in the loop."""
        return self._portal.start_task_soon(function, *args)

    def do(self, function: Callable[..., T], *args: Any) -> T:
        """Call a non-blocking function in the loop and return its value."""
        return self._portal.call(function, *args)

    def run(self, function: Callable[..., Awaitable[T]], *args: Any, within: float) -> T:
        """Run a coroutine function in the loop and return its value.

        Raises:
            TimeoutError: It took longer; it was cancelled.
        """
        future = self.start(function, *args)
        try:
            self.wait(future, within)
        finally:
            if not future.done():
                future.cancel()
        try:
            return future.result()
        except CancelledError:
            raise TimeoutError(f"no answer within {within:g} s") from None

    def open(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Enter an async context manager in the loop, and leave it there."""
        return self._portal.wrap_async_context_manager(manager)

    def wait(self, future: "Future[Any]", within: float) -> bool:
        """Wait for a future while Playwright dispatches events; return whether it is done."""
        if not future.done():
            try:
                self._inside(lambda: _settle(future, within))
            except Error:  # the driver is gone, so there are no more events
                wait_futures([future], within)
        return future.done()

    def sleep(self, seconds: float) -> None:
        """Sleep while Playwright dispatches events."""
        self._inside(lambda: asyncio.sleep(seconds))

    def catch_up(self, context: BrowserContext) -> None:
        """Wait until Playwright has handled what it was asked for, and dispatch its events so far.

        It only sends the request of `page.on(...)` or `page.expect_request(...)`. A tool may be
        faster than that, because its call does not pass through Playwright.
        """
        with suppress(Error, IndexError):  # the browser, or its first page, is gone
            context.pages[0].page_errors()  # answered by the driver alone, in the order of requests

    def answers(self, page: Page, within: float = ANSWERS_WITHIN) -> bool:
        """Return whether a page runs a script; its events so far have then been dispatched.

        Unlike this, Playwright waits for a page that hangs, however long.
        """
        answered = False

        async def ask() -> None:
            nonlocal answered
            inner: Any = page._impl_obj  # pyright: ignore[reportPrivateUsage] # noqa: SLF001
            with suppress(TimeoutError, Error):
                await asyncio.wait_for(inner.title(), within)
                answered = True

        self._inside(ask)
        return answered

    def _inside(self, make: Callable[[], Awaitable[Any]]) -> None:
        if self.playwright is None:
            asyncio.run(_as_coroutine(make))
        else:
            # As in each of Playwright's own calls, its loop runs until the coroutine ends.
            self.playwright._sync(make())  # pyright: ignore[reportPrivateUsage] # noqa: SLF001


async def _settle(future: "Future[Any]", within: float) -> None:
    # Neither the timeout nor a signal that ends this wait cancels the future itself.
    here = asyncio.wrap_future(future)
    here.add_done_callback(lambda done: done.cancelled() or done.exception())  # mark as retrieved
    await asyncio.wait([here], timeout=within)


async def _as_coroutine(make: Callable[[], Awaitable[Any]]) -> None:
    await make()
