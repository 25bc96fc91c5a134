"""The record of a call that has ended, and the trace file that stores such records.

A trace file is JSON Lines: a header, then one line per call, in the order they ended. Each time
a file is appended to, it gets another header. Unknown members are ignored, so this version can
read what a later version of the same format wrote.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from opentabs_py.core import codes
from opentabs_py.core.limits import Limits, Timer
from opentabs_py.core.text import first_problem
from opentabs_py.core.trace.hops import Reached, Waterfall, reached, waterfall
from opentabs_py.errors import (
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
    TraceError,
)

FORMAT: Final = 2
_IN_MS: Final = 1  # the format whose stamps were in milliseconds
MARK: Final = "opentabs_trace"

T = TypeVar("T")

Seconds = Annotated[float, Field(ge=-1e10, le=1e11)]
"""A time or a duration, which has a date, and is finite in milliseconds too."""
_FARTHEST: Final = 1e10  # s from a call's start; a page that is not protected can send any stamps

Outcome = Literal["succeeded", "failed", "refused", "timed_out", "cancelled", "lost"]


def outcome_of(error: Exception) -> Outcome:
    """Return how a call ended that raised an error."""
    match error:
        case CallTimeoutError():
            return "timed_out"
        case CallRefusedError():
            return "refused"
        case ChainError() if error.detail.category == "lost":
            return "lost"
        case ToolFailedError() | ChainError():
            return "failed"  # also if a tool's own error has the code CANCELLED
        case CallError() if error.detail.code == codes.CANCELLED:
            return "cancelled"
        case _:
            return "failed"


_CONFIG = ConfigDict(
    strict=True,
    extra="ignore",
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    serialize_by_alias=True,
    allow_inf_nan=False,
)


@dataclass(frozen=True, slots=True)
class ProgressMark:
    """A progress report, and when it arrived, in seconds since the call started."""

    at: Seconds
    seq: int
    progress: float | None = None
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LogMark:
    """A log record of the call's plugin, and when it arrived, in seconds since the start."""

    at: Seconds
    level: Literal["debug", "info", "warning", "error"]
    message: str


@dataclass(frozen=True, slots=True)
class LinkMark:
    """The state of the extension's connection when the call was sent, or a later change.

    Attributes:
        at: Seconds since the call started.
        boot_id: Identifies the service worker's current run; None if disconnected.
    """

    at: Seconds
    boot_id: str | None = None


RecordSoFar = Callable[[], "CallRecord"]
"""Returns the record of a call that runs, as it would be if the call were cancelled now."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call that has ended.

    Attributes:
        call_id: The call's id.
        name: The tool's MCP name, as the caller wrote it.
        started: When the server received the call, in seconds since the epoch.
        seconds: The duration of the call, from there to its end.
        outcome: How the call ended; `refused` means before anything was sent.
        limits: The call's time limits.
        plugin: The plugin or Python module that the tool belongs to; None if there is no such tool.
        tool: The tool's name within it.
        in_page: Whether that runs in a page; False for a Python tool, which runs in the server.
        timer: The timer that ended the call, if it timed out.
        error: Why the call returned no value.
        tab_id: The tab that the call was sent to.
        url: The page in that tab, without query and fragment.
        attempts: How often the call was sent to a document; more than once if one had just gone
            away.
        stamps: When the call passed each hop, in seconds since the epoch on the server's clock.
        left: The time left on the timers; None if they never ran.
        report_count: How many progress reports arrived; `reports` in JSON.
        progress: The first and the last reports, in order.
        dropped: How many reports did not arrive; if over 8 MiB wait, the page drops the oldest.
        log_count: How many log records arrived.
        logs: The first and the last log records, in order.
        links: The state of the connection, and its changes.
        arguments: The arguments as JSON, truncated; None unless requested.
        result: The result as JSON, truncated; None unless requested.
        client: The client that made the call, such as "claude-code 2.1.0" or "opentabs call"; None
            if it came from within the process.
        allowed: What let the call run, such as "auto" or "terminal: once"; None if it was refused.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    call_id: str
    name: str
    started: Seconds
    seconds: Seconds
    outcome: Outcome
    limits: Limits
    plugin: str | None = None
    tool: str | None = None
    in_page: bool = True
    timer: Timer | None = None
    error: ErrorDetail | None = None
    tab_id: int | None = None
    url: str | None = None
    attempts: int = 0
    stamps: Mapping[str, float] = field(default_factory=dict[str, float])
    left: Limits | None = None
    report_count: Annotated[int, Field(alias="reports")] = 0
    progress: tuple[ProgressMark, ...] = ()
    dropped: int = 0
    log_count: int = 0
    logs: tuple[LogMark, ...] = ()
    links: tuple[LinkMark, ...] = ()
    arguments: str | None = None
    result: str | None = None
    client: str | None = None
    allowed: str | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it returned a value."""
        return self.outcome == "succeeded"

    @property
    def reached(self) -> Reached:
        """How far it provably got."""
        reported = self.in_page and self.report_count > 0
        return reached(self.stamps, reported=reported, answered=self.succeeded)

    @property
    def service_worker_restarts(self) -> int:
        """How often the service worker restarted."""
        boots = [link.boot_id for link in self.links if link.boot_id is not None]
        return sum(before != after for before, after in pairwise(boots))

    def waterfall(self) -> Waterfall:
        """Return its hops; the last is unfinished if no answer came."""
        first, last = self.started - _FARTHEST, self.started + _FARTHEST
        return waterfall(
            {name: min(max(at, first), last) for name, at in self.stamps.items()},
            ended=self.started + self.seconds,
            reported=self.report_count > 0,
            answered=self.succeeded,
        )

    def lead(self, waterfall: Waterfall) -> float:
        """Return the seconds from its first stamp to `started`.

        More than 0 if the client or an endpoint stamped the call before the server accepted it.

        For this package's own use.
        """
        return max(0.0, self.started - waterfall.origin) if waterfall.spans else 0.0

    def with_stamps(self, stamps: Mapping[str, float]) -> "CallRecord":
        """Return a copy with more stamps, for example those of its MCP client.

        For this package's own use.
        """
        return replace(self, stamps={**self.stamps, **stamps})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object that a trace file stores."""
        value: dict[str, Any] = _RECORD.dump_python(self, mode="json", exclude_none=True)
        return value


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """The first line of a trace file.

    Attributes:
        version: The format's version.
        opentabs: The version of the package that wrote it.
        started: When it was written, in seconds since the epoch.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    version: Annotated[int, Field(alias=MARK)]
    opentabs: str
    started: float


