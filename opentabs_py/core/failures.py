"""The errors a call can end with: a code, what happened, and what to do.

The codes are part of the public interface; `docs/architecture.md` lists them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from opentabs_py.core import codes
from opentabs_py.core.consent import Decision
from opentabs_py.core.error_kinds import rebuild
from opentabs_py.core.limits import Timers
from opentabs_py.core.plugin_names import TABS_CLOSE, TABS_OPEN
from opentabs_py.core.protocol import WireError
from opentabs_py.core.sites import match_patterns
from opentabs_py.core.text import did_you_mean, one_line, quantity, shorten
from opentabs_py.errors import (
    BrokenResultError,
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolFailedError,
)

TITLE_MAX = 60  # characters of a tab's title
REASONS_MAX = 1_000  # characters; many plugins may be skipped
BROKEN_RESULT_FOLLOWS = "The result follows. This is a bug in the tool."
MAY_HAVE_RUN = "The tool may have run; check before you call again."

_LOST = {
    "tab_closed": (codes.TAB_CLOSED, f"The tab was closed during the call. {MAY_HAVE_RUN}"),
    "navigated": (codes.PAGE_NAVIGATED, f"The page navigated or reloaded mid-call. {MAY_HAVE_RUN}"),
    "crashed": (codes.PAGE_CRASHED, f"The page crashed during the call. {MAY_HAVE_RUN}"),
    "reloaded": (
        codes.EXTENSION_RELOADED,
        f"The extension reloaded or the browser restarted mid-call. {MAY_HAVE_RUN}",
    ),
    "not_delivered": (
        codes.NOT_DELIVERED,
        "The page navigated away before the call reached it, so the tool did not run. Call again.",
    ),
}


# --- ended by the page, the caller or the server ---


def from_wire(error: WireError) -> CallError:
    """Return the error that a page sent, with all its fields."""
    return rebuild("tool" if error.started else "chain", error)


def lost(
    reason: Literal["tab_closed", "navigated", "crashed", "reloaded", "not_delivered"],
) -> ChainError:
    """Return the error for a call whose document is gone."""
    code, message = _LOST[reason]
    return ChainError(
        ErrorDetail(code, message, category="lost", retryable=reason == "not_delivered")
    )


def cancelled_by(who: str) -> CallError:
    """Return the error for a call that was ended by someone other than its caller."""
    return CallError(ErrorDetail(codes.CANCELLED, f"The call was cancelled by {who}."))


def cancelled(reason: str) -> CallError:
    """Return the error for a call whose caller no longer waits."""
    return CallError(ErrorDetail(codes.CANCELLED, f"The call was cancelled: {reason}."))


def server_stopped(name: str, *, has_begun: bool) -> ChainError:
    """Return the error for a call that ended because the server is stopping."""
    if not has_begun:
        message = f"The server is stopping, so {name} did not run. Call again once it is back."
    else:
        message = f"The server stopped while {name} was running. {MAY_HAVE_RUN}"
    return ChainError(
        ErrorDetail(codes.SERVER_STOPPED, message, category="lost", retryable=not has_begun)
    )


# --- not allowed ---


def turned_off(name: str, rule: str, decision: Decision) -> CallRefusedError:
    """Return the error for a tool that the user's settings turn off."""
    if decision.needs_review:
        plugin = rule.partition(".")[0]
        remedy = f"The user has to review it: opentabs review {plugin}"
    else:
        remedy = (
            f"Only the user can change that: {_how_to_allow(rule)}, unless --permission, "
            "OPENTABS_PERMISSIONS or pyproject.toml says otherwise: these come before that file"
        )
    message = f"{name} is turned off, because {decision.because}. {remedy}."
    return CallRefusedError(ErrorDetail(codes.CONSENT_NEEDED, message, category="permission"))


def nobody_to_ask(name: str, rule: str) -> CallRefusedError:
    """Return the error for a call that a person would have to allow, where nobody can be asked."""
    message = (
        f"The user has to allow {name}, and there is no way to ask them here. "
        f"They can open the console (opentabs ui) and answer there, or allow it for good: "
        f"{_how_to_allow(rule)}."
    )
    return CallRefusedError(ErrorDetail(codes.CONSENT_NEEDED, message, category="permission"))


