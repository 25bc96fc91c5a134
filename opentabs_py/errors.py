"""The errors that this package raises, and the base classes of a few that other modules add.

OpenTabsError
├── ConfigError            a setting is wrong
├── PluginError            a plugin on disk is wrong
├── BuildError             this machine cannot build plugins: no Node, no npm registry
├── BrowserError           no usable Chromium, or it would not start
├── ProtocolError          a message on the wire is wrong
├── TraceError             a file is not a trace
├── RecordingError         a file is not a recording of a site, or cannot be written
├── ReportError            a file is not a report of a test run, or cannot be merged or written
├── ReviewError            that the user has approved a plugin cannot be recorded
├── AuditError             the record of all calls cannot be read or written
├── FleetError             NATS, which carries a fleet, cannot be reached
└── CallError              a tool call returned no value
    ├── ToolFailedError    the tool itself threw
    │   ├── ToolError      raised by a tool written in Python, for the caller to read
    │   └── BrokenResultError  it succeeded, but its result does not match its output schema
    ├── CallRefusedError   the server refused to send it: name, arguments, size
    ├── ChainError         a hop was missing or went away
    └── CallTimeoutError   a timer ended it

A `CallError` carries the fields an agent acts on (`ErrorDetail`), the same ones
the MCP client receives.
"""

from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal

from typing_extensions import TypedDict

_LONGEST: Final = 1e300  # s; a time that is finite in milliseconds, too


class OpenTabsError(Exception):
    """Base of this package's errors; the message says what happened and what to do."""


class ConfigError(OpenTabsError):
    """A setting has an invalid value."""


class PluginError(OpenTabsError):
    """A plugin directory cannot be used; the text names the file and the problem."""


class BuildError(OpenTabsError):
    """Plugins cannot be built on this machine: the toolchain is missing or failed."""


class BrowserError(OpenTabsError):
    """No usable Chromium was found, or the one found did not start."""


class ProtocolError(OpenTabsError):
    """A message between server and extension breaks the protocol.

    Attributes:
        path: The invalid member, as `params.reports[0].seq`; empty for the whole message.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class RecordingError(OpenTabsError):
    """A recording of a site cannot be read or written."""


class ReportError(OpenTabsError):
    """A file is not a report of a test run, or cannot be merged with others, or be written."""


class ReviewError(OpenTabsError):
    """A review of a plugin cannot be recorded; the message says why."""


class AuditError(OpenTabsError):
    """The audit cannot be read or written; the message says why."""


class FleetError(OpenTabsError):
    """NATS cannot be reached or used, or a name in the fleet is taken."""


class ErrorJson(TypedDict):
    """An `ErrorDetail` as JSON; the names are the ecosystem's."""

    code: str
    message: str
    category: str | None
    retryable: bool
    retryAfterMs: float | None


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """Why a call returned no value, in the fields an agent acts on.

    Attributes:
        code: Machine-readable, upper case: `TAB_NOT_FOUND`, or whatever a tool chose.
        message: One or two sentences: what happened, then what to do.
        category: `auth`, `rate_limit`, `timeout`, ... if there is one.
        retryable: Whether the same call may succeed later.
        retry_after: How long to wait before that, in seconds.
        stack: Where the tool threw, mapped to its source where possible. For developers: MCP
            clients receive it only from `serve --debug`.
    """

    code: str
    message: str
    category: str | None = None
    retryable: bool = False
    retry_after: float | None = None
    stack: str | None = None

    @property
    def retry_after_ms(self) -> float | None:
        """`retry_after` in milliseconds, as on the wire."""
        after = self.retry_after
        return None if after is None else round(max(min(after, _LONGEST), -_LONGEST) * 1000, 3)

    def to_json(self) -> ErrorJson:
        """Return the fields for agents, under the names that MCP clients receive."""
        after = self.retry_after_ms
        return {
            "code": self.code,
            "message": self.message,
            "category": self.category,
            "retryable": self.retryable,
            "retryAfterMs": int(after) if after is not None and after == int(after) else after,
        }


class TraceError(OpenTabsError):
    """A file is not a trace, or cannot be read; the message says what is wrong."""


class CallError(OpenTabsError):
    """A tool call returned no value. `detail` says why.

    Attributes:
        partial: What the tool produced before it failed; None if nothing.
    """

    partial: Any = None

    def __init__(self, detail: ErrorDetail) -> None:
        super().__init__(detail.message)
        self.detail = detail


class ToolFailedError(CallError):
    """The tool ran and threw, or returned a value that is not JSON-serializable."""


class ToolError(ToolFailedError):
    """An error that a tool written in Python raises for its caller to read, with these fields.

        raise ToolError("Sign in first.", code="AUTH", category="auth")

    Args:
        message: What happened, then what to do.
        code: Machine-readable, upper case.
        category: `auth`, `rate_limit`, `not_found`, ... if one fits.
        retryable: Whether the same call may succeed later.
        retry_after: How long to wait before that, in seconds; left out if it is negative, infinite
            or not a number.
    """

    def __init__(
        self,
        message: str,
        code: str = "TOOL_ERROR",
        *,
        category: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        if retry_after is not None and not 0 <= retry_after < inf:
            retry_after = None
        super().__init__(ErrorDetail(code, message, category, retryable, retry_after))


class BrokenResultError(ToolFailedError):
    """The tool ran, but its value does not match its own output schema.

    Attributes:
        value: The JSON value it returned.
    """

    def __init__(self, detail: ErrorDetail, *, value: Any) -> None:
        super().__init__(detail)
        self.value: Any = value


class CallRefusedError(CallError):
    """The call was refused before anything was sent to the browser."""


class ChainError(CallError):
    """A hop was missing or went away: no extension, no tab, or the page is gone."""


class CallTimeoutError(CallError):
    """A timer ended the call.

    Attributes:
        timer: `idle`: too long a silence; `ceiling`: the longest time a call may take.
    """

    def __init__(self, detail: ErrorDetail, *, timer: Literal["idle", "ceiling"]) -> None:
        super().__init__(detail)
        self.timer: Literal["idle", "ceiling"] = timer
