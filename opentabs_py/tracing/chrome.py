"""A trace as Chrome trace events, which Perfetto (https://ui.perfetto.dev) opens.

Each plugin is a process and each tool a thread; concurrent calls of one tool have a thread each. A
thread contains calls, a call its hops, and these its progress reports and logs. Progress is also
shown as a counter. The format: "Trace Event Format", Google, 2016.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentabs_py.core.trace.record import CallRecord
from opentabs_py.tracing.words import link_text, outcome_text, reached_text

Event = dict[str, Any]


def to_chrome(records: Sequence[CallRecord]) -> str:
    """Return a trace as JSON for Perfetto and chrome://tracing."""
    ordered = sorted(records, key=lambda record: record.started)
    origin = ordered[0].started if ordered else 0.0
    tracks = _Tracks()
    events = [event for record in ordered for event in _events(record, origin, tracks)]
    document = {
        "traceEvents": [*tracks.names, *events],
        "displayTimeUnit": "ms",
        "otherData": {"started": origin, "source": "opentabs-py"},
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


@dataclass
class _Tracks:
    """Assigns calls to processes and threads; `names` are the events that name these."""

    names: list[Event] = field(default_factory=list[Event])
    _processes: dict[str, int] = field(default_factory=dict[str, int])
    _free_at: dict[str, list[tuple[int, float]]] = field(
        default_factory=dict[str, list[tuple[int, float]]]
    )
    _threads: int = 0

    def place(self, record: CallRecord, start: float, end: float) -> tuple[int, int, str]:
        """Return process, thread and thread name of a track that is free during the call."""
        plugin = record.plugin or "no plugin"
        pid = self._processes.get(plugin)
        if pid is None:
            pid = self._processes[plugin] = len(self._processes) + 1
            self._name("process_name", pid, 0, plugin)
        lanes = self._free_at.setdefault(record.name, [])
        for number, (tid, free) in enumerate(lanes):
            if free <= start:
                lanes[number] = (tid, end)
                return pid, tid, _lane(record.name, number)
        self._threads += 1
        lanes.append((self._threads, end))
        name = _lane(record.name, len(lanes) - 1)
        self._name("thread_name", pid, self._threads, name)
        return pid, self._threads, name

    def _name(self, what: str, pid: int, tid: int, name: str) -> None:
        self.names.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}})


def _lane(name: str, number: int) -> str:
    return name if number == 0 else f"{name} ({number + 1})"


def _events(record: CallRecord, origin: float, tracks: _Tracks) -> Iterator[Event]:
    waterfall = record.waterfall()
    start = (record.started - origin) * 1e6
    first = start - record.lead(waterfall) * 1e6
    ends = [first + (span.start + span.seconds) * 1e6 for span in waterfall.spans]
    last = max([start + record.seconds * 1e6, *ends])
    pid, tid, track = tracks.place(record, first, last)
    where = {"pid": pid, "tid": tid}
    yield {
        **where,
        "ph": "X",
        "name": record.name,
        "cat": "call",
        "ts": first,
        "dur": last - first,
        "args": _about(record),
    }
    for span in waterfall.spans:
        yield {
            **where,
            "ph": "X",
            "name": f"{span.hop} (ended here)" if span.unfinished else span.hop,
            "cat": span.carrier,
            "ts": first + span.start * 1e6,
            "dur": span.seconds * 1e6,
        }
    counter = {"ph": "C", "name": f"progress of {track}", "pid": pid}
    yield from _instants(record, start, where)
    measured = [mark for mark in record.progress if mark.progress is not None]
    for mark in measured:
        yield {**counter, "ts": start + mark.at * 1e6, "args": {"progress": mark.progress}}
    if measured:
        yield {**counter, "ts": last, "args": {"progress": 0}}


def _instants(record: CallRecord, start: float, where: Event) -> Iterable[Event]:
    instant = {**where, "ph": "i", "s": "t"}
    for mark in record.progress:
        progress = {"seq": mark.seq, "progress": mark.progress, "total": mark.total}
        args = {**progress, "message": mark.message}
        yield {**instant, "name": "progress", "ts": start + mark.at * 1e6, "args": args}
    for log in record.logs:
        args = {"message": log.message}
        yield {**instant, "name": f"log: {log.level}", "ts": start + log.at * 1e6, "args": args}
    for link in record.links[1:]:  # the first is how the link was when the call was sent
        args = {"boot": link.boot_id}
        yield {**instant, "name": link_text(link), "ts": start + link.at * 1e6, "args": args}


def _about(record: CallRecord) -> Event:
    about: Event = {
        "call": record.call_id,
        "outcome": outcome_text(record),
        "reached": reached_text(record),
        "tab": record.tab_id,
        "url": record.url,
        "arguments": record.arguments,
        "result": record.result,
    }
    if record.error is not None:
        about |= {"code": record.error.code, "error": record.error.message}
    return {name: value for name, value in about.items() if value is not None}
