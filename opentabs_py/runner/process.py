"""Programs that run tests, each in a session of its own."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from types import MappingProxyType
from typing import Final

import anyio
from anyio.abc import Process

from opentabs_py.core.runner import STARTED_BY
from opentabs_py.runner.report_guard import HELD

PYTEST: Final = (sys.executable, str(Path(__file__).with_name("run_pytest.py")))
WRITTEN_WITHIN: Final = 30.0  # s; for 80 MiB at most
STOP_WITHIN: Final = 10.0  # s; pytest closes its browser in half a second
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_AT_ONCE: Final = 256 * 1024  # bytes
_REST_WITHIN: Final = 1.0  # s; what a program has sent before its end is there already


async def run_program(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] = _NOTHING,
    pass_fds: Sequence[int] = (),
) -> int:
    """Run a program to its end, and return its exit code.

    When cancelled, interrupt it as Ctrl-C would, and wait for it. It runs in its own session, so a
    terminal's Ctrl-C reaches only us, and reaches it only once.
    """
    process = await anyio.open_process(
        command,
        stdin=None,
        stdout=None,
        stderr=None,
        start_new_session=True,
        pass_fds=pass_fds,
        env={**os.environ, STARTED_BY: str(os.getpid()), **environment},
    )
    try:
        return await process.wait()
    finally:
        await _stop(process)


async def run_to_report(command: Sequence[str]) -> int:
    """Run pytest as `run_program` does, and wait until its report is written.

    If pytest has died, another process writes it; see `report_guard`.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        try:
            return await run_program(command, environment={HELD: str(number)}, pass_fds=[number])
        finally:
            theirs.close()
            with anyio.move_on_after(WRITTEN_WITHIN, shield=True):
                await read_socket(ours, lambda _: None)


async def read_program(command: Sequence[str], *, longest: int) -> tuple[int, str]:
    """Run a program to its end; return its exit code, and the end of what it printed.

    Args:
        command: The program and its arguments.
        longest: How much of its output is kept, in bytes.
    """
    process = await anyio.open_process(
        command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )
    assert process.stdout is not None
    output = bytearray()
    try:
        async for part in process.stdout:
            output += part
            del output[:-longest]
        return await process.wait(), output.decode(errors="replace")
    finally:
        await _stop(process)
        with anyio.CancelScope(shield=True):
            await process.stdout.aclose()


async def _stop(process: Process) -> None:
    if process.returncode is None:
        _signal(process, signal.SIGINT)
        with anyio.move_on_after(STOP_WITHIN, shield=True):
            await process.wait()
    if process.returncode is None:
        _signal(process, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.wait()


def _signal(process: Process, number: int) -> None:
    with suppress(ProcessLookupError):  # it has ended, and we do not know that yet
        os.killpg(process.pid, number)


async def read_socket(end: socket.socket, handle: Callable[[bytes], None]) -> None:
    """Pass on what arrives, until the other end is closed."""
    end.setblocking(False)
    while True:
        await anyio.wait_readable(end)
        try:
            data = end.recv(_AT_ONCE)
        except BlockingIOError:
            continue
        except ConnectionError:
            return
        if not data:
            return
        handle(data)


async def run_with_socket(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    ends: tuple[socket.socket, socket.socket],
    handle: Callable[[bytes], None],
) -> int:
    """Run a program that sends us bytes, and return its exit code; see `run_program`.

    Args:
        command: The program and its arguments.
        environment: What is added to its environment.
        ends: Our end, and the one that the program gets and closes.
        handle: Called with what arrives.
    """
    ours, theirs = ends
    code = 0
    async with anyio.create_task_group() as tasks:

        async def run() -> None:
            nonlocal code
            try:
                code = await run_program(
                    command, environment=environment, pass_fds=[theirs.fileno()]
                )
            finally:
                theirs.close()
                rest.deadline = anyio.current_time() + _REST_WITHIN

        rest = anyio.CancelScope()
        tasks.start_soon(run)
        with rest:
            await read_socket(ours, handle)
    return code


def send_now(end: socket.socket, line: bytes) -> None:
    """Send a short line, or lose it: the other end may be gone, or busy with something else."""
    with suppress(OSError):
        end.send(line, socket.MSG_DONTWAIT)
