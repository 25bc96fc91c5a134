"""Every error of a call says what happened and what to do."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from opentabs_py.core import codes, failures
from opentabs_py.core.consent import Decision
from opentabs_py.core.fleet import failures as fleet
from opentabs_py.core.limits import Limits, Timers
from opentabs_py.core.protocol import WireError
from opentabs_py.errors import (
    BrokenResultError,
    CallError,
    CallRefusedError,
    CallTimeoutError,
    ChainError,
    ErrorDetail,
    ToolError,
    ToolFailedError,
)

REPOSITORY = Path(__file__).parents[2]
# Exit codes of `opentabs call` other than 3.
EXITS = {CallRefusedError: 2, ToolFailedError: 1, BrokenResultError: 1}
CODES = {code for name, code in vars(codes).items() if name.isupper()}
IN_PAGES = [
    "extension/content/page_tools.js",
    "extension/content/relay.js",
    "adapter_js/runtime.js",
]


def timed_out(which: str = "idle", *, reports: int = 0, connected: bool = True) -> CallTimeoutError:
    ceiling = 300.0 if which == "idle" else 40.0
    timers = Timers(Limits(30.0, ceiling), started=100.0, heard=112.5, reports=reports)
    return failures.timed_out(timers, connected=connected)


MADE: list[tuple[Callable[[], CallError], type[CallError], str, str, str]] = [
    (lambda: failures.lost("tab_closed"), ChainError, "TAB_CLOSED",
     "tab was closed", "check before you call again"),
    (lambda: failures.lost("navigated"), ChainError, "PAGE_NAVIGATED",
     "navigated or reloaded", "check before you call again"),
    (lambda: failures.lost("crashed"), ChainError, "PAGE_CRASHED",
     "page crashed", "check before you call again"),
    (lambda: failures.lost("reloaded"), ChainError, "EXTENSION_RELOADED",
     "extension reloaded", "check before you call again"),
    (lambda: failures.lost("not_delivered"), ChainError, "NOT_DELIVERED",
     "did not run", "Call again"),
    (lambda: failures.asked_tab_gone("chat_send"), ChainError, "NOT_DELIVERED",
     "so the tool did not run", "Call again"),
    (lambda: failures.asked_about_other("page_click", 'button "No"', 'button "Yes"'),
     ChainError, "NOT_DELIVERED", 'on the button "No", but', "Call again"),
    (lambda: failures.asked_about_other("page_dialog", "", ""), ChainError, "NOT_DELIVERED",
     "on the page, but", "Call again"),
    (lambda: failures.tool_raised("export", "ValueError", "…"), ToolFailedError,
     "INTERNAL_ERROR", "export failed: ValueError", "See the server's log"),
    (lambda: failures.result_not_serializable("export", "a socket"), ToolFailedError,
     "RESULT_NOT_SERIALIZABLE", "not JSON-serializable: a socket", "This is a bug in the tool"),
    (lambda: failures.result_too_large("export", 2000, 1000), ToolFailedError,
     "RESULT_TOO_LARGE", "is 2,000 characters", "Ask for less"),
    (lambda: failures.id_in_use("mine"), CallRefusedError, "INVALID_ARGUMENTS",
     "'mine' is still running", "Use another call_id"),
    (lambda: failures.no_stream("abc"), CallRefusedError, "UNKNOWN_STREAM",
     "This session has no stream 'abc'", "Pass the id from the result"),
    (lambda: failures.python_tool_timed_out(Timers(Limits(), 0.0, 3.0, 2), declared=False),
     CallTimeoutError, "TIMEOUT_IDLE",
     "2 progress reports arrived, the last 3.0 s", "report progress more often"),
    (lambda: timed_out("idle"), CallTimeoutError, "TIMEOUT_IDLE",
     "no progress for 30 s", "call reportProgress() more often"),
    (lambda: timed_out("ceiling"), CallTimeoutError, "TIMEOUT_CEILING",
     "no result after 40 s", "raise the ceiling"),
    (failures.not_connected, ChainError, "EXTENSION_NOT_CONNECTED",
     "not connected", "`opentabs doctor`"),
    (lambda: failures.no_browser("There is no Chromium. Install one."), ChainError,
     "EXTENSION_NOT_CONNECTED", "There is no Chromium", "Install one"),
    (lambda: failures.server_stopped("chat_send", has_begun=False), ChainError,
     "SERVER_STOPPED", "chat_send did not run", "Call again once it is back"),
    (lambda: failures.server_stopped("chat_send", has_begun=True), ChainError,
     "SERVER_STOPPED", "stopped while chat_send was running", "check before you call again"),
    (lambda: failures.no_tools("chat_send", knows_server=True), CallRefusedError,
     "UNKNOWN_TOOL", "'chat_send': no server is running", "Start a server"),
    (lambda: failures.no_tools("chat_send", knows_server=False), CallRefusedError,
     "UNKNOWN_TOOL", "does not use a running server", "Name the directory"),
    (lambda: failures.only_by_gateway("chat_send", "call_tool"), CallRefusedError,
     "UNKNOWN_TOOL", "Call 'chat_send' through call_tool", "its name and arguments"),
    (lambda: failures.result_breaks_schema("chat_send", [("id", "no")], value=1),
     BrokenResultError, "RESULT_BREAKS_SCHEMA", "chat_send succeeded",
     "This is a bug in the tool"),
    (lambda: failures.no_tab("chat", ["https://a/*", "https://b/*"]), ChainError,
     "TAB_NOT_FOUND", "No open tab matches", "Open https://a/ or https://b/"),
    (lambda: failures.own_tab_left("chat", 9), ChainError, "TAB_NOT_FOUND",
     "Tab 9, which you opened for the plugin 'chat', shows no page of that plugin",
     "open the page again"),
    (lambda: failures.no_tab("chat", []), ChainError, "TAB_NOT_FOUND",
     "'chat'", "Open its site"),
    (lambda: failures.no_tab("chat", ["https://a/*"], refused="Allow it."), ChainError,
     "TAB_NOT_FOUND", "Open https://a/", "call again. Allow it."),
    (lambda: failures.wrong_tab("plugin 'chat'", 9, {1: "General\n| Chat", 2: ""}), ChainError,
     "TAB_NOT_FOUND", 'Tabs that do: 1 "General | Chat", 2.', "Leave out tabId"),
    (lambda: failures.wrong_tab("plugin 'chat'", 9, {}), ChainError, "TAB_NOT_FOUND",
     "No open tab does", "leave out tabId"),
    (lambda: failures.other_instance("chat", 9, "work", None), ChainError,
     "TAB_NOT_FOUND", "Tab 9 shows no instance", "name the instance of that tab"),
    (lambda: failures.not_ready("chat", "https://a/", "isReady() threw: signed out"), ChainError,
     "TAB_NOT_READY", "signed out", "Ask the user to sign in there"),
    (lambda: failures.not_signed_in(failures.not_ready("chat", "https://a/", "x")), ChainError,
     "TAB_NOT_READY", "They were asked and have not signed in", "wait until they say"),
    (lambda: failures.not_ready_yet("chat", "https://a/", "the page is loading"), ChainError,
     "TAB_NOT_READY", "the page is loading", "Call again when it is"),
    (lambda: failures.does_not_run("chat", "https://a/", "its adapter is not there"), ChainError,
     "PLUGIN_NOT_LOADED", "'chat' does not run in https://a/: its adapter is not there. Reload",
     "look for the plugin's error in the page's console"),
    (lambda: failures.unknown_tool("chat_sent", ["chat_send", "chat_seen"]), CallRefusedError,
     "UNKNOWN_TOOL", "no tool 'chat_sent'", "did you mean 'chat_send' or 'chat_seen'?"),
    (lambda: failures.unknown_tool("x", []), CallRefusedError, "UNKNOWN_TOOL",
     "no tool 'x'", "list the tools"),
    (lambda: failures.unknown_tool("x", [], ["/x is missing.", "/y is broken."]), CallRefusedError,
     "UNKNOWN_TOOL", "no tool 'x', and a plugin was skipped: /x is missing. /y is broken.", ""),
    (lambda: failures.unknown_tool("x", ["z"], ["/x is missing."]), CallRefusedError,
     "UNKNOWN_TOOL", "a plugin was skipped: /x is missing.", "Or did you mean 'z'?"),
    (lambda: failures.no_stream("y" * 1000), CallRefusedError, "UNKNOWN_STREAM",
     f"no stream '{'y' * 119}…'", "Pass the id"),
    (lambda: failures.unknown_tool("y" * 1000, []), CallRefusedError, "UNKNOWN_TOOL",
     f"no tool '{'y' * 119}…'", "list the tools"),
    (lambda: failures.invalid_arguments("chat_send", [("y" * 1000, "no")]),
     CallRefusedError, "INVALID_ARGUMENTS", f" at {'y' * 299}…: no", "Correct them"),
    (lambda: failures.invalid_arguments("chat_send", [("to[0]", "7 is too short"), ("", "no")]),
     CallRefusedError, "INVALID_ARGUMENTS", "at to[0]: 7 is too short; at the top: no",
     "Correct them"),
    (lambda: failures.input_too_large("chat_send", 70_000, 65_536), CallRefusedError,
     "INPUT_TOO_LARGE", "70,000 characters of JSON; the limit is 65,536", "Send less"),
    (lambda: failures.several_browsers("plugin 'chat'", {"work": {1: "Team"}, "home": {}}),
     ChainError, "SEVERAL_BROWSERS", "has tabs in 2 browsers", 'with tabId. work: 1 "Team"; home.'),
    (lambda: failures.which_browser(["work", "home"]), CallRefusedError, "SEVERAL_BROWSERS",
     "There are several browsers", "Pass one of these as `browser`: work, home."),
    (lambda: failures.which_browser(["work"], "wrok"), CallRefusedError, "INVALID_ARGUMENTS",
     "There is no browser 'wrok'", "Pass one of these as `browser`: work."),
    (lambda: failures.others_tab("plugin 'chat'", 9), ChainError, "TAB_NOT_YOURS",
     "Tab 9 belongs to another client", "Leave out tabId"),
    (lambda: failures.not_own_tab(9), CallRefusedError, "TAB_NOT_YOURS",
     "You did not open tab 9 with tabs_open", "Only such tabs can be closed"),
    (lambda: failures.tab_not_opened(f"https://{'a' * 1000}"), ChainError, "TAB_NOT_OPENED",
     f"for https://{'a' * 111}….", "call again"),
    (lambda: failures.which_browser(["work"], "y" * 1000), CallRefusedError, "INVALID_ARGUMENTS",
     f"no browser '{'y' * 119}…'.", "Pass one of these"),
    (lambda: failures.tab_not_opened("https://a/"), ChainError, "TAB_NOT_OPENED",
     "did not open a tab for https://a/", "update it and reload it"),
    (failures.page_tool_gone, ChainError, "PAGE_TOOL_GONE",
     "so it did not run", "Call again in a second"),
    (lambda: failures.asked_page_gone("add"), ChainError, "PAGE_TOOL_GONE",
     "while the user was asked to allow add", "Call again if another page offers it"),
    (lambda: failures.turned_off("chat_send", "chat.send", Decision("off", "a rule says so")),
     CallRefusedError, "CONSENT_NEEDED",
     "chat_send is turned off, because a rule says so", "Only the user can change that"),
    (lambda: failures.nobody_to_ask("chat_send", "chat.send"), CallRefusedError, "CONSENT_NEEDED",
     "no way to ask them here", "They can open the console"),
    (lambda: failures.client_cannot_ask("chat_send", "chat.send", "a\nbug."), CallRefusedError,
     "CONSENT_NEEDED", "The client answered the question with an error: a bug. The user",
     "allow it for good"),
    (lambda: failures.client_gone("chat_send"), CallRefusedError, "CONSENT_NEEDED",
     "the connection of the call dropped before they answered, so it did not run", "Call again."),
    (lambda: failures.nobody_answered("chat_send", "chat.send"), CallRefusedError,
     "CONSENT_NEEDED", "so it did not run", "Call again when they are there"),
    (lambda: failures.not_allowed("chat_send"), CallRefusedError, "CONSENT_REFUSED",
     "so it did not run", "Call it again only if they ask"),
    (lambda: failures.cancelled_by("the user"), CallError, "CANCELLED",
     "cancelled by the user.", ""),
    (lambda: fleet.worker_cannot_ask("w1", "chat_send", "chat.send"), CallRefusedError,
     "CONSENT_NEEDED", "In the settings of the worker w1, chat_send needs its user's permission",
     "or start the worker with --permission chat.send=auto"),
    (fleet.no_browser, ChainError, "NO_WORKER",
     "No worker of the fleet has a browser now", "start one with `opentabs worker"),
    (lambda: fleet.no_worker("chat"), ChainError, "NO_WORKER",
     "No worker of the fleet serves chat", "start one with `opentabs worker`"),
    (lambda: fleet.no_workers("default", "nats://a", {}), ChainError, "NO_WORKER",
     "No worker takes calls in the fleet 'default' at nats://a", "start one with `opentabs"),
    (lambda: fleet.no_workers("ci", "nats://a", {"site": "eu", "os": "x"}), ChainError,
     "NO_WORKER", "No worker labelled site=eu, os=x takes calls in the fleet 'ci'", "fleet status"),
    (lambda: fleet.no_such_tab(9), ChainError, "TAB_NOT_FOUND",
     "No worker of the fleet has a tab 9", "Leave out tabId"),
    (lambda: fleet.worker_lost("w1"), ChainError, "WORKER_LOST",
     "The worker w1 went away", "check before you call again"),
    (lambda: fleet.invalid_worker_answer("w1", "it is empty"), ChainError, "FLEET_PROTOCOL",
     "The worker w1 sent an invalid answer (it is empty).", "check before you call again"),
    (lambda: fleet.unreadable_request("w1", "it is empty"), ChainError, "FLEET_INVALID_REQUEST",
     "The worker w1 cannot read the request (it is empty), so the tool did not run.",
     "Use one version"),
    (lambda: fleet.not_linked("nats://a", sent=True), ChainError, "FLEET_NOT_CONNECTED",
     "NATS at nats://a cannot be reached", "check before you call again"),
    (lambda: fleet.not_linked("nats://a", sent=False), ChainError, "FLEET_NOT_CONNECTED",
     "NATS at nats://a cannot be reached; restart it. The tool did not run.",
     "Call again once NATS is back"),
    (lambda: fleet.fleet_busy(3, 1.5), ChainError, "FLEET_BUSY",
     "All suitable workers are busy and 3 calls are already queued. The call did not run.",
     "Call again after retryAfterMs"),
    (lambda: fleet.fleet_busy(2, 1.5), ChainError, "FLEET_BUSY",
     "busy and 2 calls are already queued.", "Call again after retryAfterMs"),
    (lambda: fleet.fleet_busy(1, 1.5), ChainError, "FLEET_BUSY",
     "busy and 1 call is already queued.", "Call again after retryAfterMs"),
    (lambda: fleet.fleet_busy(0, 1.5), ChainError, "FLEET_BUSY",
     "All suitable workers are busy. The", "Call again after retryAfterMs"),
    (lambda: failures.cancelled("the client cancelled it"), CallError, "CANCELLED",
     "cancelled: the client cancelled it.", ""),
    (lambda: failures.internal("chat_send"), CallError, "INTERNAL_ERROR",
     "chat_send failed inside the server", "See its log"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "code", "what", "advice"), MADE)
def test_an_error_says_what_happened_and_then_what_to_do(
    make: Callable[[], CallError], kind: type[CallError], code: str, what: str, advice: str
) -> None:
    error = make()
    text = str(error)
    assert type(error) is kind
    assert error.detail.code == code
    assert error.detail.message == text
    assert what in text
    assert text.index(what) <= text.index(advice) or advice == ""
    assert text.endswith((".", "?"))


def documented(code: str) -> tuple[str | None, str, str]:
    """Return a code's category, whether to retry, and the exit code, from docs/architecture.md."""
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    [row] = [line for line in text.splitlines() if re.match(rf"\| [^|]*`{code}`[^|]* \|", line)]
    *_, category, retry, exit_code, _ = [cell.strip(" `") for cell in row.split("|")]
    return category or None, retry, exit_code


