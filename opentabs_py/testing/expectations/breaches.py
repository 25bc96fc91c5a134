"""Checks that run after every test: broken tool contracts, and faults that had no effect.

Pure functions of what was recorded.
"""

from collections.abc import Sequence

from opentabs_py.core.fault_injection import Rule
from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.text import visible
from opentabs_py.testing.expectations.verdicts import (
    CallSnapshot,
    not_increasing,
    schema_violations,
)

# The runtime writes these, once per call.
LATE_REPORT = "OpenTabs: reported progress after its end:"
INVALID_REPORT = "OpenTabs: reported progress that is not valid:"
REPORT_SHOWN = 200  # characters of what is wrong with a report
SHOWN = 3  # schema violations shown per value; the rest are most likely similar


def find_breaches(calls: Sequence[CallSnapshot], page_warnings: Sequence[str]) -> list[str]:
    """Return the ways in which a test's calls broke their tools' contracts.

    A value must match the output schema; each progress value must be above the previous one, so
    that progress bars never move backwards; and nothing may be reported that is not valid, or after
    the end.
    """
    breaches: list[str] = []
    for seen in calls:
        if seen.outcome == "succeeded" and seen.output_schema is not None:
            breaches += [
                f"{seen.name} returned a value that violates its output schema: {violation}"
                for violation in schema_violations(seen.output_schema, seen.value)[:SHOWN]
            ]
        if (step := not_increasing(seen.reports)) is not None:
            breaches.append(f"{seen.name} reported progress that did not increase: {step}")
    for text in page_warnings:
        if text.startswith(LATE_REPORT):
            breaches.append(f"{_tool_of(text, LATE_REPORT)} reported after its end")
        elif text.startswith(INVALID_REPORT):
            first, _, why = text.partition("\n")
            shown = why if len(why) <= REPORT_SHOWN else f"{why[:REPORT_SHOWN]}…"
            name = _tool_of(first, INVALID_REPORT)
            breaches.append(f"{name} reported progress that is not valid: {shown}")
    return breaches


def _tool_of(line: str, prefix: str) -> str:
    plugin, _, tool = line.removeprefix(prefix).strip().partition(" ")
    return mcp_name(plugin, tool)


def breach_text(breaches: Sequence[str]) -> str:
    """Return the error message for a test whose tools broke their contracts."""
    lines = visible("\n".join(f"  {breach}" for breach in breaches))
    return (
        f"The test passed, but tools broke their contracts:\n{lines}\n"
        "Fix the tool, or mark the test: @pytest.mark.opentabs(allow_breaches=True)."
    )


def unfired_text(rules: Sequence[Rule]) -> str:
    """Return the error message for a test whose faults had no effect."""
    lines = "\n".join(f"  {rule}" for rule in rules)
    return (
        f"The test passed, but faults that it injected had no effect:\n{lines}\n"
        "No message matched them. Correct hop, kind=, direction= or nth=, or pass optional=True "
        "for a fault that may match nothing."
    )
