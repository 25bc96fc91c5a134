"""Watch plugins, and the settings files and folders that determine them."""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path

import anyio
from watchfiles import (
    Change,
    awatch,  # pyright: ignore[reportUnknownVariableType]  # because of its option for trio's events
)

from opentabs_py.core.plugins.file_names import DIST, PACKAGE
from opentabs_py.plugins.files import can_read
from opentabs_py.plugins.folders import Sources

logger = logging.getLogger(__name__)

QUIET = 50  # ms without another change, after which a build counts as finished
LATEST = 400  # ms after the first change, when it is reported even if others follow
LOOK_SOON = 200  # ms after a watch starts: finds what was added before that
LOOK_AGAIN = 10  # times LOOK_SOON: finds changes on file systems without notifications

Stat = tuple[str, int, int, int]


async def watch_plugins(
    find: Callable[[], Sources], on_change: Callable[[], Awaitable[object]]
) -> None:
    """Call a function now, and after each relevant change, until cancelled.

    Relevant are each plugin's `package.json` and the scripts and JSON in its `dist`, the
    subfolders of plugin folders, and settings files. All of these may come and go, as may their
    parent directories. After a change during a call, the function is called again.

    Args:
        find: Returns what to watch; called again after each change.
        on_change: Called after each change.
    """
    seen = await anyio.to_thread.run_sync(_state, find)
    await on_change()  # for changes since they were last read
    async with aclosing(_look(find)) as looks:
        async for is_notified in looks:
            # Taken before the files are read, so that later writes count as another change.
            state = await anyio.to_thread.run_sync(_state, find)
            if is_notified or state != seen:
                seen = state
                await on_change()


async def _look(find: Callable[[], Sources]) -> AsyncGenerator[bool]:
    """Yield whenever it is time to look for changes; True if there certainly are some."""
    while True:
        try:
            watched = _Watched(find())
            notifications = awatch(
                *watched.places,
                watch_filter=watched.matters,
                debounce=LATEST,
                step=QUIET,
                rust_timeout=LOOK_SOON,
                yield_on_timeout=True,
                # Not recursively: `node_modules` would need a watch for each of its directories.
                recursive=False,
            )
            async with aclosing(notifications):
                silences = 0
                async for changes in notifications:
                    if changes or silences % LOOK_AGAIN == 0:
                        yield bool(changes)
                    silences = 1 if changes else silences + 1
                    if changes and any(watched.may_move(Path(path)) for _, path in changes):
                        break  # a directory that was recreated is no longer watched
                    if silences % LOOK_AGAIN == 1 and _Watched(find()).places != watched.places:
                        break
        except* (OSError, RuntimeError, ValueError) as errors:
            # A directory disappeared since then, a name is not UTF-8, or the system has run out of
            # watches.
            logger.debug("Cannot watch the plugins: %r", errors)
            await anyio.sleep(LOOK_SOON / 1000)
            yield False


class _Watched:
    """What to watch for some sources.

    Attributes:
        places: The directories to watch; for one that is missing or cannot be read, its nearest
            parent that can.
    """

    def __init__(self, sources: Sources) -> None:
        roots = {each.absolute() for each in sources.candidates()}
        self._dists = {root / DIST for root in roots}
        self._packages = {root / PACKAGE for root in roots}
        self._folders = {each.absolute() for each in sources.folders}
        self._files = {each.absolute() for each in sources.files}
        self._directories = roots | self._dists | self._folders
        wanted = self._directories | {file.parent for file in self._files}
        # Not even the root can be read while this process has too many files open.
        self.places = sorted({next(filter(can_read, (p, *p.parents)), p) for p in wanted})

    def matters(self, _change: Change, path: str) -> bool:
        """Return whether a change to a file may affect what is served."""
        file = Path(path)
        return self.may_move(file) or file in self._packages or file.parent in self._dists

    def may_move(self, path: Path) -> bool:
        """Return whether a change to a path may affect what must be watched."""
        return path in self._directories or path in self._files or path.parent in self._folders


def _state(find: Callable[[], Sources]) -> frozenset[Stat]:
    sources = find()
    files = [*sources.files]
    for root in sources.candidates():
        files.append(root / PACKAGE)
        # Not `rglob`, which raises an error if a build removes a directory at that moment.
        for directory, _, names in os.walk(root / DIST):
            files += [Path(directory, name) for name in names if name.endswith((".js", ".json"))]
    return frozenset(_stats(files))


def _stats(files: Iterable[Path]) -> Iterator[Stat]:
    for path in files:
        try:
            stat = path.stat()
        except OSError:
            continue
        yield str(path), stat.st_mtime_ns, stat.st_size, stat.st_ino
