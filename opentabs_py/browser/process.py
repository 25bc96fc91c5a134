"""The browser's own process, for when its driver does not end it."""

import os
import signal
import sys
from pathlib import Path

import anyio

END_WITHIN = 0.3  # s; a browser whose driver has died takes 0.1 to end


async def end_browser(extension: Path) -> None:
    """Wait until the browser that was started with an extension has ended; kill it if it does not.

    It ends by itself when its driver dies, unless it hangs. Elsewhere than on Linux, where no
    process can be held on to, nothing is done.

    Args:
        extension: A directory that no other browser was started with.
    """
    if sys.platform != "linux":
        return
    for pid in _processes():
        if not _is_browser(pid, extension):
            continue
        try:
            process = os.pidfd_open(pid)
        except OSError:
            continue  # it has just ended
        try:
            # Looked at again: between the two, the number may have become another's.
            if _is_browser(pid, extension) and not await _has_ended(process):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                await _has_ended(process)
        finally:
            os.close(process)


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _is_browser(pid: int, extension: Path) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    # Processes of its own are started with a type. They end with it.
    return os.fsencode(f"--load-extension={extension}") in words and not any(
        word.startswith(b"--type=") for word in words
    )


async def _has_ended(process: int) -> bool:
    with anyio.move_on_after(END_WITHIN, shield=True) as scope:
        await anyio.wait_readable(process)
    return not scope.cancelled_caught
