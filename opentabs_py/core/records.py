"""What is kept of a call once it has ended, and the file that keeps it.

A trace file is JSON Lines: a header, then one line for each call, in the order they ended. A
file that is appended to later has a header for each time. Members that this version does not
know are passed over, so that it reads what a later one of the same format wrote.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.text import path_text
from opentabs_py.core.trace import Reached, Waterfall, reached, waterfall
from opentabs_py.errors import ErrorDetail, TraceError

FORMAT: Final = 1
MARK: Final = "opentabs_trace"

T = TypeVar("T")

Outcome = Literal["succeeded", "failed", "refused", "timed_out", "cancelled", "lost"]

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
    """A progress report, and when it came: seconds since the call started."""

    at: float
    seq: int
    progress: float | None = None
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LogMark:
    """What the call's plugin logged meanwhile: seconds since the call started."""

    at: float
    level: Literal["debug", "info", "warning", "error"]
    message: str


@dataclass(frozen=True, slots=True)
class LinkMark:
    """The extension's connection when the call was sent, or a change of it since.

    Attributes:
        at: Seconds since the call started.
        boot_id: Which life of the service worker is at its other end; None: it is down.
    """

    at: float
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class TimersLeft:
    """What was left of both timers when the call ended, in seconds."""

    idle: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call that has ended.

    Attributes:
        call_id: Its id on the wire; one that never got there has an id all the same.
        name: The tool's MCP name, as the caller gave it.
        started: When the server took it, in seconds since the epoch.
        seconds: From there to its end.
        outcome: How it ended; `refused` before anything was sent.
        limits: Its timers.
        plugin: Its plugin; None when there is no such tool.
        tool: Its name within the plugin.
        timer: Which one ended it, when it timed out.
        error: Why it gave no value.
        tab_id: The tab it was sent to.
        url: What that showed, without query and fragment.
        attempts: How often it was sent to a document, because the one before had just left.
        stamps: When it passed each hop, in milliseconds since the epoch on the server's clock.
        left: What was left of them; None when they never ran.
        reports: How many progress reports came.
        progress: The first and the last of them, in order.
        dropped: Reports given up in the page, because the link was too slow.
        log_count: How many log records came.
        logs: The first and the last of them, in order.
        links: The connection, and when it changed.
        arguments: As JSON, cut to a bound; None unless asked for.
        result: The same.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    call_id: str
    name: str
    started: float
    seconds: float
    outcome: Outcome
    limits: Limits
    plugin: str | None = None
    tool: str | None = None
    timer: Literal["idle", "ceiling"] | None = None
    error: ErrorDetail | None = None
    tab_id: int | None = None
    url: str | None = None
    attempts: int = 0
    stamps: Mapping[str, float] = field(default_factory=dict[str, float])
    left: TimersLeft | None = None
    reports: int = 0
    progress: tuple[ProgressMark, ...] = ()
    dropped: int = 0
    log_count: int = 0
    logs: tuple[LogMark, ...] = ()
    links: tuple[LinkMark, ...] = ()
    arguments: str | None = None
    result: str | None = None

    @property
    def succeeded(self) -> bool:
        """Whether it gave a value."""
        return self.outcome == "succeeded"

    @property
    def reached(self) -> Reached:
        """How far it provably came."""
        return reached(self.stamps, reported=self.reports > 0, answered=self.succeeded)

    @property
    def worker_restarts(self) -> int:
        """How often the service worker came back in another life."""
        boots = [link.boot_id for link in self.links if link.boot_id is not None]
        return sum(before != after for before, after in pairwise(boots))

    def waterfall(self) -> Waterfall:
        """Its hops; the last is unfinished when no answer came."""
        ended = (self.started + self.seconds) * 1000
        return waterfall(self.stamps, ended=ended, reported=self.reports > 0)

    def lead(self, falls: Waterfall) -> float:
        """Give how long before the call started its first hop did: its client stamped it, say."""
        return max(0.0, self.started - falls.origin / 1000) if falls.spans else 0.0

    def with_stamps(self, stamps: Mapping[str, float]) -> "CallRecord":
        """Give the same call with more stamps, those of its MCP client say."""
        return replace(self, stamps={**self.stamps, **stamps})

    def to_json(self) -> dict[str, Any]:
        """Give it as a line of a trace file has it, as a JSON object."""
        value: dict[str, Any] = _RECORD.dump_python(self, mode="json", exclude_none=True)
        return value


@dataclass(frozen=True, slots=True)
class TraceHeader:
    """The first line of a trace file.

    Attributes:
        version: Of the format.
        opentabs: The version of this package that wrote it.
        started: When, in seconds since the epoch.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    version: Annotated[int, Field(alias=MARK)]
    opentabs: str
    started: float


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace file.

    Attributes:
        headers: One for each time that it was opened to be written.
        records: Its calls, in the order they ended.
        cut: Lines that are half written: who wrote them was killed.
    """

    headers: tuple[TraceHeader, ...]
    records: tuple[CallRecord, ...]
    cut: int = 0


_RECORD: TypeAdapter[CallRecord] = TypeAdapter(CallRecord)
_HEADER: TypeAdapter[TraceHeader] = TypeAdapter(TraceHeader)


def header_line(header: TraceHeader) -> str:
    """Write a header, with the line's end."""
    return _HEADER.dump_json(header).decode() + "\n"


def record_line(record: CallRecord) -> str:
    """Write a record, with the line's end."""
    return _RECORD.dump_json(record, exclude_none=True).decode() + "\n"


def parse_trace(lines: Iterable[str]) -> Trace:
    """Read a trace file.

    A line that is half written, at the end or before a header, is counted and passed over.

    Raises:
        TraceError: It is not one, or one of a later format; the text says what is wrong.
    """
    headers: list[TraceHeader] = []
    records: list[CallRecord] = []
    cut = 0
    broken: str | None = None  # why the line before is no JSON
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
            broken = f"Line {number} is no JSON: {error}."
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
            records.append(_read(_RECORD, line, number))
    if not headers:
        raise TraceError(_no_trace("it is empty"))
    return Trace(tuple(headers), tuple(records), cut + (broken is not None))


def _read_header(line: str, version: object, number: int) -> TraceHeader:
    if isinstance(version, int) and version > FORMAT:
        raise TraceError(
            f"It is a trace of format {version}; this version of opentabs-py reads format "
            f"{FORMAT}. Update opentabs-py."
        )
    return _read(_HEADER, line, number)


def _read(adapter: TypeAdapter[T], line: str, number: int) -> T:
    try:
        return adapter.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = path_text(first["loc"])
        raise TraceError(
            f"Line {number} is not of a trace: {f'{where}: ' if where else ''}{first['msg']}."
        ) from None


def _no_trace(why: str) -> str:
    return (
        f"It is not a trace of OpenTabs: {why}. Give a file that `opentabs serve --trace FILE` "
        "or `pytest --opentabs-trace on` wrote."
    )
