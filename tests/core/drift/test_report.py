"""Reports of drift, and the exit code that follows from them."""

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from opentabs_py.core.drift.formats import call_text, to_json, to_junit
from opentabs_py.core.drift.report import (
    CallVerdict,
    DriftReport,
    Finding,
    RecordingVerdict,
    RequestVerdict,
    Severity,
    State,
)


def call(state: State, severity: Severity | None = None, **more: Any) -> CallVerdict:
    return CallVerdict("t", {"a": 1}, state, severity, **more)


def report(*calls: CallVerdict, requests: Any = (), reason: str = "") -> DriftReport:
    return DriftReport([RecordingVerdict("x.har", "https://a/", calls, requests, reason)])


CHANGED = RequestVerdict("GET /a", ["t"], "harmless", [Finding("came", "b is new (null)", "b")])


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (report(call("same")), 0),
        (report(call("same"), call("skipped")), 0),
        (report(call("same"), call("drift", "tool"), call("unknown")), 1),
        (report(call("same"), requests=[CHANGED]), 1),
        (report(call("same"), call("unknown")), 3),
        (report(call("skipped")), 3),
        (report(call("same"), reason="No."), 3),
        (report(), 3),
    ],
)
def test_the_exit_code_says_whether_something_has_changed(given: DriftReport, code: int) -> None:
    assert given.exit_code() == code


@pytest.mark.parametrize(
    ("least", "codes"), [("harmless", [1, 1, 1]), ("tool", [0, 1, 1]), ("schema", [0, 0, 1])]
)
def test_less_severe_drift_may_be_let_pass(least: Severity, codes: list[int]) -> None:
    severities: list[Severity] = ["harmless", "tool", "schema"]

    assert [report(call("drift", each)).exit_code(least) for each in severities] == codes


def test_json_has_what_the_report_has() -> None:
    written = to_json(report(call("same"), requests=[CHANGED]), exit_code=1)

    assert (written["exitCode"], written["calls"]) == (1, {"same": 1})
    [recording] = written["recordings"]
    assert recording["calls"][0]["arguments"] == {"a": 1}
    assert recording["requests"][0]["findings"] == [
        {"what": "came", "text": "b is new (null)", "path": "b"}
    ]


def test_junit_has_drift_as_failures_and_inconclusive_calls_as_skipped() -> None:
    calls = [
        call("same", seconds=1.5),
        call("drift", "tool", findings=[Finding("went", "b is \x1b[1mgone", "b")]),
        call("unknown", reason="Signed out."),
        call("skipped", reason="It writes."),
    ]

    root = ET.fromstring(to_junit(report(*calls, requests=[CHANGED])))

    [suite] = root
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped", "time")} == {
        "tests": "5",
        "failures": "2",
        "skipped": "2",
        "time": "1.500",
    }
    messages = [[part.get("message") for part in case] for case in suite]
    assert messages == [
        [],
        ["breaks the tool"],
        ["could not tell: Signed out."],
        ["not called: It writes."],
        ["harmless"],
    ]
    assert "\x1b" not in (suite[1][0].text or "")


def test_junit_is_written_for_a_file_whose_name_is_not_utf_8() -> None:
    text = to_junit(DriftReport([RecordingVerdict("menu\udce9.har", "https://a/", [call("same")])]))
    assert ET.fromstring(text.encode())[0].get("name") == "menu\ufffd.har"


def test_a_call_is_one_line() -> None:
    assert call_text(call("same")) == 't {"a": 1}'
    assert call_text(CallVerdict("t", {}, "same")) == "t"
    assert len(call_text(CallVerdict("t", {"a": "x" * 500}, "same"))) < 130
