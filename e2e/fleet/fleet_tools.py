"""Python tools for the workers of a fleet; each run leaves a line in a file."""

import os
from pathlib import Path

import anyio

from opentabs_py import Progress, tool


def write(line: str) -> None:
    """Add a line to the file."""
    with Path(os.environ["RUNS"]).open("a") as runs:
        runs.write(f"{line}\n")


def exists(file: str) -> bool:
    """Return whether a file exists."""
    return Path(file).exists()


@tool
async def work(
    key: str, progress: Progress, seconds: float = 0, reports: int = 0, until: str = ""
) -> str:
    """Work for some seconds or until a file exists, and report it."""
    write(f"began {key}")
    try:
        for number in range(reports):
            progress.report(f"{number}")
            await anyio.sleep(seconds / reports)
        if not reports:
            await anyio.sleep(seconds)
        while until and not exists(until):  # noqa: ASYNC110 (another process makes it)
            await anyio.sleep(0.02)
    except BaseException:
        write(f"cancelled {key}")
        raise
    return key


@tool
def big(size: int) -> str:
    """Return a text of this size."""
    return "0123456789abcdef" * (size // 16)


@tool
def who() -> int:
    """Return the id of the process that this runs in."""
    return os.getpid()
