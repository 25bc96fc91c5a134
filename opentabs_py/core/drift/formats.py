"""Reports of drift for programs: JSON, and JUnit's XML."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final
from xml.etree import ElementTree as ET

from opentabs_py.core.drift.report import (
    CallVerdict,
    DriftReport,
    Finding,
    RecordingVerdict,
    RequestVerdict,
    Severity,
)
from opentabs_py.core.text import shorten, visible, well_formed

SEVERITY_WORDS: Final[dict[Severity, str]] = {
    "schema": "breaks the output schema",
    "tool": "breaks the tool",
    "harmless": "harmless",
}
_LONGEST: Final = 120  # characters of a call's arguments


def to_json(report: DriftReport, *, exit_code: int) -> dict[str, Any]:
    """Return a report as a JSON object; its members are those of the classes of `report`.

    Args:
        report: The report.
        exit_code: That of the command.
    """
    return {
        "exitCode": exit_code,
        "calls": dict(report.states),
        "recordings": [asdict(each) for each in report.recordings],
    }


def to_junit(report: DriftReport) -> str:
    """Return a report as JUnit's XML: a call is a test, and drift a failure.

    Inconclusive calls are skipped, with the reason.
    """
    suites = ET.Element("testsuites", name="opentabs verify")
    for each in report.recordings:
        suites.append(_suite(each))
    return well_formed(ET.tostring(suites, encoding="unicode", xml_declaration=True))


def call_text(call: CallVerdict) -> str:
    """Return a call in one line, as in `chat_list {"limit": 3}`."""
    arguments = json.dumps(call.arguments, ensure_ascii=False) if call.arguments else ""
    return visible(f"{call.tool} {shorten(arguments, _LONGEST)}").strip()


def _suite(verdict: RecordingVerdict) -> ET.Element:
    cases = [
        *(_call_case(verdict, call) for call in verdict.calls),
        *(_request_case(verdict, request) for request in verdict.requests),
    ]
    suite = ET.Element(
        "testsuite",
        name=verdict.recording,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        errors="0",
        time=f"{sum(call.seconds for call in verdict.calls):.3f}",
    )
    suite.extend(cases)
    return suite


def _call_case(verdict: RecordingVerdict, call: CallVerdict) -> ET.Element:
    case = ET.Element(
        "testcase", classname=verdict.recording, name=call_text(call), time=f"{call.seconds:.3f}"
    )
    if call.severity is not None:
        _add_failure(case, call.severity, call.findings)
    elif call.state in ("unknown", "skipped"):
        state = "could not tell" if call.state == "unknown" else "not called"
        ET.SubElement(case, "skipped", message=visible(f"{state}: {call.reason}"))
    return case


def _request_case(verdict: RecordingVerdict, request: RequestVerdict) -> ET.Element:
    case = ET.Element(
        "testcase", classname=verdict.recording, name=visible(request.request), time="0"
    )
    _add_failure(case, request.severity, request.findings)
    return case


def _add_failure(case: ET.Element, severity: Severity, findings: Sequence[Finding]) -> None:
    failure = ET.SubElement(case, "failure", type=severity, message=SEVERITY_WORDS[severity])
    failure.text = visible("\n".join(each.text for each in findings))