@pytest.mark.parametrize(
    ("make", "code"),
    [(make, code) for make, _, code, *_ in MADE],
)
def test_an_error_has_the_category_that_is_documented_and_may_be_repeated_as_documented(
    make: Callable[[], CallError], code: str
) -> None:
    category, retry, exit_code = documented(code)
    assert make().detail.category == category
    if retry in ("yes", "no"):
        assert make().detail.retryable is (retry == "yes")
    assert str(EXITS.get(type(make()), 3)) in exit_code


def test_the_documented_codes_are_those_that_are_declared() -> None:
    docs = REPOSITORY / "docs"
    table = (docs / "architecture.md").read_text().partition("## Error codes")[2].partition("##")[0]
    cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    plugins = (docs / "plugins.md").read_text()
    of_sdk = re.findall(r"^\| `ToolError\..*?\| `(\w+)`", plugins, re.MULTILINE)

    assert {*re.findall(r"`(\w+)`", cells), *of_sdk, codes.UNEXPECTED_RESPONSE} == CODES


@pytest.mark.parametrize("source", IN_PAGES)
def test_the_codes_of_page_code_are_declared(source: str) -> None:
    found = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+)"', (REPOSITORY / source).read_text()))
    assert found
    assert found <= CODES


def test_a_call_that_a_page_s_reload_has_overtaken_may_be_made_again() -> None:
    detail = failures.page_tool_gone().detail
    assert (detail.retryable, detail.retry_after) == (True, 1.0)


