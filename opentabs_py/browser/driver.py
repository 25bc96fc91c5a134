"""Playwright's driver: the process between this one and the browser, and how to handle its end."""

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext, Error, Playwright, async_playwright

from opentabs_py.config.paths import cache_dir
from opentabs_py.directories import create_private
from opentabs_py.errors import BrowserError

# Playwright's own, and what the event loop raises for the pipe of a driver that has just died.
FAILURES: Final = (Error, RuntimeError)
NODE_CACHE = "NODE_COMPILE_CACHE"
MARK: Final = "STARTED_BY_OPENTABS"  # in a driver's environment: which start it belongs to
DRIVER_WITHIN = 20.0  # s; usually takes a third of a second
STOP_WITHIN = 0.4  # s; with the browser's and the server's own, everything ends within two


@dataclass(frozen=True, slots=True, eq=False)
class Driver:
    """A running driver.

    Attributes:
        playwright: Its API.
    """

    playwright: Playwright
    _process: "asyncio.subprocess.Process"
    _gone: "asyncio.Future[None]"  # done, with an exception, when it has died

    def is_gone(self) -> bool:
        """Return whether the driver has died rather than been stopped."""
        return self._gone.done()

    async def stop(self) -> None:
        """Stop the driver. Kill it if it hangs, because it might still start a browser."""
        with anyio.move_on_after(STOP_WITHIN, shield=True):
            await self.playwright.stop()
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            with anyio.move_on_after(STOP_WITHIN, shield=True):
                await self._process.wait()

    def close_with(self, context: BrowserContext) -> None:
        """Close a context when the driver dies, as when the browser closes.

        This notifies all listeners of the context's `close` event. Playwright itself only fails
        subsequent API calls, so code that makes none would not notice.
        """
        implementation: Any = context._impl_obj  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001

        def close(_: "asyncio.Future[None]") -> None:
            implementation._on_close()  # noqa: SLF001

        def handle_closed(_: BrowserContext) -> None:
            self._gone.remove_done_callback(close)

        self._gone.add_done_callback(close)
        context.on("close", handle_closed)


class SharedDriver:
    """One driver for several browsers: the first one starts it, and the last one stops it.

    If it has died, the next browser starts another.
    """

    def __init__(self) -> None:
        self._current: Driver | None = None
        self._users: Counter[Driver] = Counter()
        self._starting = anyio.Lock()

    @property
    def is_gone(self) -> bool:
        """Whether it has died while a browser used it."""
        return self._current is not None and self._current.is_gone()

    def check(self) -> None:
        """Raise if it has died: its browsers are gone, and Playwright's own errors do not say why.

        Raises:
            BrowserError: It has died.
        """
        if self.is_gone:
            raise BrowserError("Playwright's driver died, and the browser with it. Try again.")

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Driver]:
        """Use the driver while the context is open.

        Raises:
            BrowserError: It does not start, or dies immediately.
        """
        async with self._starting:
            driver = self._current
            if driver is None or driver.is_gone():
                driver = self._current = await start_driver()
            self._users[driver] += 1
        try:
            yield driver
        finally:
            self._users[driver] -= 1
            if not self._users[driver]:
                del self._users[driver]
                if driver is self._current:
                    self._current = None
                await driver.stop()


async def start_driver() -> Driver:
    """Start a driver.

    Raises:
        BrowserError: It does not start, or dies immediately.
    """
    manager = async_playwright()
    playwright: Playwright | None = None
    failure: Exception | None = None
    is_late = False

    async def end_late(mark: str, starting: anyio.CancelScope) -> None:
        nonlocal is_late
        await anyio.sleep(DRIVER_WITHIN)
        is_late = True
        await anyio.to_thread.run_sync(_kill, mark)
        await anyio.sleep(STOP_WITHIN)  # for Playwright to notice
        starting.cancel()

    # If cancelled halfway, it would leave its process behind.
    with compile_cache(), _marked() as mark, anyio.CancelScope(shield=True):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end_late, mark, tasks.cancel_scope)
            try:
                playwright = await manager.start()
            except Exception as error:  # noqa: BLE001 (a driver that dies raises nothing narrower)
                failure = error
            tasks.cancel_scope.cancel()
    if playwright is None:
        if is_late or failure is None:
            raise BrowserError(
                f"Playwright's driver did not start within {DRIVER_WITHIN:g} s. Is the machine "
                "busy? Run `opentabs doctor` for details."
            )
        raise BrowserError(
            f"Playwright's driver did not start: {failure}. Run `opentabs doctor`."
        ) from failure
    # There is no public event for the driver's exit, and no public access to its process.
    client: Any = manager._client  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    transport: Any = client._transport  # noqa: SLF001
    gone: asyncio.Future[None] = transport.on_error_future
    gone.add_done_callback(_retrieve)
    stdin: Any = transport._proc.stdin  # noqa: SLF001
    # Its pipe breaks if something is sent to a driver that has just died; Python 3.11.2 logs that.
    stdin._protocol._get_close_waiter(stdin).add_done_callback(_retrieve)  # noqa: SLF001
    return Driver(playwright, transport._proc, gone)  # noqa: SLF001


def _retrieve(done: "asyncio.Future[None]") -> None:
    """Look at a future's exception, which would be logged as never retrieved otherwise."""
    if not done.cancelled():
        done.exception()


@contextmanager
def _marked() -> Generator[str]:
    """Mark the driver that starts within this context: Playwright returns no process until it runs.

    Yields:
        The mark.
    """
    mark = os.environ[MARK] = secrets.token_hex(8)
    try:
        yield mark
    finally:
        os.environ.pop(MARK, None)


def _kill(mark: str) -> None:
    """Kill the driver with a mark."""
    import psutil  # noqa: PLC0415 (takes 10 ms, and is needed only here)

    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has exited
            if child.environ().get(MARK) == mark and "run-driver" in child.cmdline():
                child.kill()


@contextmanager
def compile_cache() -> Generator[None]:
    """Make Playwright drivers that start within this context cache their compiled code.

    The next driver then starts 25% faster. If the directory is not writable, nothing is cached.
    """
    if NODE_CACHE in os.environ:
        yield  # the user's own
        return
    directory = cache_dir() / "node"
    with suppress(OSError):
        create_private(directory)  # Node would let its umask decide who may write to it
    os.environ[NODE_CACHE] = str(directory)
    try:
        yield
    finally:
        os.environ.pop(NODE_CACHE, None)
