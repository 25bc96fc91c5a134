"""Writes the audit in a thread of its own, so that no call waits for a disk."""

import logging
import threading
from collections import deque
from pathlib import Path
from typing import Final

from opentabs_py.audit.file import AuditFile
from opentabs_py.core.audit.entry import AuditEntry, entry_of
from opentabs_py.core.audit.retention import Retention
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import AuditError

logger = logging.getLogger(__name__)

WRITE_AFTER: Final = 0.25  # s; calls that end in this time are written together, in one transaction
AGAIN_AFTER: Final = 1.0  # s; when the file could not be written
CLOSE_WITHIN: Final = 5.0  # s; then calls that could not be written are given up
MOST_AT_ONCE: Final = 1000  # calls of one transaction
MOST_WAITING: Final = 10_000  # calls; a server at full load makes them in ten seconds
MOST_CHARACTERS: Final = 32 * 1024 * 1024  # of their arguments, results and messages


class AuditWriter:
    """Writes calls to the audit; pass its `write` method to `CallRecords.observe`.

    If the file cannot be written, calls wait for that, up to a bound; those beyond it are counted.

    Args:
        path: The file.
        retention: How long calls are kept.
        with_values: Whether their arguments, results and messages are written.
        most_waiting: How many calls may wait.
        most_characters: How long their arguments, results and messages may be together.
    """

    def __init__(
        self,
        path: Path,
        *,
        retention: Retention,
        with_values: bool = False,
        most_waiting: int = MOST_WAITING,
        most_characters: int = MOST_CHARACTERS,
    ) -> None:
        self._path = path
        self._retention = retention
        self._with_values = with_values
        self._most_waiting = most_waiting
        self._most_characters = most_characters
        self._queue: deque[AuditEntry] = deque()
        # Each number is written by one thread only: by that of the calls, or by our own.
        self._characters_in = 0
        self._characters_out = 0
        self._missed = 0
        self._missed_written = 0
        self._one_by_one = 0  # how many of the next calls are written alone
        self._is_failing = False
        self._fed = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, record: CallRecord) -> None:
        """Queue a call. Never waits, and never fails."""
        if self._closing.is_set():
            return
        entry = entry_of(record, with_values=self._with_values)
        waiting = self._characters_in - self._characters_out
        if len(self._queue) >= self._most_waiting or waiting >= self._most_characters:
            self._missed += 1
            return
        self._characters_in += _characters(entry)
        self._queue.append(entry)
        if not self._fed.is_set():
            self._fed.set()
        if self._thread is None:
            # A daemon: a disk that hangs must not keep the process from exiting.
            self._thread = threading.Thread(target=self._run, name="opentabs-audit", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Write what is queued, for some seconds at most; calls that end later are not written."""
        self._closing.set()
        self._fed.set()
        if self._thread is None:
            return
        self._thread.join(CLOSE_WITHIN)
        left = len(self._queue) + self._missed - self._missed_written
        if left:
            logger.warning(
                "Calls missing in the audit %s, not written in time: %d", self._path, left
            )

    def _run(self) -> None:
        file = AuditFile(self._path, retention=self._retention)
        is_last = False
        while not is_last:
            self._fed.wait()
            is_last = self._closing.wait(WRITE_AFTER)
            self._fed.clear()
            while self._queue and self._write_some(file):
                pass
            if self._queue and not is_last:  # the file could not be written
                self._closing.wait(AGAIN_AFTER)
                self._fed.set()
        file.close()

    def _write_some(self, file: AuditFile) -> bool:
        most = 1 if self._one_by_one else MOST_AT_ONCE
        entries = [self._queue[index] for index in range(min(len(self._queue), most))]
        missed = self._missed
        try:
            file.add(entries, missed=missed - self._missed_written)
        except AuditError as error:
            self._note_failure(error)
            return False
        except Exception:
            # SQLite refuses one of them, which must not end the audit of the others.
            if len(entries) > 1:
                self._one_by_one = len(entries)
                return True
            text = "The call %s cannot be written to the audit %s"
            logger.exception(text, entries[0].call_id, self._path)
            missed = self._missed_written  # their number is written with the next call
        self._one_by_one = max(0, self._one_by_one - len(entries))
        for entry in entries:
            self._queue.popleft()
            self._characters_out += _characters(entry)
        if missed > self._missed_written:
            logger.warning(
                "Calls missing in the audit %s, because too many waited to be written: %d",
                self._path,
                missed - self._missed_written,
            )
        if self._is_failing:
            logger.info("The audit %s is written again", self._path)
        self._is_failing = False
        self._missed_written = missed
        return True

    def _note_failure(self, error: AuditError) -> None:
        if not self._is_failing:
            logger.warning(
                "Cannot write the audit %s: %s. Calls continue; up to %d wait to be recorded.",
                self._path,
                error,
                self._most_waiting,
            )
        self._is_failing = True


def _characters(entry: AuditEntry) -> int:
    return len(entry.message or "") + len(entry.arguments or "") + len(entry.result or "")