def test_the_runtime_says_what_the_server_says_of_the_same_refusals() -> None:
    runtime = (REPOSITORY / "adapter_js/runtime.js").read_text()
    gone = failures.page_tool_gone().detail.message
    *_, advice = failures.not_ready("chat", "x", "y").detail.message.partition("x: y. ")
    assert f'"{gone}"' in runtime
    assert f'"{advice}"' in runtime


def test_no_other_python_code_writes_a_code_out() -> None:
    written = [
        (path.name, code.value)
        for path in sorted((REPOSITORY / "opentabs_py").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and (code := _code_of(call)) is not None
    ]
    assert written == []
    assert ToolError("It failed.").detail.code == codes.TOOL_ERROR


def _code_of(call: ast.Call) -> ast.Constant | None:
    """Return the code of an error that is made, if it is written as a string."""
    at = {"ErrorDetail": 0, "WireError": 0, "ToolError": 1}.get(getattr(call.func, "id", ""))
    if at is None:
        return None
    given = [*call.args[at : at + 1], *(each.value for each in call.keywords if each.arg == "code")]
    return next((each for each in given if isinstance(each, ast.Constant)), None)


def test_only_a_page_that_is_not_loading_needs_its_user() -> None:
    assert failures.needs_sign_in(failures.not_ready("chat", "https://a/", "isReady() is not true"))
    assert not failures.needs_sign_in(failures.not_ready_yet("chat", "https://a/", "it loads"))
    assert not failures.needs_sign_in(failures.does_not_run("chat", "https://a/", "it failed"))
    assert not failures.needs_sign_in(failures.no_tab("chat", []))


def test_what_may_be_repeated_depends_on_more_than_the_code() -> None:
    begun = [failures.server_stopped("x", has_begun=has_begun) for has_begun in (False, True)]
    assert [error.detail.retryable for error in begun] == [True, False]
    assert failures.no_tab("chat", []).detail.retryable is True
    assert (
        failures.not_ready("chat", "https://a/", "isReady() is not true").detail.retryable is False
    )
    assert failures.not_ready_yet("chat", "https://a/", "it loads").detail.retryable is True
    assert failures.does_not_run("chat", "https://a/", "it failed").detail.retryable is False
    assert failures.wrong_tab("plugin 'chat'", 9, {}).detail.retryable is False
    assert failures.other_instance("chat", 9, "work", None).detail.retryable is False
    assert fleet.no_such_tab(9).detail.retryable is False


def test_an_error_keeps_what_its_reader_needs_besides_the_text() -> None:
    broken = failures.result_breaks_schema("chat_send", [("id", "no")], value={"id": 1})
    assert broken.value == {"id": 1}
    assert failures.tool_raised("export", "ValueError", "at run").detail.stack == "at run"
    assert fleet.fleet_busy(3, 1.23456).detail.retry_after == 1.235


def test_a_page_title_in_an_error_is_short_and_readable() -> None:
    text = str(failures.wrong_tab("plugin 'chat'", 9, {1: "Grüße" * 100}))
    assert f'Tabs that do: 1 "{("Grüße" * 12)[:59]}…".' in text


def test_the_error_of_a_timer_in_full() -> None:
    assert str(timed_out("idle")) == (
        "Timed out (idle): no progress for 30 s; no progress report arrived; the call was sent to "
        "the page. The tool was asked to stop, but may already have finished; check before "
        "retrying. Have the tool call reportProgress() more often, or raise the idle timeout "
        "(--idle)."
    )
    assert str(timed_out("ceiling", reports=1, connected=False)) == (
        "Timed out (ceiling): no result after 40 s, the longest a call may take; 1 progress report "
        "arrived, the last 12.5 s after the start; the extension is not connected. The tool may "
        "already have finished; check before retrying. Have the tool do less per call, or raise "
        "the ceiling (--ceiling)."
    )
    assert str(failures.python_tool_timed_out(Timers(Limits(), 0.0, 3.0, 2), declared=False)) == (
        "Timed out (idle): no progress for 30 s; 2 progress reports arrived, the last 3.0 s after "
        "the start. The tool was asked to stop, but may already have finished; check before "
        "retrying. Have the tool report progress more often, or raise the idle timeout (--idle)."
    )


def test_only_a_lost_call_that_did_not_run_may_be_repeated_blindly() -> None:
    gone = [failures.lost("tab_closed"), failures.lost("navigated"), failures.lost("crashed")]
    assert not any(error.detail.retryable for error in gone)
    assert all(failures.MAY_HAVE_RUN in str(error) for error in gone)
    assert failures.lost("not_delivered").detail.retryable


def test_a_timeout_says_how_many_reports_came_and_when_the_last_one_did() -> None:
    assert "no progress report arrived" in str(timed_out(reports=0))
    text = str(timed_out(reports=3))
    assert "3 progress reports arrived, the last 12.5 s after the start" in text


def test_a_timeout_says_which_hop_was_reached() -> None:
    assert "the call was sent to the page" in str(timed_out(connected=True))
    assert "the extension is not connected" in str(timed_out(connected=False))


def test_a_timeout_says_which_timer_ended_it() -> None:
    assert (timed_out("idle").timer, timed_out("ceiling").timer) == ("idle", "ceiling")


def test_the_fields_of_a_tools_error_stay_whole() -> None:
    wire = WireError(
        code="SLOW_DOWN", message="Too fast.", category="rate_limit", retryable=True,
        retry_after_ms=1500.0, stack="at run",
    )  # fmt: skip
    error = failures.from_wire(wire)
    assert isinstance(error, ToolFailedError)
    assert error.detail == ErrorDetail("SLOW_DOWN", "Too fast.", "rate_limit", True, 1.5, "at run")


@pytest.mark.parametrize(("started", "kind"), [(False, ChainError), (True, ToolFailedError)])
def test_an_error_before_the_start_of_the_tool_is_a_chain_error_whatever_its_code(
    started: bool, kind: type[Exception]
) -> None:
    wire = WireError(code="TAB_NOT_READY", message="No.", started=started)
    assert type(failures.from_wire(wire)) is kind


def test_a_refusal_for_lack_of_consent_says_who_can_change_that_and_how() -> None:
    off = failures.turned_off("chat_send", "chat.send", Decision("off", "a rule says so"))
    review = failures.turned_off(
        "chat_send", "chat.send", Decision("off", "it is new", needs_review=True)
    )
    nobody = failures.nobody_to_ask("chat_send", "chat.send")
    silent = failures.nobody_answered("chat_send", "chat.send")
    refused = failures.not_allowed("chat_send")
    allow = '"chat.send" = "auto" under [permissions]'
    assert "because a rule says so" in str(off)
    assert allow in str(off)
    assert str(review).endswith("opentabs review chat.")
    assert allow not in str(review)
    assert allow in str(nobody)
    assert allow in str(silent)
    codes = [each.detail.code for each in (off, review, nobody, silent, refused)]
    assert codes == [*["CONSENT_NEEDED"] * 4, "CONSENT_REFUSED"]
    retryable = [each.detail.retryable for each in (off, review, nobody, silent, refused)]
    assert retryable == [False, False, False, True, False]


def test_a_call_that_someone_else_ended_names_them() -> None:
    error = failures.cancelled_by("the user, in the console")
    assert error.detail.code == "CANCELLED"
    assert str(error) == "The call was cancelled by the user, in the console."


def test_only_an_is_ready_that_threw_may_be_a_bug_of_its_plugin() -> None:
    threw = failures.not_ready("chat", "https://a/", "isReady() threw: TypeError: x is undefined")
    assert str(threw).endswith("If they are signed in, this is a bug in the plugin.")
    false = failures.not_ready("chat", "https://a/", "isReady() is not true")
    assert "bug" not in str(false)
