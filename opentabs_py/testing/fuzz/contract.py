"""The contract of a tool for every valid input: pure checks of a snapshot of a call."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from opentabs_py.core import codes
from opentabs_py.core.sites.match_patterns import MatchPattern
from opentabs_py.core.text import shorten
from opentabs_py.errors import CallError, CallTimeoutError, ToolFailedError
from opentabs_py.testing.expectations.breaches import SHOWN
from opentabs_py.testing.expectations.values import shortened
from opentabs_py.testing.expectations.verdicts import (
    CallSnapshot,
    ending,
    not_increasing,
    schema_violations,
)

Kind = Literal["end", "code", "schema", "progress", "fetch", "cancel", "other", "page"]

# The codes that a tool's own error may have: those that `docs/plugins.md` lists for the SDK, and
# what `docs/architecture.md` says of tools. INTERNAL_ERROR is not one of them: nobody meant it.
TOOL_CODES: Final = frozenset(
    {
        codes.AUTH_ERROR,
        codes.NOT_FOUND,
        codes.RATE_LIMITED,
        codes.STREAM_OPEN,
        codes.TIMEOUT,
        codes.TOOL_ERROR,
        codes.UNEXPECTED_RESPONSE,
        codes.VALIDATION_ERROR,
    }
)
# What the chain answers for arguments or a result that are too large: that is not the tool's fault.
_LIMITS: Final = frozenset({codes.INPUT_TOO_LARGE, codes.RESULT_TOO_LARGE})
# Without a page that can take calls, or with arguments that the test's author has to correct, there
# is nothing to check.
_SETUP: Final = frozenset(
    {
        codes.CONSENT_NEEDED,
        codes.CONSENT_REFUSED,
        codes.EXTENSION_NOT_CONNECTED,
        codes.INVALID_ARGUMENTS,
        codes.NO_WORKER,
        codes.PAGE_UNREACHABLE,
        codes.PLUGIN_NOT_LOADED,
        codes.SEVERAL_BROWSERS,
        codes.TAB_NOT_FOUND,
        codes.TAB_NOT_READY,
        codes.TAB_NOT_YOURS,
        codes.UNKNOWN_TOOL,
    }
)


@dataclass(frozen=True, slots=True)
class Breach:
    """A broken promise.

    Attributes:
        kind: Which promise. While the input is shrunk, only the same kind counts.
        text: What happened, as the rest of a sentence that begins with the tool's name.
        code: The error's code, if the promise is about that.
    """

    kind: Kind
    text: str
    code: str | None = None

    @property
    def sentence(self) -> str:
        """The text with a full stop, which that of an error may have already."""
        return f"{self.text.removesuffix('.')}."

    def is_like(self, other: "Breach") -> bool:
        """Return whether both are most likely the same bug."""
        return (self.kind, self.code) == (other.kind, other.code)


def find_breach(seen: CallSnapshot, *, documented: Collection[str], within: float) -> Breach | None:
    """Return the first promise that a call broke.

    Args:
        seen: The call, after it ended or had `within` seconds to end.
        documented: The codes of the tool's own errors.
        within: How long it may take.
    """
    if not seen.ended:
        return Breach("end", f"has not ended within {within:g} s: {ending(seen)}")
    if isinstance(seen.error, CallTimeoutError):
        return Breach("end", f"was ended by a timer: {seen.error}")
    if (step := not_increasing(seen.reports)) is not None:
        return Breach("progress", f"reported progress that did not increase: {step}")
    if isinstance(seen.error, CallError):
        return _find_wrong_code(seen.error, documented)
    if seen.error is not None:
        return Breach("code", f"failed inside this package: {seen.error!r}")
    if seen.outcome == "succeeded" and seen.output_schema is not None:
        violations = schema_violations(seen.output_schema, seen.value)
        if violations:
            lines = "; ".join(violations[:SHOWN])
            value = shortened(seen.value)
            return Breach("schema", f"returned {value}, which violates its output schema: {lines}")
    return None


def setup_problem(seen: CallSnapshot) -> str | None:
    """Return why a tool cannot be checked at all, judging by its first call; None if it can."""
    if isinstance(seen.error, CallError) and not isinstance(seen.error, ToolFailedError):
        detail = seen.error.detail
        return f"{detail.code}: {detail.message}" if detail.code in _SETUP else None
    return None


def find_unexpected_end(seen: CallSnapshot) -> str | None:
    """Return how a call ended that had succeeded before; None if it succeeded again."""
    if seen.outcome == "succeeded":
        return None
    if isinstance(seen.error, CallError) and seen.error.detail.retryable:
        return None  # a site may say "too many requests" at any time
    return ending(seen)


def find_foreign(
    urls: Sequence[str], patterns: Sequence[MatchPattern], origins: Collection[str]
) -> str | None:
    """Return the first URL that is neither of a plugin's sites nor of these origins.

    Args:
        urls: What pages of the plugin requested.
        patterns: The plugin's match patterns, and those that the test allows.
        origins: The origins of those pages.
    """
    for url in urls:
        if reached_origin(url) is None or reached_origin(url) in origins:
            continue
        if not any(pattern.matches(_as_http(url)) for pattern in patterns):
            return shorten(url)
    return None


def reached_origin(url: str) -> str | None:
    """Return a URL's origin, with `http` for `ws`; None if nothing leaves the browser for it."""
    scheme, separator, rest = _as_http(url).partition("://")
    if not separator or scheme not in ("http", "https"):
        return None
    host = rest.partition("/")[0].partition("?")[0].partition("#")[0].rpartition("@")[2]
    return f"{scheme}://{host}"


def documented_codes(description: str, given: Collection[str]) -> frozenset[str]:
    """Return the codes of a tool's own errors: those given, and those its description names."""
    words = {word.strip("`'\".,;:()[]") for word in description.split()}
    named = {word for word in words if "_" in word and word.isupper() and word.isascii()}
    return TOOL_CODES | frozenset(given) | (named - {codes.INTERNAL_ERROR})


def _find_wrong_code(error: CallError, documented: Collection[str]) -> Breach | None:
    detail = error.detail
    ending = f"{detail.code}: {detail.message}"
    if detail.code == codes.RESULT_BREAKS_SCHEMA:
        return Breach("schema", f"ended with {ending}")
    if detail.code == codes.INTERNAL_ERROR:
        return Breach("code", f"ended with {ending}", detail.code)
    if detail.category == "lost" and not isinstance(error, ToolFailedError):
        return Breach("page", f"lost its page: {ending}")
    if detail.code in documented or detail.code in _LIMITS:
        return None
    return Breach("code", f"ended with a code that is not documented, {ending}", detail.code)


def _as_http(url: str) -> str:
    is_socket = url.startswith(("ws://", "wss://"))
    return f"http{url.removeprefix('ws')}" if is_socket else url
