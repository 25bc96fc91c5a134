"""Watch a plugin's source and its tests."""

import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint
from watchfiles import (
    Change,
    DefaultFilter,
    PythonFilter,
    awatch,  # pyright: ignore[reportUnknownVariableType]  # because of its option for trio's events
)

from opentabs_py.core.plugins.file_names import BUILT_ADAPTER, BUILT_TOOLS, DIST
from opentabs_py.plugins.freshness import build_inputs, source_maps

_QUIET = 20  # ms without a change before changes are reported
_AT_MOST = 100  # ms before changes are reported even while more follow
_LOOK_AGAIN = 500  # ms between looks whether the directory is still the same
_NO_SOURCE = frozenset({DIST, "node_modules", "__pycache__", "test-results"})
# The files in a plugin's directory that tests depend on; reports that pytest writes are not.
_SOURCE_DIRS = frozenset({"src", "tests", "playground"})
_SOURCE_SUFFIXES = frozenset({".py", ".ts", ".js", ".mjs", ".json", ".toml", ".ini", ".cfg"})
# Knows the names of what editors write beside a file.
_is_kept = DefaultFilter(ignore_dirs=())  # of which the plugin's own path may have some
SHOWN = 3  # names of changed files


class SourceChanges:
    """The files that have changed since the last call of `next`.

    Attributes:
        inputs: The files that the plugin's last build was made of.
    """

    def __init__(self) -> None:
        self.inputs: frozenset[str] = frozenset()
        self._files: set[str] = set()
        self._came = anyio.Event()

    def add(self, files: Iterable[str]) -> None:
        """Record changed files."""
        self._files.update(files)
        self._came.set()

    async def next(self) -> list[str]:
        """Wait for changes, and return the files' paths relative to the plugin's directory.

        A cancelled wait loses no changes.
        """
        await self._came.wait()
        files, self._files, self._came = self._files, set(), anyio.Event()
        return sorted(files)


@asynccontextmanager
async def watch_source(directory: Path) -> AsyncGenerator[SourceChanges]:
    """Watch a plugin's source and its tests from now on.

    Files outside its directory count if its last build was made of them. A build that is deleted
    counts as a change of `dist`. If the directory is removed, all that is there when it comes back
    has changed.
    """
    changes = SourceChanges()
    watch = _Watch(Path(await anyio.Path(directory).resolve()), changes)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await checkpoint()  # let the watch start before waiting for the first change
        yield changes
        tasks.cancel_scope.cancel()


class _Watch:
    def __init__(self, root: Path, changes: SourceChanges) -> None:
        self._root = root
        self._changes = changes
        self._built = {root / DIST, root / BUILT_ADAPTER, root / BUILT_TOOLS}
        self._maps: dict[Path, int] = {}  # when the source maps that were read were written
        self._outside: dict[Path, int] = {}  # the same of inputs outside the directory

    async def run(self) -> None:
        is_new = False
        while True:
            try:
                await self._run_until_removed(is_new=is_new)
            except* (OSError, RuntimeError):
                pass  # it is not there, may not be read, or a name in it is not UTF-8
            is_new = True
            await anyio.sleep(_LOOK_AGAIN / 1000)

    async def _run_until_removed(self, *, is_new: bool) -> None:
        identity = _identity(self._root)
        notifications = awatch(
            self._root,
            watch_filter=self._matters,
            debounce=_AT_MOST,
            step=_QUIET,
            rust_timeout=_LOOK_AGAIN,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        async with aclosing(notifications):
            async for changed in notifications:
                files = {Path(path) for _, path in changed}
                self._read_inputs()
                outside = self._changed_outside()
                new = self._all_files() if is_new else set[Path]()
                self._report(files - {self._root} | outside | new)
                is_new = False
                if self._root in files or _identity(self._root) != identity:
                    return

    def _read_inputs(self) -> None:
        """Look which files the last build was made of, if there was another build."""
        maps = _times(source_maps(self._root))
        if maps != self._maps:
            self._maps = maps
            inputs = build_inputs(self._root)
            self._changes.inputs = frozenset(map(self._name, inputs))
            built = _times([self._root / DIST])[self._root / DIST]
            times = _times(each for each in inputs if not each.is_relative_to(self._root))
            self._outside = {
                # One that is newer than the build was not among the inputs that were watched then.
                file: self._outside.get(file, 0 if time > built else time)
                for file, time in times.items()
            }

    def _changed_outside(self) -> set[Path]:
        before, self._outside = self._outside, _times(self._outside)
        return {file for file, time in self._outside.items() if before[file] != time}

    def _matters(self, change: Change, path: str) -> bool:
        file = Path(path)
        if file in self._built:
            return change is Change.deleted and not file.exists()
        if file == self._root:  # it is also reported when its times or its mode change
            return change is Change.deleted
        parts = file.relative_to(self._root).parts
        hidden = any(part in _NO_SOURCE or part.startswith(".") for part in parts)
        return not hidden and _is_kept(change, path)

    def _report(self, files: Iterable[Path]) -> None:
        names = [DIST if each in self._built else self._name(each) for each in files]
        if names:
            self._changes.add(names)

    def _name(self, file: Path) -> str:
        return os.path.relpath(file, self._root)

    def _all_files(self) -> set[Path]:
        return {each for each in self._root.glob("*") if self._matters(Change.added, str(each))}


def _times(files: Iterable[Path]) -> dict[Path, int]:
    """Return when files were written; 0 for one that cannot be read."""
    found: dict[Path, int] = {}
    for file in files:
        try:
            found[file] = file.stat().st_mtime_ns
        except OSError:
            found[file] = 0
    return found


async def python_changes(directories: Sequence[Path]) -> AsyncGenerator[list[str]]:
    """Yield the names of changed Python files in directories.

    If a directory is replaced, as by `git checkout`, all that is in it then has changed.
    """
    known = [*map(_identity, directories)]
    while True:
        try:
            if (now := [*map(_identity, directories)]) != known:
                known = now
                yield sorted(file.name for each in directories for file in each.glob("*.py"))
            notifications = awatch(
                *directories,
                watch_filter=PythonFilter(),
                recursive=False,  # a project has thousands of directories, most of them of others
                rust_timeout=_LOOK_AGAIN,
                yield_on_timeout=True,
            )
            async with aclosing(notifications):
                async for changed in notifications:
                    if changed:
                        yield sorted(Path(path).name for _, path in changed)
                    if [*map(_identity, directories)] != known:
                        break
        except OSError:
            # What is not there or may not be read cannot be watched, so look again whether it is
            # back.
            await anyio.sleep(_LOOK_AGAIN / 1000)


def _identity(directory: Path) -> tuple[int, int]:
    """Return what tells a directory from one that replaces it."""
    stat = directory.stat()
    return stat.st_dev, stat.st_ino


async def next_source(changes: SourceChanges) -> list[str]:
    """Wait until files change that the plugin or its tests depend on, and return their paths."""
    while True:
        files = await changes.next()
        if files := [each for each in files if is_source(each) or each in changes.inputs]:
            return files


def is_source(file: str) -> bool:
    """Return whether tests depend on a file in a plugin's directory, rather than write it."""
    path = Path(file)
    if len(path.parts) == 1:
        return path.suffix in _SOURCE_SUFFIXES
    return path.parts[0] in _SOURCE_DIRS


def changed_text(files: Sequence[str]) -> str:
    """Return one line that says which files changed."""
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return f"{', '.join(files[:SHOWN])}{more} changed"
