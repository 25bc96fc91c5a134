"""Contexts in a task of their own, so that other tasks can enter and leave them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import anyio

from opentabs_py import stacks
from opentabs_py.calling.loop import loop_context


class OwnTask:
    """A task that enters contexts, and stays in them until another task ends it.

    The task that enters an anyio task group has to leave it. But many programs enter and leave a
    context in different tasks, such as the fixtures of pytest-asyncio. As with a task group, an
    error of the contexts' own cancels the task that has entered them, and is raised when it leaves.

    Args:
        enter: Enters the contexts. All of them are left if it fails.
    """

    def __init__(self, enter: Callable[[AsyncExitStack], Awaitable[None]]) -> None:
        self.stack = AsyncExitStack()
        self._enter = enter
        self._scope = anyio.CancelScope()
        self._leaving = anyio.Event()
        self._user: asyncio.Task[object] | None = None  # while it is in the contexts
        self._has_cancelled = False  # that task
        self._entered: asyncio.Future[None]  # both set by `begin`
        self._task: asyncio.Task[None]

    async def begin(self) -> None:
        """Enter the contexts; if this is cancelled, leave them.

        Raises:
            Exception: What entering them raised.
        """
        loop = asyncio.get_running_loop()
        self._entered = loop.create_future()
        self._task = loop.create_task(self._run(), name="OpenTabs", context=loop_context())
        await self._wait(self._entered)
        if self._task.done():
            self._task.result()
        self._user = asyncio.current_task()
        self._task.add_done_callback(self._handle_end)

    async def end(self) -> None:
        """Leave the contexts; if this is cancelled, with cancellations in each of them.

        Raises:
            Exception: What they raised, now or before.
        """
        user, self._user, current = self._user, None, asyncio.current_task()
        if self._has_cancelled and current is not None and current is user:
            current.uncancel()
        self._leaving.set()
        await self._wait(self._task)
        self._task.result()

    async def _run(self) -> None:
        with self._scope:
            try:
                await self._enter(self.stack)
                self._entered.set_result(None)
                await self._leaving.wait()
            finally:
                # Exceptions are not passed on: task groups would wrap them in groups.
                await stacks.close(self.stack)

    async def _wait(self, what: "asyncio.Future[None]") -> None:
        """Wait for something, or the end of the task, or cancel that and wait for its end."""
        try:
            await asyncio.wait({what, self._task}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._scope.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({self._task})
            self._task.result()
            raise

    def _handle_end(self, task: "asyncio.Task[None]") -> None:
        if self._user is not None and not task.cancelled() and task.exception() is not None:
            self._has_cancelled = self._user.cancel()
