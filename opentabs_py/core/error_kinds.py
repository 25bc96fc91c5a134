"""How messages describe a `CallError`: its kind, and the fields of its `ErrorDetail`."""

from typing import Any, Final, Literal, Protocol

from opentabs_py.core import codes
from opentabs_py.errors import (
    BrokenResultError,
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ErrorJson,
    ToolFailedError,
)

ErrorKind = Literal["tool", "broken", "refused", "chain", "idle", "ceiling", "other"]
"""Which `CallError` it is; of a `CallTimeoutError`, its timer."""
Side = Literal["tool", "caller", "chain"]
"""The side that failed, as in results for MCP clients."""

_TIMEOUTS: Final[dict[str, ErrorKind]] = {
    codes.TIMEOUT_IDLE: "idle",
    codes.TIMEOUT_CEILING: "ceiling",
}


class _ErrorFields(Protocol):
    """The fields of an error, as a message has them; see `ErrorDetail`."""

    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def category(self) -> str | None: ...
    @property
    def retryable(self) -> bool: ...
    @property
    def retry_after_ms(self) -> float | None: ...
    @property
    def stack(self) -> str | None: ...


def kind_of(error: CallError) -> ErrorKind:
    """Return the kind that `rebuild` makes an error from again."""
    match error:
        case BrokenResultError():
            return "broken"
        case ToolFailedError():
            return "tool"
        case CallRefusedError():
            return "refused"
        case CallTimeoutError():
            return error.timer
        case ChainError():
            return "chain"
        case _:
            return "other"


def rebuild(kind: ErrorKind, fields: _ErrorFields, *, value: Any = None) -> CallError:
    """Return the error that a message describes.

    Args:
        kind: Which error it is.
        fields: Its detail.
        value: For `broken`, the JSON value that the tool returned.
    """
    detail = ErrorDetail(
        fields.code,
        fields.message,
        category=fields.category or None,
        retryable=fields.retryable,
        retry_after=_in_seconds(fields.retry_after_ms),
        stack=fields.stack,
    )
    return _error(kind, detail, value)


def side_of(error: CallError) -> Side:
    """Return which side failed."""
    match kind_of(error):
        case "tool" | "broken":
            return "tool"
        case "refused":
            return "caller"
        case _:
            return "chain"


def from_json(fields: ErrorJson, side: Side) -> CallError:
    """Return the error that an MCP client received, from `ErrorDetail.to_json` and `side_of`."""
    detail = ErrorDetail(
        fields["code"],
        fields["message"],
        category=fields["category"],
        retryable=fields["retryable"],
        retry_after=_in_seconds(fields["retryAfterMs"]),
    )
    match side:
        case "tool":
            return _error("tool", detail)
        case "caller":
            return _error("refused", detail)
        case _:
            return _error(_TIMEOUTS.get(detail.code, "chain"), detail)


def _error(kind: ErrorKind, detail: ErrorDetail, value: Any = None) -> CallError:
    match kind:
        case "tool":
            return ToolFailedError(detail)
        case "broken":
            return BrokenResultError(detail, value=value)
        case "refused":
            return CallRefusedError(detail)
        case "chain":
            return ChainError(detail)
        case "idle" | "ceiling":
            return CallTimeoutError(detail, timer=kind)
        case _:
            return CallError(detail)


def _in_seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
