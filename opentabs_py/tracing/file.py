"""Trace files: each call is written when it ends, so a killed process leaves a readable file."""

import logging
import os
import time
from pathlib import Path
from typing import Self

from opentabs_py.core.trace.record import (
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
    """Writes calls to a file; pass its `write` method to `CallRecords.observe`.

    An existing trace is appended to, and no file is ever overwritten. New files are readable only
    by their owner. Only one process may write to a file.

    Args:
        path: The file. Its directory must exist.
        version: The version of this package, for the header.

    Raises:
        TraceError: The file cannot be written, or is not a trace.
    """

    def __init__(self, path: str | Path, *, version: str) -> None:
        self.path = Path(path)
        try:
            complete = _check_continues(self.path)
            # Unbuffered, so a line is in the file once `write` returns, however this process ends.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file = os.fdopen(descriptor, "ab", buffering=0)
        except OSError as error:
            raise TraceError(f"Cannot write the trace {self.path}: {error.strerror}.") from None
        self._failed = False
        header = TraceHeader(FORMAT, version, time.time())
        self._append(("" if complete else "\n") + header_line(header))

    def write(self, record: CallRecord) -> None:
        """Append a call. A full disk is logged once, and does not affect calls."""
        if not self._file.closed:
            self._append(record_line(record))

    def close(self) -> None:
        """Close the file; calls that end later are not written."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, text: str) -> None:
        if self._failed:
            return
        data = memoryview(text.encode())
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            logger.warning(
                "Cannot write the trace %s, tracing stopped: %s", self.path, error.strerror
            )
            self._failed = True


def read_trace(path: str | Path) -> Trace:
    """Read a trace file.

    Raises:
        TraceError: The file cannot be read, or is not a trace; the text says what is wrong.
    """
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return parse_trace(file)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    except OSError as error:
        raise TraceError(f"Cannot read {path}: {error.strerror}.") from None


def _check_continues(path: Path) -> bool:
    """Return whether the file ends with a complete line, so that writing can continue.

    Raises:
        TraceError: The file exists and is not a trace.
    """
    if not path.is_file():
        return True  # new, or a pipe or device that cannot be read
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline(65_536)
    if first == "":
        return True
    try:
        parse_trace([first])
    except TraceError as error:
        raise TraceError(f"Will not write to {path}. {error}") from None
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