@dataclass(frozen=True, slots=True)
class Trace:
    """The contents of a trace file.

    Attributes:
        headers: One for each time the file was opened for writing.
        records: Its calls, in the order they ended.
        cut: The number of truncated lines, left by a writer that was killed, or by a full disk.
    """

    headers: tuple[TraceHeader, ...]
    records: tuple[CallRecord, ...]
    cut: int = 0


def read_record(value: object) -> CallRecord:
    """Return the record that `CallRecord.to_json` returned, say in another process.

    Raises:
        ValueError: It is not valid.
    """
    return _RECORD.validate_python(value, strict=False)


_RECORD: TypeAdapter[CallRecord] = TypeAdapter(CallRecord)
_HEADER: TypeAdapter[TraceHeader] = TypeAdapter(TraceHeader)


def header_line(header: TraceHeader) -> str:
    """Return a header as a line, including the newline."""
    return _HEADER.dump_json(header).decode() + "\n"


def record_line(record: CallRecord) -> str:
    """Return a record as a line, including the newline."""
    return _RECORD.dump_json(record, exclude_none=True).decode() + "\n"


def parse_trace(lines: Iterable[str]) -> Trace:
    """Parse the lines of a trace file.

    A truncated line, at the end or before a header, is counted and skipped.

    Raises:
        TraceError: It is not a trace, or has a later format; the text says what is wrong.
    """
    headers: list[TraceHeader] = []
    records: list[CallRecord] = []
    cut = 0
    broken: str | None = None  # why the previous line is not JSON
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value: Any = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            if not headers:
                raise TraceError(_no_trace(str(error))) from None
            if broken is not None:
                raise TraceError(broken) from None
            broken = f"Line {number} is not valid JSON: {error}."
            continue
        version = cast(dict[str, object], value).get(MARK) if isinstance(value, dict) else None
        if broken is not None:
            if version is None:
                raise TraceError(broken)
            broken, cut = None, cut + 1
        if not headers and version is None:
            raise TraceError(_no_trace(f'its first line has no "{MARK}"'))
        if version is not None:
            headers.append(_read_header(line, version, number))
        else:
            record = _read(_RECORD, line, number)
            if headers[-1].version == _IN_MS:
                stamps = {name: at / 1000 for name, at in record.stamps.items()}
                record = replace(record, stamps=stamps)
            records.append(record)
    if not headers:
        raise TraceError(_no_trace("it is empty"))
    return Trace(tuple(headers), tuple(records), cut + (broken is not None))


def _read_header(line: str, version: object, number: int) -> TraceHeader:
    if isinstance(version, int) and version > FORMAT:
        raise TraceError(
            f"The trace has format {version}, but this version of opentabs-py reads format "
            f"{FORMAT}. Update opentabs-py."
        )
    return _read(_HEADER, line, number)


def _read(adapter: TypeAdapter[T], line: str, number: int) -> T:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        why = first_problem(error)
        raise TraceError(f"Line {number} is not a valid trace line: {why}.") from None


def _no_trace(why: str) -> str:
    return (
        f"This is not an OpenTabs trace: {why}. Use a file that `opentabs serve --trace FILE` "
        "or `pytest --opentabs-trace on` wrote."
    )
