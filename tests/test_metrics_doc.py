"""docs/metrics.md describes the exported metrics."""

import re
from pathlib import Path
from typing import get_args

import pytest

from opentabs_py.core.metrics import METRICS, NO_TOOL, Metric, Role
from opentabs_py.core.trace.record import Outcome
from tests.test_grafana_dashboard import BY_SAMPLE, named

DOCUMENT = (Path(__file__).parent.parent / "docs" / "metrics.md").read_text(encoding="utf-8")
ALERTS: list[tuple[str, str, str]] = re.findall(
    r"- alert: (\w+)\n +expr: (.+)\n(?: +for: .+\n)? +annotations:\n +summary: (.+)\n", DOCUMENT
)


def row(metric: Metric) -> str:
    """Return a metric's row of the table."""
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    roles = "all" if metric.roles == get_args(Role) else ", ".join(metric.roles)
    return f"| `{metric.name}` | {metric.kind} | {labels} | {roles} | {metric.help} |"


def test_its_table_is_that_of_the_code() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| `opentabs_")]
    assert rows == [row(metric) for metric in METRICS]


def test_every_outcome_is_explained() -> None:
    [line] = re.findall(r"^- `outcome` is (.*?)^- ", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", line)) == set(get_args(Outcome))


def test_the_label_of_calls_that_name_no_tool_is_the_codes() -> None:
    assert f"`{NO_TOOL}` for calls that name no tool" in DOCUMENT


def test_every_alert_is_looked_at() -> None:
    assert len(ALERTS) == DOCUMENT.count("- alert:") > 0


@pytest.mark.parametrize(("expression", "summary"), [alert[1:] for alert in ALERTS])
def test_an_alert_reads_only_metrics_and_labels_that_are_exported(
    expression: str, summary: str
) -> None:
    names = named(expression)
    assert names
    assert names <= BY_SAMPLE.keys()
    had = {label for name in names for label in BY_SAMPLE[name].labels} | {"role"}
    assert set(re.findall(r"(\w+)(?:=~|!=|=)\"", expression)) <= had
    assert set(re.findall(r"\$labels\.(\w+)", summary)) <= had | {"instance"}
