"""The processes of this machine, and how they are related."""

import os
from collections.abc import Iterable
from pathlib import Path

import psutil


def descendants(pid: int) -> set[int]:
    """Return the descendants of a process."""
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.NoSuchProcess:
        return set()


def is_alive(pid: int) -> bool:
    """Return whether a process is running; a zombie is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def alive(pids: Iterable[int]) -> dict[int, str]:
    """Return the running ones of these processes, with the beginning of their command lines."""
    return {pid: " ".join(command_line(pid))[:300] for pid in pids if is_alive(pid)}


def browser_process(extension: Path) -> int:
    """Return the main process of our browser that runs an extension."""
    for pid in descendants(os.getpid()):
        words = command_line(pid)
        if f"--load-extension={extension}" in words and not any("--type=" in w for w in words):
            return pid
    raise LookupError(f"no browser of ours runs the extension of {extension}")


def extension_process(extension: Path) -> int | None:
    """Return the process of an extension's service worker; None if it has none now."""
    for child in descendants(browser_process(extension)):
        if "--extension-process" in command_line(child):
            return child
    return None


def is_browser(pid: int) -> bool:
    """Return whether this is the main process of a Chromium with our extension."""
    words = command_line(pid)
    has_extension = any(word.startswith("--load-extension=") for word in words)
    return has_extension and not any(word.startswith("--type=") for word in words)


def command_line(pid: int) -> list[str]:
    """Return the arguments of a process; empty if it is gone."""
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return []
    # Renderers have all their arguments in one string.
    return [word for each in words for word in each.split(" ")]
