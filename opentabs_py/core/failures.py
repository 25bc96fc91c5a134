"""The errors a call can end with, each with its code and a sentence of what to do.

The codes are part of the public interface; `docs/architecture.md` lists them.
"""

from collections.abc import Sequence
from typing import Any, Literal

from opentabs_py.core.protocol import WireError
from opentabs_py.errors import (
    BrokenResultError,
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
)

MAY_HAVE_RUN = "The tool may have run: check before you call again."

# The tool was not started, and another page may run it, or the same page later.
CALL_AGAIN = frozenset({"NOT_DELIVERED", "TAB_NOT_READY"})

_LOST = {
    "tab_closed": ("TAB_CLOSED", f"The tab was closed during the call. {MAY_HAVE_RUN}"),
    "navigated": ("PAGE_NAVIGATED", f"The page was left or reloaded mid-call. {MAY_HAVE_RUN}"),
    "crashed": ("PAGE_CRASHED", f"The page crashed during the call. {MAY_HAVE_RUN}"),
    "reloaded": (
        "EXTENSION_RELOADED",
        f"The extension was reloaded, or the browser started again, mid-call. {MAY_HAVE_RUN}",
    ),
    "not_delivered": (
        "NOT_DELIVERED",
        "The page was left before the call reached it, so the tool did not run. Call again.",
    ),
}


def from_wire(error: WireError) -> CallError:
    """Return the error that a page sent, with all its fields."""
    detail = ErrorDetail(
        code=error.code,
        message=error.message,
        category=error.category,
        retryable=error.retryable,
        retry_after_ms=error.retry_after_ms,
        stack=error.stack,
    )
    return ToolFailedError(detail) if error.started else ChainError(detail)


def lost(
    reason: Literal["tab_closed", "navigated", "crashed", "reloaded", "not_delivered"],
) -> ChainError:
    """The call's document is gone."""
    code, message = _LOST[reason]
    return ChainError(
        ErrorDetail(code, message, category="lost", retryable=reason == "not_delivered")
    )


def cancelled(reason: str) -> CallError:
    """Nobody waits for the call any more."""
    return CallError(ErrorDetail("CANCELLED", f"The call was cancelled: {reason}."))


def server_stopped(name: str, *, has_begun: bool) -> ChainError:
    """The server ended the call because it stops itself."""
    if not has_begun:
        message = f"The server is stopping, so {name} did not run. Call again when it is back."
    else:
        message = f"The server was stopped during the call of {name}. {MAY_HAVE_RUN}"
    return ChainError(
        ErrorDetail("SERVER_STOPPED", message, category="lost", retryable=not has_begun)
    )


def timed_out(
    which: Literal["idle", "ceiling"],
    *,
    limits: tuple[float, float],
    reports: int,
    last_report: float,
    connected: bool,
) -> CallTimeoutError:
    """A timer ended the call. `limits` is (idle, ceiling); `last_report` is since the start."""
    heard = _heard(reports, last_report)
    reached = "it was sent to the page" if connected else "the extension is not connected"
    told = "The tool was told to stop; it" if connected else "The tool"
    happened = f"{heard}; {reached}. {told} may have done its work: check."
    return _timeout(which, limits, happened, "call reportProgress() more often")


def python_tool_timed_out(
    which: Literal["idle", "ceiling"],
    *,
    limits: tuple[float, float],
    reports: int,
    last_report: float,
) -> CallTimeoutError:
    """A timer ended the call of a tool written in Python; the arguments are as for `timed_out`."""
    heard = _heard(reports, last_report)
    happened = f"{heard}. The tool was told to stop; it may have done its work: check."
    return _timeout(which, limits, happened, "report progress more often")


def _heard(reports: int, last_report: float) -> str:
    if not reports:
        return "no progress report came"
    came = "1 progress report" if reports == 1 else f"{reports} progress reports"
    return f"{came} came, the last {last_report:.1f} s after the start"


def _timeout(
    which: Literal["idle", "ceiling"], limits: tuple[float, float], happened: str, remedy: str
) -> CallTimeoutError:
    idle, ceiling = limits
    if which == "idle":
        code = "TIMEOUT_IDLE"
        what = f"Timed out (idle): no sign of life for {idle:g} s"
        advice = f"Have the tool {remedy}, or raise the idle timeout"
    else:
        code = "TIMEOUT_CEILING"
        what = f"Timed out (ceiling): a call may take {ceiling:g} s, whatever it reports"
        advice = "Have the tool do less per call, or raise the ceiling"
    detail = ErrorDetail(code, f"{what}; {happened} {advice}.", category="timeout")
    return CallTimeoutError(detail, which=which)


def not_connected() -> ChainError:
    """No extension is connected."""
    return ChainError(
        ErrorDetail(
            "EXTENSION_NOT_CONNECTED",
            "The browser extension is not connected. Start the browser, or run "
            "`opentabs doctor` to see which hop is broken.",
            category="connection",
            retryable=True,
        )
    )


def no_browser(why: str) -> ChainError:
    """The browser was closed, and another does not start."""
    return ChainError(
        ErrorDetail("EXTENSION_NOT_CONNECTED", why, category="connection", retryable=True)
    )


