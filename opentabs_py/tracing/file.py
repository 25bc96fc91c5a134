"""Trace files: written as calls end, so that a killed process leaves one that can be read."""

import logging
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from opentabs_py.core.records import (
    FORMAT,
    CallRecord,
    Trace,
    TraceHeader,
    header_line,
    parse_trace,
    record_line,
)
from opentabs_py.errors import TraceError

logger = logging.getLogger(__name__)


class TraceWriter:
    """Writes calls to a file; give its `write` to `Toolbox.observe`.

    A file that is there is continued when it is a trace, and never overwritten. Only its
    owner can read what is created. One process writes to a file, not several.

    Args:
        path: The file. Its directory must be there.
        version: This package's, for the header.

    Raises:
        TraceError: The file cannot be written, or is no trace.
    """

    def __init__(self, path: str | Path, *, version: str) -> None:
        self.path = Path(path)
        try:
            complete = _check_continues(self.path)
            # Unbuffered: a line is in the file when `write` returns, however this process ends.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file = os.fdopen(descriptor, "ab", buffering=0)
        except OSError as error:
            raise TraceError(
                f"The trace {self.path} cannot be written: {error.strerror}."
            ) from None
        self._failed = False
        header = TraceHeader(FORMAT, version, time.time())
        self._append(("" if complete else "\n") + header_line(header))

    def write(self, record: CallRecord) -> None:
        """Add a call. A disk that is full is logged once, and hurts no call."""
        if not self._file.closed:
            self._append(record_line(record))

    def close(self) -> None:
        """Close the file; calls that end later are not written."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _append(self, text: str) -> None:
        data = memoryview(text.encode())
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            if not self._failed:
                logger.warning("The trace %s is not written on: %s", self.path, error.strerror)
            self._failed = True


def read_trace(path: str | Path) -> Trace:
    """Read a trace file.

    Raises:
        TraceError: It cannot be read, or is no trace; the text says what is wrong.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return parse_trace(file)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror}.") from None


def _check_continues(path: Path) -> bool:
    """Tell whether what is written next begins a line.

    Raises:
        TraceError: The file is there and is no trace.
    """
    if not path.is_file():
        return True  # new, or a pipe or a device, from which nothing is read
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(65_536)
    if first == "":
        return True
    try:
        parse_trace([first])
    except TraceError as error:
        raise TraceError(f"{path} is not written to. {error}") from None
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
