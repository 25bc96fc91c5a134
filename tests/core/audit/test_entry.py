"""What the audit keeps of a call."""

from typing import Any

import pytest

from opentabs_py.core.audit.entry import AuditEntry, entry_of
from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ErrorDetail


def a_record(**more: Any) -> CallRecord:
    whole = {
        "call_id": "a1",
        "name": "chat_send",
        "started": 1000.0,
        "seconds": 0.25,
        "outcome": "succeeded",
        "limits": Limits(),
        "plugin": "chat",
        "tool": "send",
        "tab_id": 7,
        "url": "https://chat.example/room/secret",
        "client": "claude-code 2.1.0",
        "allowed": "auto",
    }
    return CallRecord(**{**whole, **more})


def test_a_call_is_kept_with_who_made_it_where_it_ran_and_how_it_ended() -> None:
    entry = entry_of(a_record())
    assert entry == AuditEntry(
        call_id="a1",
        started=1000.0,
        seconds=0.25,
        tool="chat_send",
        plugin="chat",
        site="chat.example",
        tab_id=7,
        client="claude-code 2.1.0",
        allowed="auto",
        outcome="succeeded",
        code=None,
        message=None,
        arguments=None,
        result=None,
    )
    assert entry.to_json()["tabId"] == 7
    assert len(entry.to_json()) == len(entry)


@pytest.mark.parametrize(
    ("url", "site"),
    [
        (None, None),
        ("http://127.0.0.1:8411/", "127.0.0.1:8411"),
        ("https://x.example", "x.example"),
        ("about:blank", None),
    ],
)
def test_the_site_is_the_host_of_its_page(url: str | None, site: str | None) -> None:
    assert entry_of(a_record(url=url)).site == site


def test_an_error_is_kept_as_its_code_because_its_text_may_quote_the_page() -> None:
    error = ErrorDetail("RATE_LIMITED", "ann@example.com is too fast.")
    entry = entry_of(a_record(outcome="failed", error=error))
    assert (entry.code, entry.message) == ("RATE_LIMITED", None)


def test_with_values_the_text_of_an_error_is_kept_too() -> None:
    error = ErrorDetail("RATE_LIMITED", "Slow down.")
    failed = a_record(outcome="failed", error=error, arguments="{}", result=None)
    entry = entry_of(failed, with_values=True)
    assert (entry.message, entry.arguments, entry.result) == ("Slow down.", "{}", None)
    entry = entry_of(a_record(arguments="{}", result="1"), with_values=True)
    assert (entry.message, entry.arguments, entry.result) == (None, "{}", "1")


def test_values_that_a_record_has_for_another_observer_are_not_kept() -> None:
    entry = entry_of(a_record(arguments='{"password": "hunter2"}', result="1"))
    assert (entry.arguments, entry.result) == (None, None)


@pytest.mark.parametrize("error", [None, ErrorDetail("SOMETHING", "")])
def test_a_cancelled_call_has_a_code_too(error: ErrorDetail | None) -> None:
    assert entry_of(a_record(outcome="cancelled", error=error)).code == "CANCELLED"
