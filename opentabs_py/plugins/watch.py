"""Telling when the files of plugins change."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
from watchfiles import (
    Change,
    awatch,  # pyright: ignore[reportUnknownVariableType]  # of its option that takes trio's events
)

logger = logging.getLogger(__name__)

QUIET = 50  # ms without another change, after which a build is taken to be through
LATEST = 400  # ms after the first change, at which it is told though others follow
LOOK_SOON = 200  # ms after a directory is watched: what came into it before that is seen then
LOOK_AGAIN = 10  # times as long, the same on a file system without notifications

Stat = tuple[str, int, int, int]


async def watch_plugins(
    directories: Sequence[Path], on_change: Callable[[], Awaitable[object]]
) -> None:
    """Call a function now, and after each change of plugins' files, until cancelled.

    What counts is `package.json` and the scripts and JSON in `dist`. These may come and go, as
    may the directories. A change that comes while the function runs is told after it.
    """
    roots = [directory.absolute() for directory in directories]
    seen = await anyio.to_thread.run_sync(_state, roots)
    await on_change()  # what changed since they were read last
    async with aclosing(_look(roots)) as looks:
        async for is_told in looks:
            # Taken before the files are read: what is written meanwhile is a change again.
            state = await anyio.to_thread.run_sync(_state, roots)
            if is_told or state != seen:
                seen = state
                await on_change()


async def _look(roots: Sequence[Path]) -> AsyncGenerator[bool]:
    """Say when to look for changes; True when there are some for sure."""
    remade = {*roots, *(root / "dist" for root in roots)}

    def matters(_change: Change, path: str) -> bool:
        return _matters(Path(path), roots)

    while True:
        places = _places(roots)
        notifications = awatch(
            *places,
            watch_filter=matters,
            debounce=LATEST,
            step=QUIET,
            rust_timeout=LOOK_SOON,
            yield_on_timeout=True,
            # Not all below: that is `node_modules`, and a watch for each of its directories.
            recursive=False,
        )
        try:
            async with aclosing(notifications):
                silences = 0
                async for changes in notifications:
                    if changes or silences % LOOK_AGAIN == 0:
                        yield bool(changes)
                    silences = 1 if changes else silences + 1
                    if changes and any(Path(path) in remade for _, path in changes):
                        break  # a directory made anew is watched no more
                    if silences % LOOK_AGAIN == 1 and _places(roots) != places:
                        break
        except (OSError, RuntimeError) as error:
            # One went while it was to be watched, or the system has no watch left to give.
            logger.debug("Plugins cannot be watched: %r", error)
            await anyio.sleep(LOOK_SOON / 1000)
            yield False


def _places(roots: Sequence[Path]) -> list[Path]:
    """Give the directories to be watched; for one that is not there, the nearest that is."""
    wanted = [*roots, *(root / "dist" for root in roots)]
    nearest = (next(p for p in (place, *place.parents) if p.is_dir()) for place in wanted)
    return list(dict.fromkeys(nearest))


def _matters(path: Path, roots: Sequence[Path]) -> bool:
    return any(
        path in (root, root / "dist", root / "package.json") or path.parent == root / "dist"
        for root in roots
    )


def _state(roots: Sequence[Path]) -> frozenset[Stat]:
    return frozenset(stat for root in roots for stat in _stats(root))


def _stats(root: Path) -> Iterator[Stat]:
    scripts = (path for path in (root / "dist").rglob("*") if path.suffix in (".js", ".json"))
    for path in (root / "package.json", *scripts):
        try:
            stat = path.stat()
        except OSError:
            continue
        yield str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino
