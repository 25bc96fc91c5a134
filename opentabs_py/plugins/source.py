"""Watching what a plugin is built from, and its tests."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]

_QUIET = 20  # ms without a change, after which what was changed is told
_AT_MOST = 100  # ms; the same while changes go on
_NO_SOURCE = frozenset({"dist", "node_modules", "__pycache__", "test-results"})


class SourceChanges:
    """The files that have changed since they were asked for last."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._came = anyio.Event()

    def add(self, files: Iterable[str]) -> None:
        """Note files that have changed."""
        self._files.update(files)
        self._came.set()

    async def next(self) -> list[str]:
        """Wait until there are some, and give them, by their paths in the plugin's directory.

        A wait that is cancelled takes none away.
        """
        await self._came.wait()
        files, self._files, self._came = self._files, set(), anyio.Event()
        return sorted(files)


@asynccontextmanager
async def watch_source(directory: Path) -> AsyncGenerator[SourceChanges]:
    """Give the changes of a plugin's source from now on, and of its tests."""
    root = Path(await anyio.Path(directory).resolve())
    changes = SourceChanges()

    def is_source(_change: Change, path: str) -> bool:
        parts = Path(path).relative_to(root).parts
        return not any(part in _NO_SOURCE or part.startswith(".") for part in parts)

    async def watch() -> None:
        async for files in awatch(
            root,
            watch_filter=is_source,
            debounce=_AT_MOST,
            step=_QUIET,
            ignore_permission_denied=True,
        ):
            changes.add(str(Path(path).relative_to(root)) for _, path in files)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await checkpoint()  # it watches before it waits for the first change
        yield changes
        tasks.cancel_scope.cancel()
