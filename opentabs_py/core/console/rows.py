"""Calls as the console lists them."""

from dataclasses import replace
from typing import Any, Final

from opentabs_py.core.audit.entry import AuditEntry
from opentabs_py.core.limits import Limits
from opentabs_py.core.text import shorten
from opentabs_py.core.trace.record import CallRecord

LONGEST_NAME: Final = 80  # characters of a client's name
LONGEST: Final = 300  # characters of a message in a list; the call's own page shows all of it
_OVERHEAD: Final = 1_000  # bytes of a record without anything below
_MARK: Final = 150  # bytes of a report or a log record without its text


def call_row(record: CallRecord, *, running: bool) -> dict[str, Any]:
    """Return what a list of calls shows of one.

    Args:
        record: The call's record, or its record so far.
        running: Whether it runs.
    """
    last = record.progress[-1] if record.progress else None
    error = None if running else record.error
    return {
        "id": record.call_id,
        "name": record.name,
        "plugin": record.plugin,
        "state": "running" if running else record.outcome,
        "timer": record.timer,
        "started": record.started,
        "seconds": record.seconds,
        "tab": record.tab_id,
        "url": None if record.url is None else shorten(record.url, LONGEST),
        "client": None if record.client is None else shorten(record.client, LONGEST_NAME),
        "allowed": record.allowed,
        "reports": record.report_count,
        "progress": None if last is None else last.progress,
        "total": None if last is None else last.total,
        "message": None if last is None or last.message is None else shorten(last.message, LONGEST),
        "logs": record.log_count,
        "error": None
        if error is None
        else {"code": error.code, "message": shorten(error.message, LONGEST)},
    }


def earlier_row(entry: AuditEntry) -> dict[str, Any]:
    """Return the row of an audited call, with all its details, because it has no other page."""
    record = CallRecord(
        entry.call_id,
        entry.tool,
        entry.started,
        entry.seconds,
        entry.outcome,
        Limits(),  # not kept, and not shown
        plugin=entry.plugin,
        url=None if entry.site is None else f"http://{entry.site}/",
        tab_id=entry.tab_id,
        client=entry.client,
        allowed=entry.allowed,
    )
    error = None if entry.code is None else {"code": entry.code, "message": entry.message or ""}
    row = call_row(record, running=False)
    return {**row, "error": error, "arguments": entry.arguments, "result": entry.result}


def weight(record: CallRecord) -> int:
    """Return about how many bytes a record takes."""
    texts = [mark.message for mark in record.progress if mark.message is not None]
    texts += [mark.message for mark in record.logs]
    texts += [each for each in (record.arguments, record.result) if each is not None]
    if record.error is not None:
        texts += [record.error.message, record.error.stack or ""]
    marks = len(record.progress) + len(record.logs) + len(record.links)
    return _OVERHEAD + _MARK * marks + sum(map(len, texts))


def stripped(record: CallRecord) -> CallRecord:
    """Return what the list shows of a record, and its hops."""
    error = record.error
    return replace(
        record,
        progress=record.progress[-1:],
        logs=(),
        links=record.links[:1],
        error=None if error is None else replace(error, stack=None),
        arguments=None,
        result=None,
    )
