"""Calls with every outcome, with round numbers."""

from dataclasses import replace

from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.hops import STAMPS
from opentabs_py.core.trace.record import CallRecord, LinkMark, LogMark, ProgressMark
from opentabs_py.errors import ErrorDetail

STARTED = 1_700_000_000.0


def stamps(*ms: float) -> dict[str, float]:
    """The timestamps after the client's, in order, this long after the call's start."""
    return {name: STARTED + at / 1000 for name, at in zip(STAMPS[1:], ms, strict=False)}


SUCCEEDED = CallRecord(
    call_id="5" + "a" * 31,
    name="demo_export_messages",
    plugin="demo",
    tool="export_messages",
    started=STARTED,
    seconds=1.2,
    outcome="succeeded",
    limits=Limits(),
    tab_id=7,
    url="http://127.0.0.1:8000/",
    attempts=1,
    stamps=stamps(0, 0.25, 0.75, 1, 1.5, 1199, 1199.25, 1199.5, 1200),
    left=Limits(29.5, 298.8),
    report_count=3,
    progress=tuple(ProgressMark(0.4 * (n + 1), n, n + 1, 3, f"page {n + 1}") for n in range(3)),
    log_count=1,
    logs=(LogMark(0.8, "warning", "a slow page"),),
    links=(LinkMark(0.0, "boot-1"),),
)
TIMED_OUT = replace(
    SUCCEEDED,
    call_id="7" + "b" * 31,
    started=STARTED + 1,
    seconds=2.5,
    outcome="timed_out",
    timer="idle",
    error=ErrorDetail(
        "TIMEOUT_IDLE", "Timed out (idle): no progress for 2 s; 1 progress report arrived.",
        "timeout",
    ),
    limits=Limits(2.0, 5.0),
    stamps={name: at + 1 for name, at in stamps(0, 0.25, 0.75, 1, 1.5).items()},
    left=Limits(0.0, 2.5),
    report_count=1,
    progress=(ProgressMark(0.5, 0, 1, 3, "page 1"),),
    dropped=12,
    links=(
        LinkMark(0.0, "boot-1"),
        LinkMark(1.0),
        LinkMark(1.25, "boot-2"),
    ),
)  # fmt: skip
TOOL_FAILED = replace(
    SUCCEEDED,
    call_id="9" + "c" * 31,
    started=STARTED + 2,
    seconds=0.5,
    outcome="failed",
    error=ErrorDetail("RATE_LIMITED", "Slow down.", "rate_limit", True, 1.5),
    stamps={name: at + 2 for name, at in stamps(0, 0.2, 1, 2, 3, 497, 498, 499, 500).items()},
    report_count=0,
    progress=(),
    log_count=0,
    logs=(),
)
LOST = replace(
    TOOL_FAILED,
    call_id="8" + "d" * 31,
    outcome="lost",
    error=ErrorDetail("TAB_CLOSED", "The tab was closed during the call.", "lost"),
    stamps={name: at + 2 for name, at in stamps(0, 0.2, 1).items()},
)
REFUSED = CallRecord(
    call_id="6" + "e" * 31,
    name="demo_exprot",
    started=STARTED + 3,
    seconds=0.0005,
    outcome="refused",
    limits=Limits(),
    error=ErrorDetail("UNKNOWN_TOOL", "There is no tool 'demo_exprot'."),
    stamps={"server.accepted": STARTED + 3},
)
CANCELLED = replace(
    TOOL_FAILED,
    call_id="4" + "f" * 31,
    started=STARTED + 4,
    outcome="cancelled",
    error=None,
    stamps={name: at + 4 for name, at in stamps(0, 0.2, 1, 2, 3).items()},
)
ALL = (SUCCEEDED, TIMED_OUT, TOOL_FAILED, LOST, REFUSED, CANCELLED)


def later(record: CallRecord, seconds: float) -> CallRecord:
    """The same call, this much later."""
    moved = {name: at + seconds for name, at in record.stamps.items()}
    return replace(record, started=record.started + seconds, stamps=moved)