def client_cannot_ask(name: str, rule: str, why: str) -> CallRefusedError:
    """Return the error for a call that a person would have to allow, whose client cannot ask them.

    Args:
        name: The tool's name.
        rule: The rule that allows it.
        why: The error with which the client answered the question.
    """
    error = shorten(one_line(why), 200).rstrip(".")
    message = (
        f"The user has to allow {name}, and could not be asked. The client answered the question "
        f"with an error: {error}. The user can open the console (opentabs ui) and answer there, or "
        f"allow it for good: {_how_to_allow(rule)}."
    )
    return CallRefusedError(ErrorDetail(codes.CONSENT_NEEDED, message, category="permission"))


def client_gone(name: str) -> CallRefusedError:
    """Return the error for a call whose client's connection dropped while it asked its user."""
    message = (
        f"The user was asked whether {name} may run, but the connection of the call dropped before "
        "they answered, so it did not run. Call again."
    )
    return CallRefusedError(
        ErrorDetail(codes.CONSENT_NEEDED, message, category="permission", retryable=True)
    )


def nobody_answered(name: str, rule: str) -> CallRefusedError:
    """Return the error for a call that nobody has allowed in time."""
    message = (
        f"The user was asked whether {name} may run, and did not answer, so it did not run. Call "
        f"again when they are there, or have them allow it for good: {_how_to_allow(rule)}."
    )
    return CallRefusedError(
        ErrorDetail(codes.CONSENT_NEEDED, message, category="permission", retryable=True)
    )


def not_allowed(name: str) -> CallRefusedError:
    """Return the error for a call that the user did not allow."""
    message = (
        f"The user did not allow {name}, so it did not run. Call it again only if they ask you to."
    )
    return CallRefusedError(ErrorDetail(codes.CONSENT_REFUSED, message, category="permission"))


def asked_tab_gone(name: str) -> ChainError:
    """Return the error for a call whose tab was closed since the user was asked about it."""
    message = (
        f"The tab for which the user was asked to allow {name} was closed or has left the site, so "
        "the tool did not run. Call again: they will be asked about the tab that is open then."
    )
    return ChainError(ErrorDetail(codes.NOT_DELIVERED, message, category="lost", retryable=True))


def asked_about_other(name: str, asked: str, now: str) -> ChainError:
    """Return the error for a call for which the page now has another element or dialog."""
    message = (
        f"The user was asked to allow {name} on the {asked or 'page'}, but the page has changed: "
        f"it would be on the {now or 'page'} now, so the tool did not run. Call again: they will "
        "be asked about that."
    )
    return ChainError(ErrorDetail(codes.NOT_DELIVERED, message, category="lost", retryable=True))


def _how_to_allow(rule: str) -> str:
    return f'set "{rule}" = "auto" under [permissions] in the settings file'


# --- timed out ---


def timed_out(timers: Timers, *, connected: bool) -> CallTimeoutError:
    """Return the error for a call that one of its timers ended.

    Args:
        timers: The call's timers.
        connected: Whether the extension is connected and the call's page is there.
    """
    reached = "the call was sent to the page" if connected else "the extension is not connected"
    stopped = "The tool was asked to stop, but may" if connected else "The tool may"
    happened = f"; {reached}. {stopped} already have finished; check before retrying."
    return _timeout(timers, happened, "call reportProgress() more often", "--{}")


def python_tool_timed_out(timers: Timers, *, declared: bool) -> CallTimeoutError:
    """Return the same error as `timed_out`, for a tool written in Python.

    Args:
        timers: The call's timers.
        declared: Whether the tool itself declares the limit, so that the server's has no effect.
    """
    happened = ". The tool was asked to stop, but may already have finished; check before retrying."
    setting = "@tool({}=...)" if declared else "--{}"
    return _timeout(timers, happened, "report progress more often", setting)


