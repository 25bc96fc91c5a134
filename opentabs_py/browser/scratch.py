"""Temporary directories: one per process, and the removal of abandoned ones.

All users of a machine may share the parent directory, so anything found there may have been
planted.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from opentabs_py.processes import is_running

_PREFIX = "opentabs-"
_PREFIXES = (_PREFIX, "playwright-pytest-")  # pytest-playwright leaves its own behind when killed
_MARK = "owner.pid"
_PID_DIGITS = 10  # digits of the largest 32-bit number, which no process id exceeds
_MARK_FLAGS = os.O_RDONLY | (0 if sys.platform == "win32" else os.O_NOFOLLOW | os.O_NONBLOCK)


@contextmanager
def temporary_dir() -> Generator[Path]:
    """Provide a temporary directory for this process; also remove those of dead processes."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    path = Path(tempfile.mkdtemp(prefix=_PREFIX))
    own_directory(path)
    try:
        with _kept_from_aging(path):
            yield path
    finally:
        # A browser that is just exiting may still write to its profile.
        _remove(path)
        if path.exists():
            _remove(path)


@contextmanager
def _kept_from_aging(path: Path) -> Generator[None]:
    """Keep what is in a directory from being removed because it is old, while the context is open.

    On many systems, systemd removes files in /tmp that nobody has used for ten days, and with them
    the extension of a server that runs for weeks. It skips directories that are locked: see
    tmpfiles.d(5), "Age".
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 (there is none on Windows)

    directory = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has locks
            fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(directory)


def own_directory(path: Path) -> None:
    """Mark a temporary directory as this process's, so that others remove it if we are killed."""
    (path / _MARK).write_text(str(os.getpid()))


def _remove_abandoned(parent: Path) -> None:
    with os.scandir(parent) as entries:
        found = [entry for entry in entries if entry.name.startswith(_PREFIXES)]
    for entry in found:
        try:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode) and _is_ours(status):
                owner = _read_mark(parent / entry.name / _MARK)
                if owner is not None and not is_running(owner):
                    _remove(parent / entry.name)
        except OSError:
            continue  # just being removed


def _read_mark(mark: Path) -> int | None:
    """Return the process id in a mark; None if we did not write it.

    Raises:
        OSError: There is no mark, or it is a link.
    """
    file = os.open(mark, _MARK_FLAGS)
    try:
        status = os.fstat(file)
        if not (stat.S_ISREG(status.st_mode) and _is_ours(status)):
            return None
        text = os.read(file, _PID_DIGITS + 1).decode("ascii", "replace")
    finally:
        os.close(file)
    is_pid = text.isascii() and text.isdigit() and len(text) <= _PID_DIGITS
    return int(text) if is_pid and 0 < int(text) < 2**31 else None


def _is_ours(status: os.stat_result) -> bool:
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def _remove(path: Path) -> None:
    """Remove a directory, its mark last, so that the next run recognizes what is left."""
    mark = path / _MARK
    with suppress(OSError):
        for each in {*path.iterdir()} - {mark}:
            _remove_one(each)
        if {*path.iterdir()} <= {mark}:
            mark.unlink(missing_ok=True)
            path.rmdir()


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
