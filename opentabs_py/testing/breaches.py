"""What fails a test unasked: tools that broke their contracts, and faults that did nothing.

Plain functions of what is known.
"""

from collections.abc import Sequence

from opentabs_py.core.faults import Rule
from opentabs_py.core.text import visible
from opentabs_py.testing.verdicts import Seen, not_increasing, schema_faults

LATE_REPORT = "OpenTabs: reported progress after its end:"  # the runtime writes it, once per call
SHOWN = 3  # faults of one value; the others are most likely alike


def find_breaches(calls: Sequence[Seen], page_warnings: Sequence[str]) -> list[str]:
    """Say what the calls of a test did against their tools' contracts.

    A value must be what the output schema promises; a progress value above the one before it,
    or agents see bars that go back; nothing is reported after the end.
    """
    breaches: list[str] = []
    for seen in calls:
        if seen.outcome == "succeeded" and seen.output_schema is not None:
            breaches += [
                f"{seen.name} gave what its output schema does not promise: {fault}"
                for fault in schema_faults(seen.output_schema, seen.value)[:SHOWN]
            ]
        if (step := not_increasing(seen.reports)) is not None:
            breaches.append(f"{seen.name} did not go forward in its progress: {step}")
    breaches += [
        f"{text.removeprefix(LATE_REPORT).strip().replace(' ', '_')} reported after its end"
        for text in page_warnings
        if text.startswith(LATE_REPORT)
    ]
    return breaches


def breach_text(breaches: Sequence[str]) -> str:
    """Return the error of a test whose tools broke their contracts."""
    lines = visible("\n".join(f"  {breach}" for breach in breaches))
    return (
        f"The test passed, but tools broke their contracts:\n{lines}\n"
        "Fix the tool, or mark the test: @pytest.mark.opentabs(allow_breaches=True)."
    )


def unfired_text(rules: Sequence[Rule]) -> str:
    """Return the error of a test whose faults did nothing."""
    lines = "\n".join(f"  {rule}" for rule in rules)
    return (
        f"The test passed, but faults that it planted did nothing:\n{lines}\n"
        "No message passed that they are for. Correct hop, kind=, direction= or nth=, or plant "
        "with optional=True what may have nothing to do."
    )
