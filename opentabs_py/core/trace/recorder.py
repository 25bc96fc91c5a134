"""Collects what happens to a running call into its record.

Everything a page writes is truncated here, and only a bounded amount is kept: a tool may
report progress a hundred thousand times. Arguments and results are kept only on request.
"""

import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from opentabs_py.core import codes
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.limits import Limits, Timers
from opentabs_py.core.progress import MESSAGE_MAX, ProgressReport
from opentabs_py.core.protocol import DocumentState, LogEntry
from opentabs_py.core.text import shorten
from opentabs_py.core.trace.hops import ORDER, on_our_clock
from opentabs_py.core.trace.record import (
    CallRecord,
    LinkMark,
    LogMark,
    Outcome,
    ProgressMark,
    outcome_of,
)
from opentabs_py.errors import CallError, CallTimeoutError, ErrorDetail

KEPT: Final = 1_000  # first reports of a call, and as many of its last; the same for its logs
NAME_MAX: Final = 256
STACK_MAX: Final = 16_384  # characters

# A call may be sent again after the worker dies: it left at the first of these times.
_FIRST_COUNTS = frozenset({"server.accepted", "server.sent", "worker.down"})

_EXCERPTS: Final = Excerpts()

# What takes the place of an error that quotes values, in a record without them.
_WITH_VALUES: Final = {
    codes.INVALID_ARGUMENTS: "The arguments do not match the tool's schema. They were not "
    "recorded.",
    codes.RESULT_BREAKS_SCHEMA: "The result does not match the tool's output schema. It was not "
    "recorded. This is a bug in the tool.",
}
_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/@]*@")
_QUERY = re.compile(r"[?#]")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on three clocks.

    Attributes:
        wall: Seconds since the epoch, on a clock that may be set at any time.
        monotonic: Seconds on a clock that nobody sets.
        timer: Seconds on the clock that the timers use, which a test may advance itself.
    """

    wall: float
    monotonic: float
    timer: float


class _Ends(Generic[T]):
    """The first and the last of many items."""

    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self.count = 0
        self._first: list[T] = []
        self._last: deque[T] | None = None  # most calls have few

    def add(self, item: T) -> None:
        self.count += 1
        if len(self._first) < KEPT:
            self._first.append(item)
            return
        if self._last is None:
            self._last = deque(maxlen=KEPT)
        self._last.append(item)

    def all(self) -> tuple[T, ...]:
        return (*self._first, *(self._last or ()))


class CallRecorder:
    """Records what happens to one call, and returns its `CallRecord` at the end.

    Args:
        call_id: The call's id.
        name: The tool's MCP name.
        limits: The call's time limits.
        now: When the server received the call.
        arguments: Pass them to record arguments and result; with None, neither is recorded.
        client: Who made the call, if not this process.
        excerpts: How arguments and result are recorded.
        is_traced: Record also when the call passes each hop, which costs it time.

    Attributes:
        is_traced: Whether it records that.
    """

    def __init__(
        self,
        *,
        call_id: str,
        name: str,
        limits: Limits,
        now: Instant,
        arguments: Mapping[str, Any] | None = None,
        client: str | None = None,
        excerpts: Excerpts = _EXCERPTS,
        is_traced: bool = True,
    ) -> None:
        self.is_traced = is_traced
        self._excerpts = excerpts
        self._call_id = call_id
        self._name = _cut(name, NAME_MAX)
        self._limits = limits
        self._began = now.wall
        self._began_monotonic = now.monotonic
        self._arguments = None if arguments is None else excerpts.of_value(arguments)
        self._client = None if client is None else _cut(client, NAME_MAX)
        self._allowed: str | None = None
        self._owner: str | None = None
        self._tool: str | None = None
        self._in_page = True
        self._tab_id: int | None = None
        self._url: str | None = None
        self._attempts = 0
        self._stamps = {"server.accepted": now.wall} if is_traced else dict[str, float]()
        self._progress: _Ends[ProgressMark] = _Ends()
        self._dropped = 0
        self._logs: _Ends[LogMark] = _Ends()
        self._links: list[LinkMark] = []
        self._timers: Timers | None = None  # from when the call is dispatched
        self._left: Limits | None = None  # on the timers of a worker

    # --- while it runs ---

    def record_tool(self, owner: str, tool: str, *, in_page: bool) -> None:
        """Record whose tool the name stands for, its name there, and whether it runs in a page."""
        self._owner, self._tool, self._in_page = owner, tool, in_page

    def record_allowed(self, by: str) -> None:
        """Record who allowed the call."""
        self._allowed = _cut(by, NAME_MAX)

    def record_dispatch(self, document: DocumentState, boot_id: str | None, now: Instant) -> None:
        """Record that the call goes to a document, which starts its timers.

        Called again if that document has just gone away.
        """
        self._tab_id = document.tab_id
        self._url = _without_query(document.url)
        self._attempts += 1
        if not self.is_traced:
            return
        self._stamps = {"server.accepted": self._began}
        self._links = []
        self._timers = Timers.start(self._limits, now.timer)
        self.record_link(boot_id, now)

    def record_tab(self, tab_id: int, url: str | None = None) -> None:
        """Record the tab that a call names or opens, and its page, unless the call goes to one."""
        self._tab_id = tab_id
        self._url = None if url is None else _without_query(url)

    def record_passed(self, name: str, now: Instant) -> None:
        """Record that the call passes a hop now."""
        self.record_stamp(name, self._wall(now))

    def record_stamp(self, name: str, wall: float) -> None:
        """Record when the call passed a hop; names unknown to `core.trace` are ignored."""
        if name in ORDER and not (name in _FIRST_COUNTS and name in self._stamps):
            self._stamps[name] = wall

    def record_progress(self, reports: Sequence[ProgressReport], now: Instant) -> None:
        """Record new progress reports, without duplicates; the idle timer restarts."""
        if self._timers is not None:
            self._timers.restart_idle(now.timer)
        at = self._at(now)
        for report in reports:
            self._progress.add(
                ProgressMark(
                    at=at,
                    seq=report.seq,
                    progress=_finite(report.progress),
                    total=_finite(report.total),
                    message=None if report.message is None else _cut(report.message, MESSAGE_MAX),
                )
            )

    def record_dropped(self, count: int) -> None:
        """Record that this many reports did not arrive, because the page dropped them."""
        self._dropped += count

    def record_logs(self, entries: Sequence[LogEntry], now: Instant) -> None:
        """Record what the call's plugin logged in the call's document."""
        at = self._at(now)
        for entry in entries:
            self._logs.add(LogMark(at, entry.level, _cut(entry.message, MESSAGE_MAX)))

    def record_link(self, boot_id: str | None, now: Instant) -> None:
        """Record that the extension connected, with its worker's boot id, or disconnected."""
        if len(self._links) < KEPT:
            self._links.append(LinkMark(self._at(now), boot_id))

    def merge(self, theirs: CallRecord, now: Instant) -> None:
        """Merge a fleet worker's record of the call into this one, when its answer arrives."""
        self._owner, self._tool = theirs.plugin, theirs.tool
        self._tab_id, self._url, self._attempts = theirs.tab_id, theirs.url, theirs.attempts
        self._dropped = theirs.dropped
        self._links = [*theirs.links]
        self._left = theirs.left
        self._allowed = self._allowed or theirs.allowed
        sent = self._stamps.get("fleet.sent", self._began)
        self._stamps |= on_our_clock(
            theirs.stamps,
            began=theirs.started,
            ended=theirs.started + theirs.seconds,
            sent=sent,
            received=self._wall(now),
        )

    def so_far(self, now: Instant) -> CallRecord:
        """Return the record that the call would have if it were cancelled now."""
        return self._record("cancelled", now)

    # --- its end ---

    def succeed(self, value: Any, now: Instant) -> CallRecord:
        """Return the record of a call that returned a value."""
        record = self._record("succeeded", now)
        if self._arguments is None:
            return record
        return replace(record, result=self._excerpts.of_value(value))

    def fail(self, error: BaseException, now: Instant) -> CallRecord:
        """Return the record of a call that failed; a non-`Exception` means it was cancelled."""
        if not isinstance(error, Exception):
            return self.so_far(now)
        if not isinstance(error, CallError):
            detail = ErrorDetail(codes.INTERNAL_ERROR, f"The server failed: {type(error).__name__}")
            return replace(self._record("failed", now), error=detail)
        timer = error.timer if isinstance(error, CallTimeoutError) else None
        record = self._record(outcome_of(error), now)
        return replace(record, timer=timer, error=self._clean(error.detail))

    def _record(self, outcome: Outcome, now: Instant) -> CallRecord:
        return CallRecord(
            call_id=self._call_id,
            name=self._name,
            plugin=self._owner,
            tool=self._tool,
            in_page=self._in_page,
            started=self._began,
            seconds=self._at(now),
            outcome=outcome,
            tab_id=self._tab_id,
            url=self._url,
            attempts=self._attempts,
            stamps=dict(self._stamps),
            limits=self._limits,
            left=self._left if self._timers is None else self._timers.left(now.timer),
            report_count=self._progress.count,
            progress=self._progress.all(),
            dropped=self._dropped,
            log_count=self._logs.count,
            logs=self._logs.all(),
            links=tuple(self._links),
            arguments=self._arguments,
            client=self._client,
            allowed=self._allowed,
        )

    def _at(self, now: Instant) -> float:
        return now.monotonic - self._began_monotonic

    def _wall(self, now: Instant) -> float:
        """Return the time as if the wall clock were not set during the call."""
        return self._began + self._at(now)

    def _clean(self, detail: ErrorDetail) -> ErrorDetail:
        message = detail.message
        if self._arguments is None and detail.code in _WITH_VALUES:
            message = _WITH_VALUES[detail.code]
        elif self._arguments is not None:
            message = self._excerpts.of_text(message)
        return replace(
            detail,
            code=_cut(detail.code, NAME_MAX),
            message=_cut(message, MESSAGE_MAX),
            stack=None if detail.stack is None else _cut(detail.stack, STACK_MAX),
        )


def _cut(text: str, limit: int) -> str:
    if text.isascii():  # nearly always, and checked quickly
        return text if len(text) <= limit else shorten(text, limit)
    # A lone surrogate cannot be written to a file.
    return shorten(text.encode("utf-8", "replace").decode(), limit)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _without_query(url: str) -> str:
    """Remove query, fragment, user name and password: all of them may be secret."""
    if (found := _QUERY.search(url)) is not None:
        url = url[: found.start()]
    return _cut(_USER.sub(r"\1", url) if "@" in url else url, MESSAGE_MAX)
