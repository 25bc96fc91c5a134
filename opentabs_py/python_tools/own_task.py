"""Run a tool in a task of its own, because what it does to its task would affect all in ours."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import anyio

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class Ended(Generic[T]):
    """How a function has ended: its value, or what it raised."""

    value: T | None = None
    error: BaseException | None = None


async def run_in_own_task(tool: str, function: Callable[[], Awaitable[T]]) -> Ended[T]:
    """Await a function in its own task, with a copy of this context, and return how it ended.

    It may cancel that task, or leave a cancel scope or a task group open there. If this is
    cancelled, so is the function, which has to end before this does.

    Args:
        tool: The tool, for the log.
        function: Runs it.
    """
    scope = anyio.CancelScope()
    ended: Ended[T] = Ended(error=asyncio.CancelledError())  # unless it ends otherwise

    async def work() -> None:
        try:
            with scope:
                ended.value = await function()
                ended.error = None
        except BaseException as error:  # noqa: BLE001
            if ended.error is None:
                logger.warning("The tool %s has left a cancel scope open: %s", tool, error)
            else:
                ended.error = error

    task = asyncio.create_task(work())
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        if task.done():
            raise
        scope.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        if isinstance(ended.error, asyncio.CancelledError):
            raise
    finally:
        task.cancel()  # if it has not ended, this coroutine is being closed
    return ended
