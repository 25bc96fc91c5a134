"""Running a command's coroutine, and ending it cleanly on a signal."""

import signal
import sys
from collections.abc import Awaitable, Callable

import anyio

from opentabs_py.errors import OpenTabsError


def run(command: Callable[[], Awaitable[int]], *, interruptible: bool = True) -> int:
    """Run a coroutine function; give its exit code.

    SIGINT and SIGTERM cancel it, so that all it has opened is closed, and give 128 + signal.
    A command that has an end of its own for them (`serve`) gives 0: `interruptible=False`.
    """
    uvloop = sys.platform != "win32"
    return anyio.run(_guard, command, interruptible, backend_options={"use_uvloop": uvloop})


async def _guard(command: Callable[[], Awaitable[int]], interruptible: bool) -> int:
    ended_by: int | None = None
    failure: OpenTabsError | None = None
    code = 0

    async def watch(scope: anyio.CancelScope) -> None:
        nonlocal ended_by
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                ended_by = number
                scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(watch, scope)
            try:
                code = await command()
            except OpenTabsError as error:
                failure = error
        tasks.cancel_scope.cancel()
    if ended_by is not None:
        return 128 + ended_by if interruptible else 0
    if failure is not None:
        raise failure
    return code