def _heard(timers: Timers) -> str:
    if not timers.reports:
        return "no progress report arrived"
    came = quantity(timers.reports, "progress report")
    return f"{came} arrived, the last {timers.heard - timers.started:.1f} s after the start"


def _timeout(timers: Timers, happened: str, remedy: str, setting: str) -> CallTimeoutError:
    idle, ceiling = timers.limits.idle, timers.limits.ceiling
    which = timers.next()[1]
    setting = setting.format(which)
    if which == "idle":
        code = codes.TIMEOUT_IDLE
        what = f"Timed out (idle): no progress for {idle:g} s"
        advice = f"Have the tool {remedy}, or raise the idle timeout ({setting})"
    else:
        code = codes.TIMEOUT_CEILING
        what = f"Timed out (ceiling): no result after {ceiling:g} s, the longest a call may take"
        advice = f"Have the tool do less per call, or raise the ceiling ({setting})"
    detail = ErrorDetail(code, f"{what}; {_heard(timers)}{happened} {advice}.", category="timeout")
    return CallTimeoutError(detail, timer=which)


# --- no browser or tab to run in ---


def not_connected(user_action: str = "") -> ChainError:
    """Return the error for a call while no extension is connected.

    Args:
        user_action: What the user should do so that it connects, if that is known.
    """
    remedy = (
        user_action or "Start the browser, or run `opentabs doctor` to see which hop is broken."
    )
    message = f"The browser extension is not connected. {remedy}"
    return ChainError(
        ErrorDetail(codes.EXTENSION_NOT_CONNECTED, message, category="connection", retryable=True)
    )


def no_browser(why: str) -> ChainError:
    """Return the error for a call after the browser closed and could not be restarted."""
    return ChainError(
        ErrorDetail(codes.EXTENSION_NOT_CONNECTED, why, category="connection", retryable=True)
    )


def no_tab(
    plugin: str, patterns: Sequence[str], instance: str | None = None, *, refused: str = ""
) -> ChainError:
    """Return the error for a call that no open tab can serve, for the plugin or the instance.

    Args:
        plugin: Its name.
        patterns: The sites it works on.
        instance: The name of its instance.
        refused: Why the browser does not run it on some of its sites, if it does not.
    """
    starts = dict.fromkeys(match_patterns.parse(each).start for each in patterns)
    where = " or ".join(filter(None, starts)) or "its site"
    of = "" if instance is None else f" and its instance {instance!r}"
    message = (
        f"No open tab matches the plugin {plugin!r}{of}. Open {where}, sign in if needed, "
        f"and call again. {refused}"
    ).rstrip()
    return ChainError(ErrorDetail(codes.TAB_NOT_FOUND, message, category="tab", retryable=True))


def _named_tabs(tabs: Mapping[int, str]) -> str:
    """Return tabs with their titles: a page wrote these, so they are quoted, cut, on one line."""
    return ", ".join(
        f"{tab} {json.dumps(shorten(one_line(title), TITLE_MAX), ensure_ascii=False)}"
        if title
        else str(tab)
        for tab, title in tabs.items()
    )


def several_browsers(what: str, places: Mapping[str, Mapping[int, str]]) -> ChainError:
    """Return the error for a call that more than one browser could take.

    Args:
        what: What the tabs are for: `plugin 'chat'`, or `tool 'page_shop_buy'`.
        places: The titles of its tabs, by browser and id.
    """
    where = "; ".join(
        f"{name}: {_named_tabs(tabs)}" if tabs else name for name, tabs in places.items()
    )
    message = (
        f"The {what} has tabs in {len(places)} browsers, which may be signed in as "
        f"different people. Choose a tab with tabId. {where}."
    )
    return ChainError(ErrorDetail(codes.SEVERAL_BROWSERS, message, category="tab"))


def wrong_tab(what: str, tab_id: int, tabs: Mapping[int, str]) -> ChainError:
    """Return the error for a `tabId` whose tab cannot take the call.

    Args:
        what: What the tab would be for; see `several_browsers`.
        tab_id: The tab that was asked for.
        tabs: The titles of the tabs that can take it, by id.
    """
    named = _named_tabs(tabs)
    advice = (
        f"Tabs that do: {named}. Leave out tabId to use the active one."
        if named
        else "No open tab does: open its page, and leave out tabId."
    )
    message = f"Tab {tab_id} does not match the {what}. {advice}"
    return ChainError(ErrorDetail(codes.TAB_NOT_FOUND, message, category="tab"))


