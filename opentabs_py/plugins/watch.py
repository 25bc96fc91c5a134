"""Watching for changes of plugins, and of what says where they are."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

import anyio
from watchfiles import (
    Change,
    awatch,  # pyright: ignore[reportUnknownVariableType]  # of its option that takes trio's events
)

from opentabs_py.plugins.sources import Sources

logger = logging.getLogger(__name__)

QUIET = 50  # ms without another change, after which a build is taken to be through
LATEST = 400  # ms after the first change, at which it is told though others follow
LOOK_SOON = 200  # ms after a directory is watched: what came into it before that is seen then
LOOK_AGAIN = 10  # times as long, the same on a file system without notifications

Stat = tuple[str, int, int, int]


async def watch_plugins(
    find: Callable[[], Sources], on_change: Callable[[], Awaitable[object]]
) -> None:
    """Call a function now, and after each change of what is watched, until cancelled.

    What counts is `package.json` and the scripts and JSON in `dist` of each plugin, the
    subfolders of folders of plugins, and settings files. These may come and go, as may the
    directories they are in. A change that comes while the function runs is told after it.

    Args:
        find: Returns what is to be watched; asked again after each change.
        on_change: Takes a change.
    """
    seen = await anyio.to_thread.run_sync(_state, find)
    await on_change()  # what changed since they were read last
    async with aclosing(_look(find)) as looks:
        async for is_told in looks:
            # Taken before the files are read: what is written meanwhile is a change again.
            state = await anyio.to_thread.run_sync(_state, find)
            if is_told or state != seen:
                seen = state
                await on_change()


async def _look(find: Callable[[], Sources]) -> AsyncGenerator[bool]:
    """Say when to look for changes; True when there are some for sure."""
    while True:
        watched = _Watched(find())
        notifications = awatch(
            *watched.places,
            watch_filter=watched.matters,
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
                    if changes and any(watched.may_move(Path(path)) for _, path in changes):
                        break  # a directory made anew is watched no more
                    if silences % LOOK_AGAIN == 1 and _Watched(find()).places != watched.places:
                        break
        except (OSError, RuntimeError) as error:
            # One went while it was to be watched, or the system has no watch left to give.
            logger.debug("Plugins cannot be watched: %r", error)
            await anyio.sleep(LOOK_SOON / 1000)
            yield False


class _Watched:
    """What some sources have to be watched for.

    Attributes:
        places: The directories to be watched; for one that is not there, the nearest that is.
    """

    def __init__(self, sources: Sources) -> None:
        roots = {each.absolute() for each in sources.candidates()}
        self._dists = {root / "dist" for root in roots}
        self._packages = {root / "package.json" for root in roots}
        self._folders = {each.absolute() for each in sources.folders}
        self._files = {each.absolute() for each in sources.files}
        self._directories = roots | self._dists | self._folders
        wanted = self._directories | {file.parent for file in self._files}
        self.places = sorted({next(filter(Path.is_dir, (p, *p.parents))) for p in wanted})

    def matters(self, _change: Change, path: str) -> bool:
        """Return whether a change of a file may be one of what is served."""
        file = Path(path)
        return self.may_move(file) or file in self._packages or file.parent in self._dists

    def may_move(self, path: Path) -> bool:
        """Return whether a change of a path may be one of what has to be watched."""
        return path in self._directories or path in self._files or path.parent in self._folders


def _state(find: Callable[[], Sources]) -> frozenset[Stat]:
    sources = find()
    files = [*sources.files]
    for root in sources.candidates():
        scripts = (path for path in (root / "dist").rglob("*") if path.suffix in (".js", ".json"))
        files += (root / "package.json", *scripts)
    return frozenset(_stats(files))


def _stats(files: Iterable[Path]) -> Iterator[Stat]:
    for path in files:
        try:
            stat = path.stat()
        except OSError:
            continue
        yield str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino
