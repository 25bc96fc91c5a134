"""Print a report of drift."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.markup import escape

from opentabs_py.cli.terminal import out
from opentabs_py.core.drift.formats import SEVERITY_WORDS, call_text
from opentabs_py.core.drift.report import (
    CallVerdict,
    DriftReport,
    Finding,
    RecordingVerdict,
    Severity,
    State,
)
from opentabs_py.core.text import visible

_SIGNS: Final[Mapping[State, str]] = {
    "same": "[green]✓[/]",
    "drift": "[red]✗[/]",
    "unknown": "[yellow]?[/]",
    "skipped": "[dim]–[/]",
}
_STYLES: Final[Mapping[Severity, str]] = {"schema": "red", "tool": "red", "harmless": "yellow"}
_WORDS: Final[Mapping[State, str]] = {
    "same": "as recorded",
    "drift": "changed",
    "unknown": "cannot tell",
    "skipped": "not called",
}


def print_report(report: DriftReport) -> None:
    """Print a report to stdout, for users."""
    for each in report.recordings:
        _print_recording(each)
    states = report.states
    counts = [f"{states[state]} {word}" for state, word in _WORDS.items() if states.get(state)]
    requests = sum(len(each.requests) for each in report.recordings)
    if requests:
        counts.append(f"{requests} changed request{'s' * (requests != 1)}")
    out.print(f"[bold]{', '.join(counts)}[/]")


def _print_recording(verdict: RecordingVerdict) -> None:
    out.print(
        f"[bold]{_line(verdict.recording)}[/]  [dim]{_line(verdict.url)}[/]",
        soft_wrap=True,
    )
    if verdict.reason:
        out.print(f"  [yellow]Cannot tell:[/] {_line(verdict.reason)}", soft_wrap=True)
    for call in verdict.calls:
        _print_call(call, reason="" if call.reason == verdict.reason else call.reason)
    if verdict.requests:
        out.print("  [bold]Responses of the site that have changed[/]")
    for request in verdict.requests:
        by = f"  [dim]during {_line(', '.join(request.tools))}[/]" if request.tools else ""
        _print_line(request.severity, _line(request.request) + by)
        _print_findings(request.findings)
    out.print()


def _print_call(call: CallVerdict, *, reason: str) -> None:
    text = _line(call_text(call))
    if call.severity is not None:
        _print_line(call.severity, text)
    else:
        explanation = f"  [dim]{_line(reason)}[/]" if reason else ""
        out.print(f"  {_SIGNS[call.state]} {text}{explanation}", soft_wrap=True)
    _print_findings(call.findings)


def _print_line(severity: Severity, text: str) -> None:
    style = _STYLES[severity]
    out.print(f"  [{style}]✗[/] {text}  [{style}]{SEVERITY_WORDS[severity]}[/]", soft_wrap=True)


def _print_findings(findings: Sequence[Finding]) -> None:
    for each in findings:
        out.print(f"      {_line(each.text)}", soft_wrap=True)


def _line(text: str) -> str:
    """Return a text of the site on one line: it must not pass for the report's own lines.

    Nor may it end a block of code that the report is put into, such as in an issue.
    """
    return escape(visible(text).replace("\n", " "))