def others_tab(what: str, tab_id: int) -> ChainError:
    """Return the error for a `tabId` whose tab another client opened for itself."""
    message = (
        f"Tab {tab_id} belongs to another client. Leave out tabId, or open a tab of your own "
        f"for the {what} with {TABS_OPEN}."
    )
    return ChainError(ErrorDetail(codes.TAB_NOT_YOURS, message, category="tab"))


def own_tab_left(plugin: str, tab_id: int, instance: str | None = None) -> ChainError:
    """Return the error for a client whose tab for a plugin shows something else.

    Args:
        plugin: The plugin.
        tab_id: The tab.
        instance: The instance of the plugin's site that the call names, if it names one.
    """
    of = "that plugin" if instance is None else f"its instance {instance!r}"
    message = (
        f"Tab {tab_id}, which you opened for the plugin {plugin!r}, shows no page of {of}: the "
        "page may not have loaded, or it redirected, for example to a sign-in page. Close the "
        f"tab with {TABS_CLOSE} and open the page again, or name another tab in tabId."
    )
    return ChainError(ErrorDetail(codes.TAB_NOT_FOUND, message, category="tab", retryable=True))


def not_own_tab(tab_id: int) -> CallRefusedError:
    """Return the error for closing a tab that the client did not open."""
    message = (
        f"You did not open tab {tab_id} with {TABS_OPEN}, or it is already closed. Only such "
        "tabs can be closed."
    )
    return CallRefusedError(ErrorDetail(codes.TAB_NOT_YOURS, message, category="tab"))


def tab_not_opened(url: str) -> ChainError:
    """Return the error for a tab that the browser did not open."""
    message = (
        f"The browser did not open a tab for {shorten(url)}. If you loaded the extension by "
        "hand, update it and reload it; otherwise, call again."
    )
    return ChainError(ErrorDetail(codes.TAB_NOT_OPENED, message, category="tab", retryable=True))


def which_browser(browsers: Sequence[str], named: str | None = None) -> CallRefusedError:
    """Return the error for a new tab that could be in any of several browsers.

    Args:
        browsers: The names of the browsers.
        named: The name that was asked for, which none of them has.
    """
    if named is None:
        code, category = codes.SEVERAL_BROWSERS, "tab"
        why = "There are several browsers, which may be signed in as different people."
    else:
        code, category = codes.INVALID_ARGUMENTS, "validation"
        why = f"There is no browser {shorten(named)!r}."
    message = f"{why} Pass one of these as `browser`: {', '.join(browsers)}."
    return CallRefusedError(ErrorDetail(code, message, category=category))


def other_instance(plugin: str, tab_id: int, wanted: str, theirs: str | None) -> ChainError:
    """Return the error for a `tabId` whose tab shows another instance than the one named."""
    shows = "no instance" if theirs is None else f"the instance {theirs!r}"
    message = (
        f"Tab {tab_id} shows {shows} of the plugin {plugin!r}, not {wanted!r}. Leave out "
        f"tabId to use a tab of {wanted!r}, or name the instance of that tab."
    )
    return ChainError(ErrorDetail(codes.TAB_NOT_FOUND, message, category="tab"))


# --- not ready or signed out ---


def not_ready_yet(plugin: str, url: str, reason: str) -> ChainError:
    """Return the error for a tab in which the plugin is not ready, whatever its user does."""
    message = f"The plugin {plugin!r} is not ready in {url}: {reason}. Call again when it is."
    return ChainError(ErrorDetail(codes.TAB_NOT_READY, message, category="tab", retryable=True))


