"""Every exception this package raises.

OpenTabsError
├── ConfigError            a setting is wrong
├── PluginError            a plugin on disk is wrong
├── BuildError             this machine cannot build plugins: no Node, no npm registry
├── BrowserError           no usable Chromium, or it would not start
├── ProtocolError          a message on the wire is wrong
├── TraceError             a file is no trace
└── CallError              a tool call that gave no value
    ├── ToolFailedError    the tool itself threw
    │   └── ToolError      what a tool written in Python throws, for the caller to read
    ├── CallRefusedError   the server would not send it: name, arguments, size
    ├── ChainError         a hop was missing or went away
    └── CallTimeoutError   a timer ended it

A `CallError` carries the fields an agent acts on (`ErrorDetail`), the same ones
the MCP client is sent.
"""

from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import TypedDict


class OpenTabsError(Exception):
    """Base of all errors of this package; its text says what happened and what to do."""


class ConfigError(OpenTabsError):
    """A setting has a value that cannot be used."""


class PluginError(OpenTabsError):
    """A plugin directory cannot be used; the text names the file and the fault."""


class BuildError(OpenTabsError):
    """Plugins cannot be built here: what builds them is missing, or broke down."""


class BrowserError(OpenTabsError):
    """No usable Chromium was found, or the one found did not start."""


class ProtocolError(OpenTabsError):
    """A message between server and extension is not of the protocol.

    Attributes:
        path: Where the fault lies, as `params.reports[0].seq`; empty for the whole message.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ErrorJson(TypedDict):
    """An `ErrorDetail` as JSON; the names are the ecosystem's."""

    code: str
    message: str
    category: str | None
    retryable: bool
    retryAfterMs: float | None


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """Why a call gave no value, in the fields an agent acts on.

    Attributes:
        code: Machine-readable, upper case: `TAB_NOT_FOUND`, or whatever a tool chose.
        message: One or two sentences: what happened, then what to do.
        category: `auth`, `rate_limit`, `timeout`, ... where the tool gave one.
        retryable: Whether the same call may succeed later.
        retry_after_ms: How long to wait before that, in milliseconds.
        stack: Where the tool threw, in lines of its source where these are known. For developers:
            MCP clients are sent it only by `serve --debug`.
    """

    code: str
    message: str
    category: str | None = None
    retryable: bool = False
    retry_after_ms: float | None = None
    stack: str | None = None

    def to_json(self) -> ErrorJson:
        """Return the fields for agents, under the names that MCP clients are sent."""
        after = self.retry_after_ms
        return {
            "code": self.code,
            "message": self.message,
            "category": self.category,
            "retryable": self.retryable,
            "retryAfterMs": int(after) if after is not None and after == int(after) else after,
        }


class TraceError(OpenTabsError):
    """A file is no trace, or one that cannot be read; the text says what is wrong."""


class CallError(OpenTabsError):
    """A tool call that gave no value. `detail` says why.

    Attributes:
        partial: What the tool gave before it failed; None when it gave nothing.
    """

    partial: Any = None

    def __init__(self, detail: ErrorDetail) -> None:
        super().__init__(detail.message)
        self.detail = detail


class ToolFailedError(CallError):
    """The tool ran and threw, or returned what JSON cannot say."""


class ToolError(ToolFailedError):
    """An error that a tool written in Python raises for its caller to read, with these fields.

        raise ToolError("Sign in first.", code="AUTH", category="auth")

    Args:
        message: What happened, then what to do.
        code: Machine-readable, upper case.
        category: `auth`, `rate_limit`, `not_found`, ... if one fits.
        retryable: Whether the same call may succeed later.
        retry_after_ms: How long to wait before that, in milliseconds.
    """

    def __init__(
        self,
        message: str,
        code: str = "TOOL_ERROR",
        *,
        category: str | None = None,
        retryable: bool = False,
        retry_after_ms: float | None = None,
    ) -> None:
        super().__init__(ErrorDetail(code, message, category, retryable, retry_after_ms))


class BrokenResultError(ToolFailedError):
    """The tool ran, and gave a value that breaks its own output schema.

    Attributes:
        value: What it gave, a JSON value.
    """

    def __init__(self, detail: ErrorDetail, *, value: Any) -> None:
        super().__init__(detail)
        self.value: Any = value


class CallRefusedError(CallError):
    """The call was refused before anything was sent to the browser."""


class ChainError(CallError):
    """A hop was missing or went away: no extension, no tab, the page is gone."""


class CallTimeoutError(CallError):
    """A timer ended the call.

    Attributes:
        which: `idle` after a silence, `ceiling` after the longest a call may take.
    """

    def __init__(self, detail: ErrorDetail, *, which: Literal["idle", "ceiling"]) -> None:
        super().__init__(detail)
        self.which: Literal["idle", "ceiling"] = which
