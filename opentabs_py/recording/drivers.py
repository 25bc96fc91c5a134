"""Run steps in Playwright's async or sync API; see `traffic`."""

import asyncio
import logging

from playwright.async_api import Error

from opentabs_py.recording.traffic import Steps

logger = logging.getLogger(__name__)


class AsyncDriver:
    """Runs steps in tasks of the current event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, steps: Steps) -> None:
        """Run steps soon."""
        task = asyncio.get_running_loop().create_task(_run(steps))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, within: float) -> None:
        """Wait for all steps to end, at most for some seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within)


class SyncDriver:
    """Runs steps at once, in Playwright's sync API."""

    def run(self, steps: Steps) -> None:
        """Run steps now."""
        try:
            value = next(steps)
            while True:
                value = steps.send(value)
        except StopIteration:
            pass
        except Error as error:
            logger.debug("Not recorded: %s", error.message)


async def _run(steps: Steps) -> None:
    try:
        waiting = next(steps)
        while True:
            try:
                value = await waiting
            except Error as error:
                waiting = steps.throw(error)
            except RuntimeError as error:  # the event loop's, for the pipe of a dead driver
                waiting = steps.throw(Error(str(error)))
            else:
                waiting = steps.send(value)
    except StopIteration:
        pass
    except Error as error:  # its page or its browser was closed
        logger.debug("Not recorded: %s", error.message)