def not_ready(plugin: str, url: str, reason: str) -> ChainError:
    """Return the error for a tab in which `isReady()` is false, usually because of a sign-out.

    Not retryable: an agent that calls again and again does not sign its user in.
    """
    advice = "Ask the user to sign in there, and call again when they have."
    if reason.startswith("isReady() threw"):
        advice += " If they are signed in, this is a bug in the plugin."
    message = f"The plugin {plugin!r} is not ready in {url}: {reason}. {advice}"
    return ChainError(ErrorDetail(codes.TAB_NOT_READY, message, category="tab"))


def does_not_run(plugin: str, url: str, reason: str) -> ChainError:
    """Return the error for a tab in which the plugin's code does not run.

    Not retryable: its adapter's file ran and failed, or no script can run there.
    """
    message = (
        f"The plugin {plugin!r} does not run in {url}: {reason}. Reload the page, or open the "
        "site in another tab. If that does not help, look for the plugin's error in the page's "
        "console, and build the plugin again."
    )
    return ChainError(ErrorDetail(codes.PLUGIN_NOT_LOADED, message, category="tab"))


def needs_sign_in(error: ChainError) -> bool:
    """Return whether a call failed before its tool started, because its user has to sign in."""
    return error.detail.code == codes.TAB_NOT_READY and not error.detail.retryable


def not_signed_in(error: ChainError) -> ChainError:
    """Return the error for a call whose user was asked to sign in, and has not."""
    message = (
        f"{error.detail.message} They were asked and have not signed in yet, so wait until they "
        "say that they have."
    )
    return ChainError(replace(error.detail, message=message))


# --- not such a tool, or not with these arguments ---


def page_tool_gone() -> ChainError:
    """Return the error for a call of a page's own tool that its page does not have now.

    Retryable: after a reload, the page offers it again. If it does not, it leaves the list within a
    second, and once the page has loaded, the next call fails with `UNKNOWN_TOOL`.
    """
    message = (
        "The page was left or reloaded, or no longer offers this tool, so it did not run. "
        "Call again in a second, in case it offers it then."
    )
    return ChainError(
        ErrorDetail(codes.PAGE_TOOL_GONE, message, category="tab", retryable=True, retry_after=1.0)
    )


def asked_page_gone(name: str) -> ChainError:
    """Return the error for a call of a page's own tool whose page was left before the answer."""
    message = (
        f"The page was left or closed while the user was asked to allow {name}, so the tool did "
        "not run. Call again if another page offers it: they will be asked about that one."
    )
    return ChainError(replace(page_tool_gone().detail, message=message))


def unknown_tool(name: str, near: Sequence[str], skipped: Sequence[str] = ()) -> CallRefusedError:
    """Return the error for a tool name that does not exist.

    Args:
        name: The name.
        near: Similar names that exist.
        skipped: Why plugins are skipped, of which one may have the tool.
    """
    meant = did_you_mean(near)
    if skipped:
        why = shorten(" ".join(skipped), REASONS_MAX)
        text = f"There is no tool {shorten(name)!r}, and a plugin was skipped: {why}"
        if meant:
            text += f" Or {meant}"
    else:
        hint = meant or "list the tools to see their names."
        text = f"There is no tool {shorten(name)!r}; {hint}"
    return CallRefusedError(ErrorDetail(codes.UNKNOWN_TOOL, text))


def no_tools(name: str, *, knows_server: bool) -> CallRefusedError:
    """Return the error for a call of a command for which nothing that has tools is named.

    Args:
        name: The tool's name.
        knows_server: Whether the command would have used a running server.
    """
    if knows_server:
        why, instead = "no server is running, and", "Start a server (`opentabs start`), or name"
    else:
        why, instead = "the call does not use a running server, and", "Name"
    text = (
        f"There is no tool {shorten(name)!r}: {why} no plugin is named. {instead} the directory of "
        "the tool's plugin (--plugin DIR), or the file of a Python tool (--tools FILE)."
    )
    return CallRefusedError(ErrorDetail(codes.UNKNOWN_TOOL, text))


def only_by_gateway(name: str, gateway: str) -> CallRefusedError:
    """Return the error for a tool called by name while only the gateway serves it."""
    message = f"Call {name!r} through {gateway}, with its name and arguments."
    return CallRefusedError(ErrorDetail(codes.UNKNOWN_TOOL, message))


