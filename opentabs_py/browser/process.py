"""The browser's own process, for when nobody else ends it."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio

END_WITHIN = 0.3  # s; a browser whose driver has died takes 0.1 to end


@dataclass(frozen=True, slots=True)
class BrowserProcess:
    """A running browser."""

    _descriptor: int

    async def end(self) -> None:
        """Wait until it has ended, which it is about to, and kill it if it does not.

        To be called once.
        """
        if sys.platform != "linux":
            return
        try:
            if not await self._has_ended():
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
                await self._has_ended()
        finally:
            os.close(self._descriptor)

    async def _has_ended(self) -> bool:
        with anyio.move_on_after(END_WITHIN, shield=True) as scope:
            await anyio.wait_readable(self._descriptor)
        return not scope.cancelled_caught


def browser_process(profile: Path) -> BrowserProcess | None:
    """Return the running browser of a profile.

    None where it cannot be told from other processes, as on systems other than Linux: there it is
    left to its driver to end it.
    """
    if sys.platform != "linux":
        return None
    try:
        # Chromium's mark of who uses the profile: HOST-PID.
        pid = int((profile / "SingletonLock").readlink().name.rpartition("-")[2])
        descriptor = os.pidfd_open(pid)
    except (OSError, ValueError):
        return None
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    if f"--user-data-dir={profile}".encode() in words:
        return BrowserProcess(descriptor)
    os.close(descriptor)  # in another namespace the number is another process's
    return None
