"""Write files atomically, and lock them against concurrent writers."""

import os
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from errno import EISDIR
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

from opentabs_py.config.paths import cache_dir
from opentabs_py.directories import create_private

LOCKED_WITHIN: Final = 10.0  # s; a change takes milliseconds


@contextmanager
def changing(file: Path) -> Generator[None]:
    """Hold a file's lock, so that nobody else changes it between reading and writing it.

    Args:
        file: The file, whose directory exists.

    Raises:
        OSError: Another program holds the lock.
    """
    from filelock import FileLock  # noqa: PLC0415 (most commands change nothing)

    lock = file.with_name(f".{file.name}.lock")
    with FileLock(lock, timeout=LOCKED_WITHIN, mode=0o600, preserve_lock_file=True):
        yield


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of a path, however long another process of this user holds it.

    The lock is a file in the user's cache, so that none appears in a repository. There are at most
    256, so two paths may share one: do not hold two.

    Args:
        path: A file or directory, which need not exist.

    Raises:
        OSError: The lock cannot be created.
    """
    from filelock import FileLock  # noqa: PLC0415 (see above)

    directory = cache_dir() / "locks"
    create_private(directory)
    name = sha256(os.fsencode(path.resolve())).hexdigest()[:2]
    with FileLock(directory / f"{name}.lock", mode=0o600, preserve_lock_file=True):
        yield


def check_writable(file: Path) -> None:
    """Make a file's directory, and check that the file could be written.

    Raises:
        OSError: It could not.
    """
    if file.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=file.parent) as probe:
        probe.write(b"x")


def write_whole(file: Path, content: bytes | Iterable[bytes], *, mode: int = 0o644) -> None:
    """Write a file atomically, so that readers see either the old or the new content.

    Args:
        file: The file, whose directory exists.
        content: What to write, whole or in parts. If getting a part raises an error, the file stays
            as it was.
        mode: The permissions that it has from the beginning.

    Raises:
        OSError: It cannot be written; the error names it.
    """
    partial = file.with_name(f"{file.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.touch(mode=mode, exist_ok=False)
        with partial.open("wb") as out:
            out.writelines((content,) if isinstance(content, bytes) else content)
        partial.replace(file)
    except OSError as error:
        error.filename = str(file)  # not the other one, nor none, as where the disk is full
        raise
    finally:
        partial.unlink(missing_ok=True)