def invalid_arguments(tool: str, violations: Sequence[tuple[str, str]]) -> CallRefusedError:
    """Return the error for arguments that break the tool's input schema.

    Each violation is a pair of path and broken rule.
    """
    message = (
        f"The arguments of {tool} do not match its schema: {_lines(violations)}. "
        "Correct them and call again."
    )
    return CallRefusedError(ErrorDetail(codes.INVALID_ARGUMENTS, message, category="validation"))


def id_in_use(call_id: str) -> CallRefusedError:
    """Return the error for a call whose id a running call has."""
    message = f"A call with the id {shorten(call_id)!r} is still running. Use another call_id."
    return CallRefusedError(ErrorDetail(codes.INVALID_ARGUMENTS, message, category="validation"))


def input_too_large(tool: str, size: int, limit: int) -> CallRefusedError:
    """Return the error for arguments larger than the message limit."""
    message = (
        f"The arguments of {tool} are {size:,} characters of JSON; the limit is {limit:,}. "
        "Send less at a time, or raise the limit (OPENTABS_MESSAGE_LIMIT)."
    )
    return CallRefusedError(ErrorDetail(codes.INPUT_TOO_LARGE, message, category="validation"))


# --- what the tool did ---


def result_breaks_schema(
    tool: str, violations: Sequence[tuple[str, str]], value: Any
) -> BrokenResultError:
    """Return the error for a value that does not match the tool's output schema.

    Each violation is a pair of path and broken rule.
    """
    message = f"{schema_violation_text(tool, violations)} {BROKEN_RESULT_FOLLOWS}"
    detail = ErrorDetail(codes.RESULT_BREAKS_SCHEMA, message, category="validation")
    return BrokenResultError(detail, value=value)


def schema_violation_text(tool: str, violations: Sequence[tuple[str, str]]) -> str:
    """Return the message that a tool's value does not match its output schema, and where."""
    return (
        f"{tool} succeeded, but its result does not match its output schema: {_lines(violations)}."
    )


def tool_raised(tool: str, kind: str, stack: str) -> ToolFailedError:
    """Return the error for an unexpected exception in a Python tool; its text is only logged."""
    message = f"{tool} failed: {kind}. See the server's log for details."
    return ToolFailedError(ErrorDetail(codes.INTERNAL_ERROR, message, stack=stack))


def result_not_serializable(tool: str, why: str) -> ToolFailedError:
    """Return the error for a Python tool's value that is not JSON-serializable."""
    message = (
        f"{tool} ran, but returned a value that is not JSON-serializable: {why}. "
        "This is a bug in the tool."
    )
    return ToolFailedError(ErrorDetail(codes.RESULT_NOT_SERIALIZABLE, message))


def result_too_large(tool: str, size: int, limit: int) -> ToolFailedError:
    """Return the error for a Python tool's value that is larger than the message limit."""
    message = (
        f"{tool} ran, but its result is {size:,} characters of JSON; the limit is {limit:,}. "
        "Ask for less at a time, or raise the limit (OPENTABS_MESSAGE_LIMIT)."
    )
    return ToolFailedError(ErrorDetail(codes.RESULT_TOO_LARGE, message))


def no_stream(stream_id: str) -> CallRefusedError:
    """Return the error for a stream that does not exist or belongs to another session."""
    message = (
        f"This session has no stream {shorten(stream_id)!r}, or it ended some time ago. Pass "
        "the id from the result of the call that started it."
    )
    return CallRefusedError(ErrorDetail(codes.UNKNOWN_STREAM, message))


def internal(tool: str) -> CallError:
    """Return the error for a bug in the server; its text is only logged."""
    message = f"{tool} failed inside the server. See its log for details."
    return CallError(ErrorDetail(codes.INTERNAL_ERROR, message))


def _lines(violations: Sequence[tuple[str, str]]) -> str:
    # A caller may have chosen the name of a member.
    return "; ".join(f"at {shorten(path, 300) or 'the top'}: {rule}" for path, rule in violations)
