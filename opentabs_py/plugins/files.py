"""Read files from a plugin's directory, and from nowhere else.

Plugins are written by others: their directory may contain a link to a private key, a FIFO without
a writer, or an endless device.
"""

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from opentabs_py.errors import PluginError

_PART = 256 * 1024  # bytes, read at a time to hash a file


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

    def read(self) -> bytes:
        """Return the content.

        Raises:
            PluginError: The file has changed since the plugin was loaded, or cannot be read.
        """
        try:
            content = read_within(self.directory, self.name, limit=self.limit)
        except FileNotFoundError:
            content = b""
        if hashlib.sha256(content).hexdigest() != self.digest:
            raise PluginError(
                f"{self.directory / self.name} has changed since the plugin was loaded. Load the "
                "plugin again."
            )
        return content


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes with a file, as the file system reports it."""

    modified: int  # ns
    changed: int  # ns; also set by whoever sets `modified` back
    size: int
    inode: int


def find_stamp(directory: Path, name: str) -> Stamp | None:
    """Return the stamp of a file in a directory; None if there is none, or it cannot be read."""
    try:
        return _stamp((directory / name).stat())
    except OSError:
        return None


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
    with _opened(directory, name) as file:
        left = limit + 1
        while part := file.read(min(_PART, left)):
            digest.update(part)
            left -= len(part)
        _check_size(directory / name, limit + 1 - left, limit)
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


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise PluginError(f"{path} is larger than the limit of {limit:,} bytes.")


@contextmanager
def _opened(directory: Path, name: str) -> Generator[IO[bytes]]:
    path = directory / name
    try:
        with _open(path, directory.resolve()) as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PluginError(f"Cannot read {path}: {error.strerror}.") from error
    except RuntimeError:  # from `resolve`, before Python 3.13
        raise PluginError(f"Cannot read {path}: its links form a loop.") from None


def _open(path: Path, root: Path) -> IO[bytes]:
    target = path.resolve()
    if not target.is_relative_to(root):
        raise PluginError(
            f"{path} is a link out of the plugin, to {target}. Replace it with the file itself."
        )
    return os.fdopen(_open_step_by_step(root, target.relative_to(root)), "rb")


def _open_step_by_step(root: Path, way: Path) -> int:
    """Open a file component by component, without following links created since `resolve`."""
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for step in way.parts:
        above = opened
        try:
            # Non-blocking: opening a FIFO would wait for a writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(step, flags, dir_fd=above)
        finally:
            os.close(above)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise PluginError(f"{root / way} is not a regular file. Build the plugin again.")
    return opened
