"""A call while it runs, gathered into its record.

Everything a page wrote is cut to a bound here, and so is how much of it is kept: a tool may
report a hundred thousand times. Without `values` nothing of arguments and results is kept.
"""

import math
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic_core import to_json

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import DocumentState, LogEntry
from opentabs_py.core.records import (
    CallRecord,
    LinkMark,
    LogMark,
    Outcome,
    ProgressMark,
    TimersLeft,
)
from opentabs_py.core.text import shorten
from opentabs_py.core.trace import STAMPS
from opentabs_py.errors import (
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
)

KEPT: Final = 1_000  # of a call's first reports, and as many of its last; the same of its logs
NAME_MAX: Final = 256
STACK_MAX: Final = 16_384  # characters
MESSAGE_MAX: Final = 4_096  # what a page may send of one report; an error may be longer
VALUE_MAX: Final = 16_384

# A call may be sent again after the worker's death: what happened first is when it left.
_FIRST_COUNTS = frozenset({"server.accepted", "server.sent", "worker.down"})

_USER = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/@]*@")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment on two clocks.

    Attributes:
        wall: Milliseconds since the epoch.
        steady: Seconds on the clock that the timers run on.
    """

    wall: float
    steady: float


class _Ends(Generic[T]):
    """The first and the last of many."""

    __slots__ = ("_first", "_last", "count")

    def __init__(self) -> None:
        self.count = 0
        self._first: list[T] = []
        self._last: deque[T] = deque(maxlen=KEPT)

    def add(self, item: T) -> None:
        self.count += 1
        (self._first if len(self._first) < KEPT else self._last).append(item)

    def all(self) -> tuple[T, ...]:
        return (*self._first, *self._last)


class CallRecording:
    """Takes what happens to one call, then gives its record.

    Args:
        call_id: Its id, until it is sent under one of its own.
        name: The tool's MCP name.
        limits: Its timers.
        now: When the server took it.
        arguments: To keep them; None not to keep its result either.
    """

    def __init__(
        self,
        *,
        call_id: str,
        name: str,
        limits: Limits,
        now: Instant,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self._call_id = call_id
        self._name = _cut(name, NAME_MAX)
        self._limits = limits
        self._began = now.wall
        self._arguments = None if arguments is None else _value(arguments)
        self._plugin: str | None = None
        self._tool: str | None = None
        self._tab_id: int | None = None
        self._url: str | None = None
        self._attempts = 0
        self._stamps = {"server.accepted": now.wall}
        self._progress: _Ends[ProgressMark] = _Ends()
        self._dropped = 0
        self._logs: _Ends[LogMark] = _Ends()
        self._links: list[LinkMark] = []
        self._dispatched: float | None = None  # on the steady clock, as the next
        self._heard = 0.0

    # --- while it runs ---

    def resolve(self, plugin: str, tool: str) -> None:
        """There is such a tool."""
        self._plugin, self._tool = plugin, tool

    def dispatch(
        self, call_id: str, document: DocumentState, boot_id: str | None, now: Instant
    ) -> None:
        """The call goes to a document; its timers start. Again when that one has just left."""
        self._call_id = call_id
        self._tab_id = document.tab_id
        self._url = _without_query(document.url)
        self._attempts += 1
        self._stamps = {"server.accepted": self._began}
        self._links = []
        self._dispatched = self._heard = now.steady
        self.take_link(boot_id, now)

    def stamp(self, name: str, wall: float) -> None:
        """It passed a hop; names other than those of `core.trace` are passed over."""
        if name in STAMPS and not (name in _FIRST_COUNTS and name in self._stamps):
            self._stamps[name] = wall

    def take_progress(self, reports: Sequence[ProgressReport], now: Instant) -> None:
        """Reports came that are not repeated: the idle timer starts anew."""
        self._heard = now.steady
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

    def take_dropped(self, count: int) -> None:
        """The page gave up so many reports."""
        self._dropped += count

    def take_logs(self, entries: Sequence[LogEntry], now: Instant) -> None:
        """The call's plugin logged, in the call's document."""
        at = self._at(now)
        for entry in entries:
            self._logs.add(LogMark(at, entry.level, _cut(entry.message, MESSAGE_MAX)))

    def take_link(self, boot_id: str | None, now: Instant) -> None:
        """The extension's connection came, with that life of the service worker, or went."""
        if len(self._links) < KEPT:
            self._links.append(LinkMark(self._at(now), boot_id))

    def so_far(self, now: Instant) -> CallRecord:
        """Return the record that it would have if it were cancelled now."""
        return self._record("cancelled", now)

    # --- its end ---

    def succeed(self, value: Any, now: Instant) -> CallRecord:
        """It gave a value."""
        record = self._record("succeeded", now)
        return record if self._arguments is None else replace(record, result=_value(value))

    def fail(self, error: BaseException, now: Instant) -> CallRecord:
        """It gave none. What is no `Exception` cancelled it."""
        if not isinstance(error, Exception):
            return self.so_far(now)
        if not isinstance(error, CallError):
            detail = ErrorDetail("INTERNAL_ERROR", f"The server failed: {type(error).__name__}")
            return replace(self._record("failed", now), error=detail)
        detail = error.detail
        outcome: Outcome
        timer: Literal["idle", "ceiling"] | None = None
        match error:
            case CallTimeoutError():
                outcome, timer = "timed_out", error.which
            case CallRefusedError():
                outcome = "refused"
            case ChainError() if detail.category == "lost":
                outcome = "lost"
            case ToolFailedError() | ChainError():
                outcome = "failed"
            case _:
                outcome = "cancelled" if detail.code == "CANCELLED" else "failed"
        record = self._record(outcome, now)
        return replace(record, timer=timer, error=self._clean(detail))

    def _record(self, outcome: Outcome, now: Instant) -> CallRecord:
        left = None
        if self._dispatched is not None:
            idle = self._limits.idle - (now.steady - self._heard)
            ceiling = self._limits.ceiling - (now.steady - self._dispatched)
            left = TimersLeft(max(0.0, idle), max(0.0, ceiling))
        return CallRecord(
            call_id=self._call_id,
            name=self._name,
            plugin=self._plugin,
            tool=self._tool,
            started=self._began / 1000,
            seconds=self._at(now),
            outcome=outcome,
            tab_id=self._tab_id,
            url=self._url,
            attempts=self._attempts,
            stamps=dict(self._stamps),
            limits=self._limits,
            left=left,
            reports=self._progress.count,
            progress=self._progress.all(),
            dropped=self._dropped,
            log_count=self._logs.count,
            logs=self._logs.all(),
            links=tuple(self._links),
            arguments=self._arguments,
        )

    def _at(self, now: Instant) -> float:
        # A wall clock that is set back meanwhile does not make what happens happen before.
        return max(0.0, now.wall - self._began) / 1000

    def _clean(self, detail: ErrorDetail) -> ErrorDetail:
        message = detail.message
        if detail.code == "INVALID_ARGUMENTS" and self._arguments is None:
            message = "The arguments break the tool's schema. What they are was not recorded."
        return replace(
            detail,
            code=_cut(detail.code, NAME_MAX),
            message=_cut(message, MESSAGE_MAX),
            stack=None if detail.stack is None else _cut(detail.stack, STACK_MAX),
        )


def _cut(text: str, limit: int) -> str:
    # Half a surrogate pair cannot be written to a file.
    return shorten(text.encode("utf-8", "replace").decode(), limit)


def _value(value: Any) -> str:
    return _cut(to_json(value, fallback=repr).decode(), VALUE_MAX)


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _without_query(url: str) -> str:
    """Both may hold what is secret; so may a user's name and password before the host."""
    return _cut(_USER.sub(r"\1", re.split(r"[?#]", url, maxsplit=1)[0]), MESSAGE_MAX)
