"""The process of a browser's extension, and its end."""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext

_PROC = Path("/proc")
_MARK = b"--extension-process"  # what Chromium starts the renderer of extensions with


def kill_extension_process(context: BrowserContext) -> None:
    """Kill the process that a browser's extension runs in, if there is one just now.

    Only a process that the browser itself names as its own, that descends from it, and that was
    started for extensions, is killed.

    Raises:
        NotImplementedError: This system shows processes otherwise than Linux.
    """
    if not _PROC.joinpath("self", "cmdline").exists():
        raise NotImplementedError('kill_service_worker("sigkill") needs /proc, as Linux has it')
    browser = context.browser
    assert browser is not None
    cdp: Any = browser.new_browser_cdp_session()
    try:
        told = cdp.send("SystemInfo.getProcessInfo")
    finally:
        cdp.detach()
    processes: list[tuple[str, int]] = [(each["type"], each["id"]) for each in told["processInfo"]]
    [parent] = [pid for type_, pid in processes if type_ == "browser"]
    for type_, pid in processes:
        if type_ == "renderer":
            with suppress(OSError), _held(pid) as process:  # an OSError: it has just ended
                if parent in _ancestors(pid) and _MARK in _read(pid, "cmdline"):
                    signal.pidfd_send_signal(process, signal.SIGKILL)


@contextmanager
def _held(pid: int) -> Generator[int]:
    """A process itself, whatever becomes of its number while it is looked at."""
    process = os.pidfd_open(pid)
    try:
        yield process
    finally:
        os.close(process)


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        # After the name, which stands in brackets and may hold anything.
        pid = int(_read(pid, "stat").rpartition(b")")[2].split()[1])
        yield pid


def _read(pid: int, name: str) -> bytes:
    return (_PROC / str(pid) / name).read_bytes()
