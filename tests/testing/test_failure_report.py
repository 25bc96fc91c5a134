"""What the report of a failed test shows, and violations of tools' contracts."""

import pytest

from opentabs_py.core.fault_injection import FaultLog, InjectedFault, Rule
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.testing.expectations.breaches import (
    INVALID_REPORT,
    LATE_REPORT,
    breach_text,
    find_breaches,
)
from opentabs_py.testing.expectations.verdicts import CallSnapshot
from opentabs_py.testing.failure_report import annotation, failure_report
from opentabs_py.testing.transcript import PluginLog, Transcript

PROMISE = {"type": "object", "required": ["n"]}


def a_record(call_id: str = "0123456789abcdef") -> CallRecord:
    stamps = {"server.accepted": 0.0, "server.sent": 1.0, "worker.down": 2.0}
    return CallRecord(call_id, "chat_read", 0.0, 0.5, "lost", Limits(), stamps=stamps)


def test_a_call_that_the_failure_shows_is_not_shown_again() -> None:
    transcript = Transcript(records=[a_record()])

    shown = failure_report(transcript, [], shown="")
    again = failure_report(transcript, [], shown="... chat_read 01234567 ...")

    assert "server → service worker" in shown
    assert "server → service worker" not in again
    assert again.endswith("above")


def test_only_the_last_calls_and_lines_are_shown_and_the_others_counted() -> None:
    transcript = Transcript(
        records=[a_record(f"{n:032}") for n in range(12)],
        page_errors=[f"error {n}" for n in range(25)],
        logs=[PluginLog("chat", "info", "hello")],
    )

    text = failure_report(transcript, [], shown="")

    assert text.startswith("(2 earlier calls)")
    assert "(5 earlier lines)\n  error 5\n" in text
    assert text.endswith("plugin logs:\n  chat info: hello")


def test_a_running_call_is_shown_and_so_is_that_there_was_none() -> None:
    running = CallSnapshot("chat_read", ended=False, reports=[ProgressReport(0, 1)])

    assert failure_report(Transcript(), [], [running], shown="") == (
        "… chat_read  still running, 1 progress report"
    )
    assert failure_report(Transcript(), [], shown="") == "no call was made"


def test_a_call_that_runs_shows_how_far_it_has_come() -> None:
    text = failure_report(Transcript(), [a_record()], shown="")

    assert text.startswith("… chat_read  500 ms  still running")
    assert "service worker → relay" in text
    assert "reached    the service worker: the page's relay did not confirm it" in text
    assert "✗" not in text


def test_what_pages_and_plugins_wrote_does_nothing_to_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\u202e"
    transcript = Transcript(page_errors=[evil], logs=[PluginLog("chat", "info", evil)])
    text = failure_report(transcript, [], shown="")
    assert text.count("\\u001b]0;owned\\u0007\\u202e") == 2
    assert "\x1b" not in text + breach_text([evil])


def test_what_was_done_on_the_way_is_shown_with_what_does_it_again() -> None:
    injected = InjectedFault(Rule("port", "drop", kind="tool.progress"), {"up": "1-2"})
    log = FaultLog(7, (injected,), ("reload_extension()",))

    text = failure_report(Transcript(), [], shown="", faults=log)

    assert "faults, with seed 7:\n  drop port tool.progress: up 1-2\n  reload_extension()" in text
    again = FaultLog(7, (injected,)).to_json()
    assert f"\n  to repeat: opentabs.faults.replay({again!r})" in text
    assert "faults" not in failure_report(Transcript(), [], shown="", faults=FaultLog(7))


def test_an_annotation_is_one_line_whatever_is_in_it() -> None:
    assert annotation("a,b.py", 7, "x::y", "100%\nof: it") == (
        "::error file=a%2Cb.py,line=7,title=x%3A%3Ay::100%25%0Aof: it"
    )


@pytest.mark.parametrize("warning", [LATE_REPORT, INVALID_REPORT])
def test_a_breach_names_the_tool_of_a_hyphenated_plugin_as_clients_do(warning: str) -> None:
    [found] = find_breaches([], [f"{warning} my-chat export_all"])
    assert found.startswith("my_chat_export_all reported ")


def test_contracts_are_the_schema_of_the_value_and_progress_that_goes_forward() -> None:
    good = CallSnapshot("a", ended=True, value={"n": 1}, output_schema=PROMISE)
    worse = CallSnapshot("b", ended=True, value={}, output_schema=PROMISE)
    back = CallSnapshot("c", ended=False, reports=[ProgressReport(0, 2), ProgressReport(1, 2)])
    failed = CallSnapshot("d", ended=True, error=RuntimeError(), output_schema=PROMISE)

    invalid = f"{INVALID_REPORT} chat read_all\nnot {'x' * 999}"

    found = find_breaches(
        [good, worse, back, failed], ["other", f"{LATE_REPORT} chat read_all", invalid]
    )

    assert found == [
        'b returned a value that violates its output schema: the value: "n" is a required property',
        "c reported progress that did not increase: report 2 says 2, after 2",
        "chat_read_all reported after its end",
        f"chat_read_all reported progress that is not valid: not {'x' * 196}…",
    ]
    assert "  chat_read_all reported after its end\n" in breach_text(found)
