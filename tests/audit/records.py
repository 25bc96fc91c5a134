"""Calls to write to an audit, and ways to inspect its file."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from opentabs_py.audit.file import AuditFile
from opentabs_py.audit.history import read_calls
from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.core.audit.retention import Retention
from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.record import CallRecord

ALL = 10**9


def a_record(number: int = 0, **more: Any) -> CallRecord:
    whole = {
        "call_id": f"{number:032x}",
        "name": "chat_send",
        "started": 1000.0 + number,
        "seconds": 0.25,
        "outcome": "succeeded",
        "limits": Limits(),
        "plugin": "chat",
    }
    return CallRecord(**{**whole, **more})


def an_entry(number: int = 0, **more: Any) -> AuditEntry:
    whole: dict[str, Any] = dict.fromkeys(AuditEntry._fields)
    whole |= {
        "call_id": f"{number:032x}",
        "started": 1000.0 + number,
        "seconds": 0.25,
        "tool": "chat_send",
        "plugin": "chat",
        "outcome": "succeeded",
    }
    return AuditEntry(**{**whole, **more})


def add(path: Path, *entries: AuditEntry, missed: int = 0) -> None:
    """Write calls that never expire."""
    file = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    file.add(entries, missed=missed)
    file.close()


def numbers(path: Path) -> list[int]:
    """Return the numbers of the calls that are kept, in their order."""
    return [int(each.entry.call_id, 16) for each in read_calls(path, limit=ALL)]


def check(path: Path) -> str:
    """Return what SQLite says of the file."""
    with closing(sqlite3.connect(path)) as db:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])