def no_tab(plugin: str, patterns: Sequence[str], instance: str | None = None) -> ChainError:
    """No open tab serves the plugin, or the instance of its site that the caller named."""
    where = " or ".join(patterns) or "its site"
    of = "" if instance is None else f" for the instance {instance!r}"
    return ChainError(
        ErrorDetail(
            "TAB_NOT_FOUND",
            f"No tab is open that the plugin {plugin!r} works in{of}. Open {where}, sign in if "
            "need be, and call again.",
            category="tab",
            retryable=True,
        )
    )


def wrong_tab(plugin: str, tab_id: int, tabs: Sequence[int]) -> ChainError:
    """The tab that the caller named does not serve the plugin."""
    have = f"Its tabs: {', '.join(map(str, tabs))}." if tabs else "It has no tab open."
    return ChainError(
        ErrorDetail(
            "TAB_NOT_FOUND",
            f"Tab {tab_id} is not one that the plugin {plugin!r} works in. {have} Leave out "
            "tabId to take the active one.",
            category="tab",
        )
    )


def other_instance(plugin: str, tab_id: int, wanted: str, theirs: str | None) -> ChainError:
    """The tab that the caller named is not one of the instance that the caller named."""
    is_of = "none of its instances" if theirs is None else f"the instance {theirs!r}"
    return ChainError(
        ErrorDetail(
            "TAB_NOT_FOUND",
            f"Tab {tab_id} is of {is_of} of the plugin {plugin!r}, not of {wanted!r}. Leave out "
            f"tabId to take a tab of {wanted!r}, or name the instance of that tab.",
            category="tab",
        )
    )


def not_ready(plugin: str, url: str, reason: str | None) -> ChainError:
    """The tab is there but the plugin cannot work in it yet."""
    return ChainError(
        ErrorDetail(
            "TAB_NOT_READY",
            f"The plugin {plugin!r} is not ready in {url}: {reason or 'isReady() is not true'}. "
            "Wait for the page to load or sign in there, then call again.",
            category="tab",
            retryable=True,
        )
    )


def unknown_tool(name: str, near: Sequence[str]) -> CallRefusedError:
    """No tool has that name."""
    hint = f"Did you mean {' or '.join(near)}?" if near else "List the tools to see their names."
    return CallRefusedError(ErrorDetail("UNKNOWN_TOOL", f"There is no tool {name!r}. {hint}"))


def only_by_gateway(name: str, gateway: str) -> CallRefusedError:
    """A tool was called by its name where the gateway serves it."""
    return CallRefusedError(
        ErrorDetail("UNKNOWN_TOOL", f"Call {name!r} with {gateway}: give its name and arguments.")
    )


def invalid_arguments(tool: str, faults: Sequence[tuple[str, str]]) -> CallRefusedError:
    """Arguments that break the tool's input schema; a fault is (path, rule)."""
    return CallRefusedError(
        ErrorDetail(
            "INVALID_ARGUMENTS",
            f"The arguments of {tool} break its schema: {_lines(faults)}. "
            "Correct them and call again.",
            category="validation",
        )
    )


def input_too_large(tool: str, size: int, limit: int) -> CallRefusedError:
    """The arguments are longer than a message may be."""
    return CallRefusedError(
        ErrorDetail(
            "INPUT_TOO_LARGE",
            f"The arguments of {tool} take {size:,} bytes as JSON; {limit:,} is the limit. "
            "Send less at once, or raise the message limit.",
            category="validation",
        )
    )


def result_breaks_schema(
    tool: str, faults: Sequence[tuple[str, str]], value: Any
) -> BrokenResultError:
    """A tool's value is not what its output schema says; a fault is (path, rule)."""
    detail = ErrorDetail(
        "RESULT_BREAKS_SCHEMA",
        f"{tool} ran, and what it gave breaks its output schema: {_lines(faults)}. "
        "The value follows; the plugin is to be mended.",
        category="validation",
    )
    return BrokenResultError(detail, value=value)


def tool_raised(tool: str, kind: str, stack: str) -> ToolFailedError:
    """A tool written in Python raised what is not for callers; its text stays in our log."""
    message = f"{tool} failed: {kind}; the server's log says why."
    return ToolFailedError(ErrorDetail("INTERNAL_ERROR", message, stack=stack))


def result_not_serialisable(tool: str, why: str) -> ToolFailedError:
    """JSON cannot say what a tool written in Python gave."""
    return ToolFailedError(
        ErrorDetail(
            "RESULT_NOT_SERIALISABLE",
            f"{tool} ran, and gave what JSON cannot say: {why}. The tool is to be mended.",
        )
    )


def result_too_large(tool: str, size: int, limit: int) -> ToolFailedError:
    """What a tool written in Python gave is longer than a message may be."""
    return ToolFailedError(
        ErrorDetail(
            "RESULT_TOO_LARGE",
            f"{tool} ran, and its value takes {size:,} bytes as JSON; {limit:,} is the limit. "
            "Ask for less at once, or raise the message limit.",
        )
    )


def no_stream(stream_id: str) -> CallRefusedError:
    """There is no such stream, or it is of another session."""
    return CallRefusedError(
        ErrorDetail(
            "UNKNOWN_STREAM",
            f"There is no stream {stream_id!r} of yours. It may have ended some time ago; the "
            "result of the call that began it names it.",
        )
    )


def internal(tool: str) -> CallError:
    """A fault of ours; its text stays in our log."""
    return CallError(
        ErrorDetail("INTERNAL_ERROR", f"{tool} failed inside the server; its log says why.")
    )


def _lines(faults: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"at {path or 'the top'}: {rule}" for path, rule in faults)
