"""End a browser's processes, if its driver does not."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    import psutil

END_WITHIN = 0.3  # s; a browser whose driver has died exits after 0.1
ROUNDS = 3  # a killed process may have just started another


async def end_browser(scratch: Path) -> None:
    """Wait until all of a browser's processes have exited; kill those that hang.

    A browser exits by itself when its driver dies, unless it hangs. Its child processes may outlive
    it for a moment and write to a profile that is about to be removed.

    Args:
        scratch: A directory that no other browser was started with.
    """
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(end_browser_blocking, scratch)


async def memory_of(scratch: Path) -> int:
    """Return the memory of a browser's processes, in bytes.

    Args:
        scratch: The directory that it was started with.
    """
    return await anyio.to_thread.run_sync(_memory, scratch)


def _memory(scratch: Path) -> int:
    import psutil  # noqa: PLC0415

    memory = 0
    for process, _ in _processes(scratch):
        with suppress(psutil.Error):  # it has exited
            memory += proportional_memory(process)
    return memory


def proportional_memory(process: "psutil.Process") -> int:
    """Return the memory of a process, in bytes.

    On Linux, pages that several processes share count in parts, because Chromium's processes share
    most of theirs; elsewhere, shared pages are not counted.
    """
    info = process.memory_full_info()
    return int(getattr(info, "pss", info.uss))


def end_browser_blocking(scratch: Path) -> None:
    """Do what `end_browser` does, in the calling thread; takes a second at most."""
    import psutil  # noqa: PLC0415 (takes 10 ms, and is needed only here)

    for _ in range(ROUNDS):
        left = list(_processes(scratch))
        if not left:
            return
        _wait(process for process, is_main in left if is_main)
        for process, _ in left:
            with suppress(psutil.Error):  # it has exited
                process.kill()
        _wait(process for process, _ in left)


def _wait(processes: "Iterable[psutil.Process]") -> None:
    """Wait until processes have exited, for END_WITHIN at most.

    `psutil.wait_procs` also waits until a zombie is reaped, which many containers never do.
    """
    import psutil  # noqa: PLC0415

    until = time.monotonic() + END_WITHIN
    for process in processes:
        with suppress(psutil.Error):  # timed out, or already gone
            process.wait(max(0.0, until - time.monotonic()))


def _processes(scratch: Path) -> "Iterator[tuple[psutil.Process, bool]]":
    """Yield each process that was started with the directory, and whether it is the main process.

    The others have a --type switch. A renderer's command line is a single string.
    """
    import psutil  # noqa: PLC0415

    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or ())
        if f"={scratch}{os.sep}" in words:
            yield process, "--type=" not in words
