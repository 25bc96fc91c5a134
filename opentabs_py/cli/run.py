"""Run a command's coroutine and end it cleanly on a signal."""

import asyncio
import atexit
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskStatus

from opentabs_py.cli.exit_codes import code_of_signal
from opentabs_py.errors import OpenTabsError

EXIT_WITHIN: Final = 0.3  # s; closing takes some of the 1 s in which the end of stdin ends a server
SERVER_CLOSES_WITHIN: Final = 10.0  # s; enough for browsers, on a busy machine too


def run(
    command: Callable[[], Awaitable[int]],
    *,
    interruptible: bool = True,
    close_within: float | None = None,
    on_signal: Callable[[int], bool] = lambda _number: False,
) -> int:
    """Run a coroutine function and return its exit code.

    SIGINT, SIGTERM and SIGHUP cancel it, so that everything it opened is closed; the exit code is
    then 128 + signal. For a command that normally ends by a signal (`serve`), it is 0: pass
    `interruptible=False`. If `on_signal`, called with the signal, returns true, the command ends by
    itself instead.

    Pass `close_within` for a command that serves Python tools: its process then ends even if
    threads or tasks of these tools do not, and at the latest that many seconds after a signal.
    Whatever else has to be closed must be closed within the coroutine.
    """
    uvloop = sys.platform != "win32"
    guarded = partial(
        _guard,
        command,
        interruptible=interruptible,
        close_within=close_within,
        on_signal=on_signal,
    )
    return anyio.run(guarded, backend_options={"use_uvloop": uvloop})


async def _guard(
    command: Callable[[], Awaitable[int]],
    *,
    interruptible: bool,
    close_within: float | None,
    on_signal: Callable[[int], bool],
) -> int:
    ended_by: int | None = None
    failure: OpenTabsError | None = None
    code = 0

    async def watch(
        scope: anyio.CancelScope, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        nonlocal ended_by
        with anyio.open_signal_receiver(*_signals()) as signals:
            task_status.started()
            async for number in signals:
                if on_signal(number):
                    continue
                ended_by = number
                # Pending operations of the browser's driver fail now, and nothing awaits them.
                asyncio.get_running_loop().set_exception_handler(_log_at_debug)
                # Otherwise, ending thousands of sessions mostly waits for garbage collection.
                gc.disable()
                scope.cancel()
                if close_within is not None:  # a tool may shield itself from the cancellation
                    _exit_after(close_within, code_of_signal(number) if interruptible else 0)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            await tasks.start(watch, scope)
            try:
                code = await command()
            except OpenTabsError as error:
                failure = error
        tasks.cancel_scope.cancel()
    if ended_by is not None:
        code = code_of_signal(ended_by) if interruptible else 0
    elif failure is not None:
        raise failure
    if close_within is not None:
        _exit_after(EXIT_WITHIN, code)
    return code


def _signals() -> Generator[signal.Signals]:
    """Yield the signals that end a command; `nohup` ignores SIGHUP."""
    yield from (signal.SIGINT, signal.SIGTERM)
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP


def _exit_after(seconds: float, code: int) -> None:
    """Exit, if Python has not, in spite of what it waits for: threads of executors, and tasks.

    Functions registered with `atexit` run as usual.
    """
    turn = threading.Lock()  # of the thread that runs them

    def end() -> None:
        if not turn.acquire(blocking=False):
            return  # Python is exiting
        atexit.unregister(turn.acquire)
        atexit._run_exitfuncs()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    atexit.register(turn.acquire)  # the last one, which runs first
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _log_at_debug(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    logging.getLogger(__name__).debug("While ending: %s", context.get("message"))
