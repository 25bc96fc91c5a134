"""What happened in one test, for its report."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentabs_py.core.records import CallRecord

if TYPE_CHECKING:
    from opentabs_py.testing.call import Call


@dataclass(frozen=True, slots=True)
class PluginLog:
    """What a plugin logged.

    Attributes:
        level: `debug`, `info`, `warning` or `error`.
    """

    plugin: str
    level: str
    message: str


@dataclass(slots=True)
class Transcript:
    """What happened in one test; the server's thread adds to it too.

    Attributes:
        calls: Those that the test made itself, in the order they began.
        records: Every call that ended, an MCP client's too, in the order they ended.
        logs: What plugins logged, during calls and between them.
        page_errors: What pages wrote to their consoles as errors, or threw and did not catch.
        page_warnings: What they wrote as warnings.
    """

    calls: "list[Call]" = field(default_factory=list["Call"])
    records: list[CallRecord] = field(default_factory=list[CallRecord])
    logs: list[PluginLog] = field(default_factory=list[PluginLog])
    page_errors: list[str] = field(default_factory=list[str])
    page_warnings: list[str] = field(default_factory=list[str])
