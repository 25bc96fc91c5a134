"""Keep validated manifests between runs, because validating one takes twenty milliseconds.

They are found by the content of the files they come from, or faster by the stamps of all of a
plugin's files, with which they were last read. A broken cache counts as empty: the files are read
and parsed again, which is only slower.
"""

import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic_core import from_json, to_json

from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest
from opentabs_py.directories import create_private
from opentabs_py.plugins.files import Stamp

logger = logging.getLogger(__name__)

T = TypeVar("T")

# Increase it when the stored fields change or, between releases, a rule of validation does.
FORMAT: Final = 3
MOST_BYTES: Final = 64 * 1024 * 1024  # of manifests; 120 plugins have 6 MB
_DAY: Final = 24 * 3600  # s; how precisely the last use is recorded, so that a start writes nothing
_WAIT: Final = 1.0  # s; for another process that is writing, which takes milliseconds

_TABLE: Final = """
CREATE TABLE IF NOT EXISTS entries (
    key BLOB PRIMARY KEY, checksum BLOB NOT NULL, content BLOB NOT NULL, used REAL NOT NULL
) WITHOUT ROWID
"""
_TRIM: Final = """
DELETE FROM entries WHERE key IN (
    SELECT key FROM (
        SELECT key, sum(length(content)) OVER (ORDER BY used DESC, key) AS total FROM entries
    ) WHERE total > ?
)
"""


@dataclass(frozen=True, slots=True)
class Build:
    """The files of a plugin as they were when it was last read.

    Attributes:
        stamps: The stamps of all of them, by name; None for one that it might have.
        digests: The SHA-256 of each script, in hex, by name.
        manifest: Identifies its manifest in the cache.
    """

    stamps: Mapping[str, Stamp | None]
    digests: Mapping[str, str]
    manifest: bytes


class ManifestCache:
    """Validated manifests by the content of the files they were parsed from, and what these were.

    A context, which may be entered again: what was added is stored at its end.

    Args:
        file: An SQLite file, created if missing; several processes may use it.
        version: That of this package; its rules decide what is valid.
        most_bytes: The total size of manifests kept; the least recently used are removed.
        now: The time, in seconds since the epoch.
    """

    def __init__(
        self,
        file: Path,
        *,
        version: str,
        most_bytes: int = MOST_BYTES,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._file = file
        self._version = version
        self._most_bytes = most_bytes
        self._now = now
        self._db: sqlite3.Connection | None = None
        self._added: dict[bytes, bytes] = {}
        self._used: set[bytes] = set()

    def __enter__(self) -> Self:
        """Open the file."""
        self._added, self._used = {}, set()
        try:
            create_private(self._file.parent)
            self._db = sqlite3.connect(self._file, timeout=_WAIT)
            # Nothing is lost with a cache that a power failure corrupts.
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
        return self

    def __exit__(self, *_: object) -> None:
        """Store what was added, and close the file."""
        if self._db is None:
            return
        try:
            if self._added or self._used:
                self._store(self._db)
            self._db.close()
            self._db = None
        except sqlite3.Error as error:
            self._give_up(error)

    def find(self, package_json: bytes, tools_json: bytes) -> PluginManifest | None:
        """Return the manifest of a plugin whose two files have this content; None if unknown."""
        return self.find_manifest(self.key(package_json, tools_json))

    def find_manifest(self, key: bytes) -> PluginManifest | None:
        """Return a manifest by its key; None if unknown."""
        return self._find(key, _restore)

    def find_build(self, directory: Path) -> Build | None:
        """Return what was last read in a directory; None if that is unknown."""
        return self._find(self._key_of_build(directory), _restore_build)

    def add(self, package_json: bytes, tools_json: bytes, manifest: PluginManifest) -> None:
        """Remember a manifest that was parsed from two files with this content."""
        if self._db is not None:
            self._added[self.key(package_json, tools_json)] = to_json(asdict(manifest))

    def add_build(self, directory: Path, build: Build) -> None:
        """Remember what was read in a directory."""
        content = {
            "stamps": {name: stamp and astuple(stamp) for name, stamp in build.stamps.items()},
            "digests": build.digests,
            "manifest": build.manifest.hex(),
        }
        if self._db is not None:
            self._added[self._key_of_build(directory)] = to_json(content)

    def key(self, package_json: bytes, tools_json: bytes) -> bytes:
        """Return the key of a manifest that was parsed from two files with this content."""
        head = f"{FORMAT} {self._version} {len(package_json)} ".encode()
        return hashlib.sha256(b"".join((head, package_json, tools_json))).digest()

    def _key_of_build(self, directory: Path) -> bytes:
        place = os.fsencode(directory.absolute())
        return hashlib.sha256(f"{FORMAT} {self._version} build ".encode() + place).digest()

    def _find(self, key: bytes, restore: Callable[[bytes], T]) -> T | None:
        if self._db is None:
            return None
        try:
            with closing(
                self._db.execute(
                    "SELECT checksum, content, used FROM entries WHERE key = ?", (key,)
                )
            ) as rows:
                row = rows.fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        if row is None:
            return None
        checksum, content, used = row
        try:
            found = restore(content) if _checksum(key, content) == checksum else None
        except (TypeError, ValueError, KeyError, AttributeError):
            found = None
        if found is not None and used < self._now() - _DAY:
            self._used.add(key)
        return found

    def _store(self, db: sqlite3.Connection) -> None:
        now = self._now()
        with db:
            db.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)",
                [
                    (key, _checksum(key, content), content, now)
                    for key, content in self._added.items()
                ],
            )
            db.executemany(
                "UPDATE entries SET used = ? WHERE key = ?", [(now, key) for key in self._used]
            )
            db.execute(_TRIM, (self._most_bytes,))

    def _give_up(self, error: Exception) -> None:
        """Do without the cache; remove a file that no later run could use either."""
        logger.debug("Cannot use the cache %s: %s", self._file, error)
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()
        # An OperationalError may pass: the file is locked, or the disk is full.
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.OperationalError
        ):
            with suppress(OSError):
                self._file.unlink()


def _checksum(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(key + content).digest()


def _restore(content: bytes) -> PluginManifest:
    stored: dict[str, Any] = from_json(content)
    stored["tools"] = tuple(ManifestTool(**tool) for tool in stored["tools"])
    stored["url_patterns"] = tuple(stored["url_patterns"])
    stored["exclude_patterns"] = tuple(stored["exclude_patterns"])
    del stored["instances"]  # come from the settings
    return PluginManifest(**stored)


def _restore_build(content: bytes) -> Build:
    stored: dict[str, Any] = from_json(content)
    stamps = {
        name: None if stamp is None else Stamp(*stamp) for name, stamp in stored["stamps"].items()
    }
    return Build(stamps, stored["digests"], bytes.fromhex(stored["manifest"]))
