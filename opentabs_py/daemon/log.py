"""The log of a server that runs in the background: a file that rotates."""

import io
import logging
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Final

from opentabs_py.calling.plugin_log import PLUGINS, SafeFormatter, plugin_logger
from opentabs_py.config.paths import log_dir
from opentabs_py.directories import create_private
from opentabs_py.errors import ConfigError

LARGEST: Final = 2 * 1024 * 1024  # bytes; then the log continues in a new file
KEPT: Final = 3  # older files
LOOK_AGAIN: Final = 0.2  # s; how often a followed log is read
LONGEST_LINE: Final = 8192  # characters that are printed without the end of a line
_ENDS: Final = re.compile(r"[\r\n]")
_LINE: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ (?P<logger>\S+): ")


class _File(RotatingFileHandler):
    """A rotating log file that only its owner can read."""

    def shouldRollover(self, record: logging.LogRecord) -> int:  # noqa: N802 (logging's name)
        """Return whether the file is full, after opening it again if it was deleted or replaced."""
        if self.stream is not None and _is_replaced(Path(self.baseFilename), self.stream):
            replaced, self.stream = self.stream, self._open()
            replaced.close()
        if self.stream is not None and not self.stream.seekable():
            return 0  # Python 3.13 would ask a pipe for its position, and lose the line
        return super().shouldRollover(record)

    def _open(self) -> io.TextIOWrapper:
        create_private(Path(self.baseFilename).parent)
        file = super()._open()
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a device is not only ours
            with suppress(PermissionError):  # somebody else's file, which we may write
                Path(self.baseFilename).chmod(0o600)
        return file

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's name)
        """Drop a line that cannot be written, for example because the disk is full.

        `logging` would print why to stderr, which is this file.
        """


class _Lines(io.TextIOBase):
    """Logs what is printed, line by line; a line also ends where a progress bar starts again."""

    def __init__(self, name: str, level: int) -> None:
        self._logger = logging.getLogger(name)
        self._level = level
        self._begun: list[str] = []
        self._length = 0
        self._lock = threading.RLock()  # a finalizer may print at any moment

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *ends, rest = _ENDS.split(text)
        with self._lock:
            lines = [self._end(end) for end in ends]
            while self._length + len(rest) >= LONGEST_LINE:
                fits = LONGEST_LINE - self._length
                lines.append(self._end(rest[:fits]))
                rest = rest[fits:]
            if rest:
                self._begun.append(rest)
                self._length += len(rest)
        for line in filter(None, lines):  # not locked: a handler may print, too
            self._logger.log(self._level, "%s", line)
        return len(text)

    def _end(self, end: str) -> str:
        line = "".join((*self._begun, end))
        self._begun, self._length = [], 0
        return line


def log_file(name: str) -> Path:
    """Return the log file of a server."""
    return log_dir() / f"{name}.log"


def log_to_file(file: Path) -> None:
    """Write this process's log, and what it prints, to a file.

    Raises:
        ConfigError: It cannot be written.
    """
    try:
        handler = _File(
            file, maxBytes=LARGEST, backupCount=KEPT, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise ConfigError(f"Cannot write the log {file}: {error.strerror}") from error
    handler.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("opentabs_py", PLUGINS):
        logging.getLogger(name).setLevel(logging.INFO)
    sys.stdout = _Lines("opentabs_py.stdout", logging.INFO)
    sys.stderr = _Lines("opentabs_py.stderr", logging.WARNING)


def last_lines(file: Path, count: int) -> list[str]:
    """Return the last lines of a log, older files included; an empty list if there is none."""
    try:
        opened = _open(file)
    except FileNotFoundError:
        return _last_lines(file, None, count)
    with opened:
        return _last_lines(file, opened, count)


def follow(file: Path, count: int = 0) -> Iterator[str | None]:
    """Yield the last lines of a log, and those that are written to it from now on.

    Continues after the log has rotated, or was emptied. Yields None whenever there is nothing more
    at the moment, after a short wait.
    """
    opened, from_start = None, False
    try:
        while True:
            if opened is None:
                try:
                    opened = _open(file)
                except FileNotFoundError:
                    from_start = True
                else:
                    if not from_start:
                        yield from _last_lines(file, opened, count)
            if opened is not None:
                descriptor = opened.fileno()
                if os.fstat(descriptor).st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
                    opened.seek(0)  # another program has emptied it
                yield from _whole_lines(opened)
                if _is_replaced(file, opened):
                    yield from _whole_lines(opened)  # written before it was replaced
                    opened.close()
                    opened, from_start = None, True
                    continue
            yield None
            time.sleep(LOOK_AGAIN)
    finally:
        if opened is not None:
            opened.close()


def is_of_plugin(line: str, plugin: str) -> bool | None:
    """Return whether a line is a plugin's; None for the continuation of the line before."""
    found = _LINE.match(line)
    return None if found is None else found["logger"] == plugin_logger(plugin).name


def message_of(line: str) -> str:
    """Return a line of a log without its time, level and logger."""
    found = _LINE.match(line)
    return line if found is None else line[found.end() :]


def _open(file: Path) -> io.TextIOWrapper:
    return file.open(encoding="utf-8", errors="replace")


def _last_lines(file: Path, opened: io.TextIOWrapper | None, count: int) -> list[str]:
    """Read an opened log to its end, and as many of its older files as are needed."""
    lines = [] if opened is None else opened.read().splitlines()
    for number in range(1, KEPT + 1):
        older = file.with_name(f"{file.name}.{number}")
        # It may have rotated since it was opened.
        if len(lines) < count and older.is_file() and (not opened or _is_replaced(older, opened)):
            lines = older.read_text("utf-8", "replace").splitlines() + lines
    return lines[-count:] if count else []


def _whole_lines(file: io.TextIOWrapper) -> Iterator[str]:
    while True:
        at = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(at)  # the rest is still being written
            return
        yield line.removesuffix("\n")


def _is_replaced(file: Path, opened: io.TextIOWrapper) -> bool:
    try:
        return file.stat().st_ino != os.fstat(opened.fileno()).st_ino
    except FileNotFoundError:
        return True
