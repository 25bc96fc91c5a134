"""Processes, as /proc shows them."""

import os
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """Give the processes below one, from /proc."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {pid}} - found:
        found |= more
    return found


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def extension_process(extension: Path) -> int | None:
    """Give the process that an extension's service worker runs in; None when it has none now."""
    for browser in descendants(os.getpid()):
        words = command_line(browser)
        if f"--load-extension={extension}" in words and not any("--type=" in w for w in words):
            for child in descendants(browser):
                if "--extension-process" in command_line(child):
                    return child
            return None
    raise LookupError(f"no browser of ours runs the extension of {extension}")


def command_line(pid: int) -> list[str]:
    """Return the words a process was started with; none when it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
    # Renderers have all their words in one.
    return [word for each in words for word in each.split(" ")]
