"""The audit's file: its tables, and what is done when it cannot be used."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.core.audit.retention import Retention
from opentabs_py.directories import create_private
from opentabs_py.errors import AuditError

logger = logging.getLogger(__name__)

FORMAT: Final = 1  # the file's `user_version`
WAIT: Final = 1.0  # s; for another process that is writing, which takes milliseconds
_TRIM_EVERY: Final = 3600.0  # s; how often old calls are looked for
# What SQLite keeps beside the file, and how large that may stay.
BESIDE: Final = ("-wal", "-shm")
_WAL_BYTES: Final = 4 * 1024 * 1024
_FREE_PAGES: Final = 64  # of 4 KiB, which the next calls fill

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS calls (
    number INTEGER PRIMARY KEY,
    call_id TEXT NOT NULL,
    started REAL NOT NULL,
    seconds REAL NOT NULL,
    tool TEXT NOT NULL,
    plugin TEXT,
    site TEXT,
    tab_id INTEGER,
    client TEXT,
    allowed TEXT,
    outcome TEXT NOT NULL,
    code TEXT,
    message TEXT,
    arguments TEXT,
    result TEXT
);
CREATE INDEX IF NOT EXISTS calls_by_start ON calls (started);
CREATE TABLE IF NOT EXISTS missed (at REAL NOT NULL, calls INTEGER NOT NULL);
"""
COLUMNS: Final = ", ".join(AuditEntry._fields)
_INSERT: Final = (
    f"INSERT INTO calls ({COLUMNS}) VALUES ({', '.join('?' for _ in AuditEntry._fields)})"  # noqa: S608
)
_REMOVE_OLDEST: Final = """
DELETE FROM calls WHERE number <= (SELECT number FROM calls ORDER BY number LIMIT 1 OFFSET ?)
"""


class AuditFile:
    """Writes to the audit's file; for one thread. Several processes may write to one file.

    It is opened when something is written, and again if it was moved, removed or replaced. A file
    that is damaged is renamed, and a new one begun.

    Args:
        path: The file; it and its directory are created, for its owner only.
        retention: How long calls are kept.
        now: The time, in seconds since the epoch.
    """

    def __init__(
        self, path: Path, *, retention: Retention, now: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._retention = retention
        self._now = now
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        self._trim_at = 0.0

    def add(self, entries: Sequence[AuditEntry], *, missed: int = 0) -> None:
        """Write calls, and how many could not be written before; all of that or nothing.

        Raises:
            AuditError: The file cannot be written now; it may be possible later.
        """
        try:
            self._add(entries, missed)
        except (OSError, sqlite3.OperationalError, AuditError) as error:
            self.close()
            raise AuditError(str(error)) from error
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self._set_aside(error)
            try:
                self._add(entries, missed)
            except (OSError, sqlite3.Error, AuditError) as again:
                self.close()
                raise AuditError(str(again)) from again

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()

    def _add(self, entries: Sequence[AuditEntry], missed: int) -> None:
        db = self._open()
        db.execute("BEGIN IMMEDIATE")
        try:
            db.executemany(_INSERT, entries)
            if missed:
                db.execute("INSERT INTO missed VALUES (?, ?)", (self._now(), missed))
            self._trim(db)
            db.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                db.execute("ROLLBACK")
            raise
        # The calls are written. If this fails, the next batch tries again.
        with suppress(sqlite3.OperationalError):
            self._shrink(db)

    def _shrink(self, db: sqlite3.Connection) -> None:
        """Return free pages to the file system if there are many, or if the file is too large."""
        free, size = _pragma(db, "freelist_count"), _pragma(db, "page_count")
        is_large = self._retention.excess(size * _pragma(db, "page_size"), 1) > 0
        if free > _FREE_PAGES or (free and is_large):
            # Not `execute`, which would free one page: it takes each page for a row.
            db.executescript("PRAGMA incremental_vacuum")

    def _trim(self, db: sqlite3.Connection) -> None:
        now = self._now()
        # The clock may have been wrong, and years ahead, when this was done last.
        if not self._trim_at - _TRIM_EVERY <= now < self._trim_at:
            self._trim_at = now + _TRIM_EVERY
            begin = self._retention.begin(now)
            db.execute("DELETE FROM calls WHERE started < ?", (begin,))
            db.execute("DELETE FROM missed WHERE at < ?", (begin,))
        used = _pragma(db, "page_count") - _pragma(db, "freelist_count")
        size = used * _pragma(db, "page_size")
        if self._retention.excess(size, 1):
            # Numbers are dense but for what was removed at their beginning.
            [calls] = db.execute("SELECT max(number) - min(number) + 1 FROM calls").fetchone()
            excess = self._retention.excess(size, calls or 0)
            db.execute(_REMOVE_OLDEST, (max(0, excess - 1),))

    def _open(self) -> sqlite3.Connection:
        if self._db is not None and self._opened == _identity(self._path):
            return self._db
        self.close()
        create_private(self._path.parent)
        # SQLite gives the files beside it the same permissions.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        self._opened = _identity(self._path)
        # Transactions are begun and ended here.
        db = self._db = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None)
        found = _pragma(db, "user_version")
        if found > FORMAT:
            raise AuditError(
                f"it was written by a later version of opentabs-py (format {found}, not {FORMAT}). "
                "Update opentabs-py"
            )
        if found == 0:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # only before there is a table
        db.execute("PRAGMA journal_mode = WAL")
        # A process that is killed loses nothing; the machine, if its power fails, some seconds.
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if found == 0:
            db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
        self._trim_at = 0.0
        return db

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Rename a damaged file, unless another process has already done so."""
        is_same = self._opened is not None and self._opened == _identity(self._path)
        self.close()
        if not is_same:
            return
        stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(self._now()))
        aside = self._path.with_name(f"{self._path.name}.damaged-{stamp}-{os.getpid()}")
        with suppress(FileNotFoundError):
            for suffix in ("", *BESIDE):
                path = Path(f"{self._path}{suffix}")
                if path.exists():
                    path.rename(f"{aside}{suffix}")
        logger.warning(
            "The audit %s is damaged (%s). It is now %s, and a new one has begun.",
            self._path,
            error,
            aside,
        )


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether an error says that a file is damaged, or is not an SQLite file."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _pragma(db: sqlite3.Connection, name: str) -> int:
    with closing(db.execute(f"PRAGMA {name}")) as rows:
        return int(rows.fetchone()[0])
