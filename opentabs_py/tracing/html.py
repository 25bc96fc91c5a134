"""A trace as one self-contained HTML file; the viewer is in `viewer/`."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from opentabs_py.core.text import one_line
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ErrorDetail, ErrorJson
from opentabs_py.tracing.inline import bundle, data_text, fill, style
from opentabs_py.tracing.words import link_text, outcome_text, reached_text

VIEWER: Final = Path(__file__).parent / "viewer"
STYLES: Final = ("theme.css", "call.css", "viewer.css")


def to_html(records: Sequence[CallRecord], *, title: str, cut: int = 0) -> str:
    """Return the HTML page that shows calls.

    Args:
        records: The calls, in any order.
        title: The name of the trace, for example its file name.
        cut: How many lines of the trace were incomplete.
    """
    parts = {
        "title": html.escape(f"{one_line(title)} – OpenTabs trace"),
        "data": data_text(trace_data(records, title=title, cut=cut)),
    }
    page = (VIEWER / "page.html").read_text(encoding="utf-8")
    return fill(page, parts, script=bundle("main.js", [VIEWER]), style=style(STYLES, [VIEWER]))


def trace_data(records: Sequence[CallRecord], *, title: str, cut: int = 0) -> dict[str, Any]:
    """Return what the viewer reads, for JSON; see `to_html`."""
    ordered = sorted(records, key=lambda record: record.started)
    origin = ordered[0].started if ordered else 0.0
    return {
        "title": one_line(title),
        "started": origin,
        "cut": cut,
        "calls": [_call(record, origin) for record in ordered],
    }


class _Error(ErrorJson):
    """An error as viewer/model.js declares it."""

    stack: str | None


def _error(error: ErrorDetail) -> _Error:
    return {**error.to_json(), "stack": error.stack}


def _call(record: CallRecord, origin: float) -> dict[str, Any]:
    waterfall = record.waterfall()
    lead = record.lead(waterfall)
    ends = [span.start + span.seconds for span in waterfall.spans]

    def at(seconds: float) -> float:
        return _ms(seconds + lead)

    return {
        "id": record.call_id,
        "name": record.name,
        "plugin": record.plugin,
        "tool": record.tool,
        "at": _ms(record.started - origin - lead),
        "ms": _ms(max([record.seconds + lead, *ends])),
        "outcome": record.outcome,
        "outcomeText": outcome_text(record),
        "reached": record.reached,
        "reachedText": reached_text(record),
        "error": None if record.error is None else _error(record.error),
        "tab": record.tab_id,
        "url": record.url,
        "attempts": record.attempts,
        "hops": [
            {
                "hop": span.hop,
                "carrier": span.carrier,
                "start": _ms(span.start),
                "ms": _ms(span.seconds),
                "unfinished": span.unfinished,
            }
            for span in waterfall.spans
        ],
        "adjusted": _ms(waterfall.adjusted),
        "reports": record.report_count,
        "progress": [
            {
                "at": at(mark.at),
                "progress": mark.progress,
                "total": mark.total,
                "message": mark.message,
            }
            for mark in record.progress
        ],
        "dropped": record.dropped,
        "logCount": record.log_count,
        "logs": [
            {"at": at(log.at), "level": log.level, "message": log.message} for log in record.logs
        ],
        "links": [
            {"at": at(link.at), "boot": link.boot_id, "text": link_text(link)}
            for link in record.links
        ],
        "restarts": record.service_worker_restarts,
        "limits": {"idle": record.limits.idle, "ceiling": record.limits.ceiling},
        "left": None
        if record.left is None
        else {"idle": record.left.idle, "ceiling": record.left.ceiling},
        "arguments": record.arguments,
        "result": record.result,
    }


def _ms(seconds: float) -> float:
    """Return a time as the viewer reads it."""
    return round(seconds * 1000, 3)
