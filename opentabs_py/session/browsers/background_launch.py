"""A browser that is launched in its own task, and relaunched."""

import logging

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext

from opentabs_py.browser.launch import Launcher
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.process import memory_of
from opentabs_py.errors import BrowserError

logger = logging.getLogger(__name__)


class BackgroundLaunch:
    """Launches a browser in its own task, starting before its plan is ready.

    Args:
        launcher: Launches the browser.
        tasks: Tasks that run until the browser is closed.

    Attributes:
        plan: How the browser is launched, once that is known.
    """

    def __init__(self, launcher: Launcher, tasks: TaskGroup) -> None:
        self._launcher = launcher
        self._tasks = tasks
        self.plan: LaunchPlan
        self._planned = anyio.Event()
        self._begin()

    def _begin(self) -> None:
        self._scope = anyio.CancelScope()  # of the launch, and then of the running browser
        self._settled = anyio.Event()  # it is running, or did not start
        self._closing = anyio.Event()
        self._ended = anyio.Event()
        self._launched = False
        self._context: BrowserContext | None = None
        self._error: Exception = BrowserError("The browser's start was cancelled.")
        self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        # One task enters and leaves the launcher: it may contain task groups and timeouts.
        try:
            with self._scope:
                async with self._launcher(self._wait_planned) as self._context:
                    self._launched = True
                    self._scope.shield = True  # from now on, only `close` ends it
                    self._settled.set()
                    await self._closing.wait()
        except Exception as error:
            self._error = error
            if self._launched:
                logger.warning("Closing the browser failed: %s", error, exc_info=error)
        finally:
            self._settled.set()
            self._ended.set()

    def set_plan(self, plan: LaunchPlan) -> None:
        """Set the plan, so that the launch can proceed."""
        self.plan = plan
        self._planned.set()

    async def result(self) -> BrowserContext | None:
        """Wait until the browser is running, and return what the launcher yielded.

        Raises:
            BrowserError: It did not start.
        """
        await self._settled.wait()
        if self._launched:
            return self._context
        if isinstance(self._error, BrowserError):
            raise self._error
        raise BrowserError(
            f"The browser's launcher failed: {type(self._error).__name__}: {self._error}"
        ) from self._error

    async def relaunch(self) -> BrowserContext | None:
        """Close what is left of the browser, relaunch it, and return what the launcher yielded.

        Raises:
            BrowserError: It did not start.
        """
        await self.close()
        self._begin()
        return await self.result()

    async def close(self) -> None:
        """Close the browser, or cancel its launch, and wait until it has exited."""
        if self._launched:
            self._closing.set()
        else:
            self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    async def memory(self) -> int:
        """Return the memory of the browser's processes, in bytes."""
        return await memory_of(self.plan.scratch)

    async def _wait_planned(self) -> LaunchPlan:
        await self._planned.wait()
        return self.plan
