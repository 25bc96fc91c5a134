"""Run a command's coroutine and end it cleanly on a signal."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from anyio.abc import TaskStatus

from opentabs_py.errors import OpenTabsError

SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if sys.platform != "win32" else []))


def run(
    command: Callable[[], Awaitable[int]],
    *,
    interruptible: bool = True,
    on_signal: Callable[[], bool] = lambda: False,
) -> int:
    """Run a coroutine function and return its exit code.

    SIGINT and SIGTERM cancel it, so that everything it opened is closed; the exit code is then
    128 + signal. For a command that normally ends by a signal (`serve`), it is 0: pass
    `interruptible=False`. If `on_signal` returns true, the command ends by itself instead.
    """
    uvloop = sys.platform != "win32"
    guarded = partial(_guard, command, interruptible=interruptible, on_signal=on_signal)
    return anyio.run(guarded, backend_options={"use_uvloop": uvloop})


async def _guard(
    command: Callable[[], Awaitable[int]], *, interruptible: bool, on_signal: Callable[[], bool]
) -> int:
    ended_by: int | None = None
    failure: OpenTabsError | None = None
    code = 0

    async def watch(
        scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        nonlocal ended_by
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                if on_signal():
                    continue
                ended_by = number
                # Pending operations of the browser's driver fail now, and nothing awaits them.
                asyncio.get_running_loop().set_exception_handler(_log_at_debug)
                scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            await tasks.start(watch, scope)
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


def _log_at_debug(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    logging.getLogger(__name__).debug("While ending: %s", context.get("message"))
