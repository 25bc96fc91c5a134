"""Read files from a plugin's directory, and from nowhere else.

Plugins are written by others: their directory may contain a link to a private key, a FIFO without
a writer, or an endless device.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import ELOOP, ENOENT, ENOTDIR
from pathlib import Path, PurePath
from typing import IO

from opentabs_py.errors import PluginError

_PART = 256 * 1024  # bytes, read at a time; the memory of a larger part would be new each time
if sys.platform == "win32":  # which has no FIFOs among its files, and does not open folders
    _FILE = os.O_RDONLY | os.O_BINARY
else:
    # Non-blocking: opening a FIFO would wait for a writer.
    _FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    _FOLDER = os.O_RDONLY | os.O_DIRECTORY


@dataclass(frozen=True, slots=True)
class Script:
    """A script as it was when its plugin was loaded; its content stays on disk.

    Attributes:
        directory: The plugin's directory.
        name: The file's path relative to the directory.
        limit: The largest size allowed, in bytes.
        digest: The SHA-256 of its content, in hex.
    """

    directory: Path
    name: str
    limit: int = field(compare=False)
    digest: str

    def parts(self) -> Iterator[bytes]:
        """Yield the content in parts, without holding it whole.

        Raises:
            PluginError: The file has changed since the plugin was loaded, which may be known only
                at the end; or it cannot be read.
        """
        digest = hashlib.sha256()
        with suppress(FileNotFoundError):
            for part in _read_parts(self.directory, self.name, limit=self.limit):
                digest.update(part)
                yield part
        if digest.hexdigest() != self.digest:
            raise PluginError(
                f"{self.directory / self.name} has changed since the plugin was loaded. Load the "
                "plugin again."
            )

    def read(self) -> bytes:
        """Return the content; for the errors, see `parts`."""
        return b"".join(self.parts())


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes with a file, as the file system reports it."""

    modified: int  # ns
    changed: int  # ns; also set by whoever sets `modified` back
    size: int
    inode: int


def check_readable(directory: Path) -> None:
    """Check that a directory can be listed and searched.

    Raises:
        OSError: It cannot, or is not a directory.
    """
    with os.scandir(directory):
        os.stat(f"{directory}/.")  # noqa: PTH116 (`Path` drops the dot, which needs the search)


def can_read(directory: Path) -> bool:
    """Return whether a path is a directory that can be listed and searched."""
    try:
        check_readable(directory)
    except OSError:
        return False
    return True


def is_unreadable(path: Path) -> bool:
    """Return whether there may be a directory which cannot be read: no permission, a dead mount."""
    try:
        check_readable(path)
    except OSError as error:
        return error.errno not in (ENOENT, ENOTDIR, ELOOP)
    return False


def find_stamp(directory: Path, name: str) -> Stamp | None:
    """Return the stamp of a file in a directory; None if there is none, or it cannot be read."""
    try:
        return _stamp((directory / name).stat())
    except OSError:
        return None


def find_stamps(directory: Path, names: Iterable[str]) -> Mapping[str, Stamp | None] | None:
    """Return the stamps of files in a directory; None for each that is missing.

    Much faster than opening them: each directory is opened once, and no path is resolved.

    Returns:
        None if there is a link on the way to one of them, or it is not a regular file: the stamps
        would not tell whether `read_within` may read it. Always None on Windows.
    """
    if sys.platform == "win32":
        return None
    folders: dict[tuple[str, ...], int] = {}

    def folder(way: tuple[str, ...]) -> int:
        if way not in folders:
            above = folder(way[:-1]) if way else None
            place = way[-1] if way else directory
            links = os.O_NOFOLLOW if way else 0  # the plugin's own directory may be a link
            folders[way] = os.open(place, _FOLDER | links, dir_fd=above)
        return folders[way]

    stamps: dict[str, Stamp | None] = {}
    try:
        for name in names:
            *way, file = name.split("/")
            try:
                status = os.stat(file, dir_fd=folder(tuple(way)), follow_symlinks=False)
            except FileNotFoundError:
                stamps[name] = None
                continue
            if not stat.S_ISREG(status.st_mode):
                return None
            stamps[name] = _stamp(status)
    except OSError:
        return None
    finally:
        for opened in folders.values():
            os.close(opened)
    return stamps


def check_stamp(directory: Path, name: str, *, limit: int) -> Stamp:
    """Return the stamp of a file that `read_within` would read; its arguments and errors."""
    with _opened(directory, name) as file:
        stamp = _stamp(os.fstat(file.fileno()))
    _check_size(directory / name, stamp.size, limit)
    return stamp


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def find_script(directory: Path, name: str, *, limit: int) -> Script:
    """Return a script in a directory; the arguments and errors are those of `read_within`."""
    digest = hashlib.sha256()
    for part in _read_parts(directory, name, limit=limit):
        digest.update(part)
    return Script(directory, name, limit, digest.hexdigest())


def read_within(directory: Path, name: str, *, limit: int) -> bytes:
    """Return the content of a regular file in a directory.

    Args:
        directory: Links must not lead outside it; it may be a link itself.
        name: The file's path relative to the directory.
        limit: The largest size allowed, in bytes.

    Raises:
        FileNotFoundError: There is no such file.
        PluginError: It cannot be read; the text says why.
    """
    with _opened(directory, name) as file:
        # Read rather than ask for the size: a file may grow, and some report a size of 0.
        content = file.read(limit + 1)
    _check_size(directory / name, len(content), limit)
    return content


def _read_parts(directory: Path, name: str, *, limit: int) -> Iterator[bytes]:
    """Yield the content of a file in parts; the arguments and errors are those of `read_within`."""
    with _opened(directory, name) as file:
        left = limit + 1
        while part := file.read(min(_PART, left)):
            yield part
            left -= len(part)
    _check_size(directory / name, limit + 1 - left, limit)


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise PluginError(f"{path} is larger than the limit of {limit:,} bytes.")


@contextmanager
def _opened(directory: Path, name: str) -> Generator[IO[bytes]]:
    path = directory / name
    try:
        with os.fdopen(_open(directory, name), "rb") as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PluginError(f"Cannot read {path}: {error.strerror}.") from error
    except RuntimeError:  # from `resolve`, before Python 3.13
        raise PluginError(f"Cannot read {path}: its links form a loop.") from None


def _open(directory: Path, name: str) -> int:
    way = PurePath(name)
    if sys.platform != "win32" and not way.is_absolute() and ".." not in way.parts:
        try:
            return _open_step_by_step(directory, way)
        except FileNotFoundError:
            raise
        except OSError:  # perhaps because of a link, which may lead to another place in the plugin
            pass
    path, root = directory / name, directory.resolve()
    target = path.resolve()
    if not target.is_relative_to(root):
        raise PluginError(
            f"{path} is a link out of the plugin, to {target}. Replace it with the file itself."
        )
    return _open_step_by_step(root, target.relative_to(root))


def _open_step_by_step(root: Path, way: PurePath) -> int:
    """Open a file component by component, without following links below the root.

    On Windows, it is opened at once: its path has been resolved.
    """
    if sys.platform == "win32":
        opened = os.open(root / way, _FILE)
    else:
        opened = os.open(root, _FOLDER)
        for step in way.parts:
            above = opened
            try:
                opened = os.open(step, _FILE, dir_fd=above)
            finally:
                os.close(above)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise PluginError(f"{root / way} is not a regular file. Build the plugin again.")
    return opened
