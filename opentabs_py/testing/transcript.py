"""A transcript of one test, for its report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opentabs_py.core.trace.record import CallRecord, RecordSoFar

if TYPE_CHECKING:
    from opentabs_py.testing.call import Call


@dataclass(frozen=True, slots=True)
class PluginLog:
    """One log record of a plugin.

    Attributes:
        level: `debug`, `info`, `warning` or `error`.
    """

    plugin: str
    level: str
    message: str


@dataclass(slots=True)
class Transcript:
    """What happened in one test; the server's thread writes to it too.

    Attributes:
        calls: The test's own calls, in the order they started.
        records: All completed calls, including an MCP client's, in the order they ended.
        started: For each call, in the order they started, a function that returns its record.
        logs: What plugins logged, during calls and between them.
        page_errors: Console errors and uncaught exceptions of pages.
        page_warnings: Console warnings of pages.
    """

    calls: "list[Call]" = field(default_factory=list["Call"])
    records: list[CallRecord] = field(default_factory=list[CallRecord])
    started: list[RecordSoFar] = field(default_factory=list[RecordSoFar])
    logs: list[PluginLog] = field(default_factory=list[PluginLog])
    page_errors: list[str] = field(default_factory=list[str])
    page_warnings: list[str] = field(default_factory=list[str])

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that removes what is written from now on until it is called."""
        lists: list[list[Any]] = [
            *(self.calls, self.records, self.started, self.logs),
            *(self.page_errors, self.page_warnings),
        ]
        lengths = [len(each) for each in lists]

        def forget() -> None:
            for each, length in zip(lists, lengths, strict=True):
                del each[length:]

        return forget

    def running(self) -> list[CallRecord]:
        """Return the records so far of the calls that have not ended."""
        ended = {record.call_id for record in self.records}
        return [record for so_far in self.started if (record := so_far()).call_id not in ended]
