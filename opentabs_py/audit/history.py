"""Reads the audit, also while servers write it."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from opentabs_py.audit.file import COLUMNS, FORMAT, WAIT, is_damage
from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.core.audit.statistics import ToolStatistics, summarize
from opentabs_py.directories import exists
from opentabs_py.errors import AuditError

_NEWEST: Final = f"SELECT number, {COLUMNS} FROM calls WHERE {{}} ORDER BY number DESC LIMIT :limit"  # noqa: S608
_ALL: Final = "SELECT tool, outcome, seconds FROM calls WHERE {}"
_MISSED: Final = "SELECT coalesce(sum(calls), 0) FROM missed WHERE at >= :since"


@dataclass(frozen=True, slots=True)
class Filter:
    """Which calls to read.

    Attributes:
        since: Only calls that started at or after this time, in seconds since the epoch.
        plugin: Only calls of this plugin or Python module.
        tool: Only calls of tools whose MCP name matches, as in `slack_*`.
        client: Only calls of clients whose name contains this, in any case.
        failed: Only calls that returned no value.
    """

    since: float | None = None
    plugin: str | None = None
    tool: str | None = None
    client: str | None = None
    failed: bool = False

    def condition(self) -> str:
        """Return it in SQL, with the names of the attributes as parameters."""
        terms = ["TRUE"]
        if self.since is not None:
            terms.append("started >= :since")
        if self.plugin is not None:
            terms.append("plugin = :plugin")
        if self.tool is not None:
            terms.append("tool GLOB :tool")
        if self.client is not None:
            terms.append("instr(lower(client), lower(:client)) > 0")
        if self.failed:
            terms.append("outcome <> 'succeeded'")
        return " AND ".join(terms)


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call in the audit.

    Attributes:
        number: Its place in the order in which calls were written: pass it as `before`.
        entry: The call.
    """

    number: int
    entry: AuditEntry


EVERY: Final = Filter()


def read_calls(
    path: Path, which: Filter = EVERY, *, before: int | None = None, limit: int = 100
) -> list[KeptCall]:
    """Return the last calls, the newest last; none if there is no audit yet.

    Args:
        path: The audit's file.
        which: Which calls.
        before: Only calls with smaller numbers, to read page by page.
        limit: How many at most.

    Raises:
        AuditError: The file cannot be read.
    """
    condition = which.condition()
    if before is not None:
        condition += " AND number < :before"
    parameters = {**asdict(which), "before": before, "limit": limit}
    with _reading(path) as db:
        if db is None:
            return []
        rows = db.execute(_NEWEST.format(condition), parameters).fetchall()
    return [KeptCall(number, AuditEntry(*entry)) for number, *entry in reversed(rows)]


def read_statistics(path: Path, which: Filter = EVERY) -> list[ToolStatistics]:
    """Return the statistics of the calls by tool, the most used first.

    Raises:
        AuditError: The file cannot be read.
    """
    with _reading(path) as db:
        if db is None:
            return []
        return summarize(db.execute(_ALL.format(which.condition()), asdict(which)))


def count_missed(path: Path, *, since: float | None = None) -> int:
    """Return how many calls could not be written, because the file could not for too long.

    Raises:
        AuditError: The file cannot be read.
    """
    with _reading(path) as db:
        if db is None:
            return 0
        return int(db.execute(_MISSED, {"since": since or 0.0}).fetchone()[0])


@contextmanager
def _reading(path: Path) -> Generator[sqlite3.Connection | None]:
    """Open the file for reading; None if there is none, or nothing in it.

    Raises:
        AuditError: That, or what is done with it, is not possible.
    """
    if not exists(path):
        yield None
        return
    try:
        # Not `mode=ro`: to read what was written last, SQLite may have to create a file beside it.
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, timeout=WAIT, uri=True)) as db:
            db.execute("PRAGMA query_only = TRUE")
            [found] = db.execute("PRAGMA user_version").fetchone()
            if found > FORMAT:
                raise AuditError(
                    f"The audit {path} was written by a later version of opentabs-py. Update it."
                )
            yield db if found else None
    except (OSError, sqlite3.Error) as error:
        raise AuditError(f"Cannot read the audit {path}: {error}. {_remedy(error)}") from error


def _remedy(error: Exception) -> str:
    if isinstance(error, sqlite3.Error) and is_damage(error):
        return "The next server that records a call renames the file, and begins a new one."
    return "Check that you own the file, and that no other program has locked it."
