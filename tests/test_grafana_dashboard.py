"""docs/grafana-fleet.json uses only metrics that are exported."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.metrics import METRICS, Metric

DOCUMENT = Path(__file__).parent.parent / "docs" / "grafana-fleet.json"
DASHBOARD: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
VARIABLES: list[dict[str, Any]] = DASHBOARD["templating"]["list"]
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Those of Prometheus itself, and the process metrics of prometheus-client.
OTHERS = {"process_resident_memory_bytes"}
TARGET_LABELS = {"job", "instance"}


def expressions() -> Iterator[str]:
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    yield from (each["query"]["query"] for each in VARIABLES if each["type"] == "query")


def samples(metric: Metric) -> set[str]:
    """Return the names under which a metric's samples are exported."""
    if metric.kind != "histogram":
        return {metric.name}
    return {f"{metric.name}_{suffix}" for suffix in ("bucket", "sum", "count")}


BY_SAMPLE = {name: metric for metric in METRICS for name in samples(metric)}


def named(expression: str) -> set[str]:
    """Return the names of the metrics in an expression."""
    return set(re.findall(r"\b(?:opentabs|process)_\w+", expression))


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_names_only_metrics_that_are_exported(expression: str) -> None:
    assert named(expression)
    assert named(expression) - OTHERS <= BY_SAMPLE.keys()


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_uses_only_labels_that_its_metrics_have(expression: str) -> None:
    had = {label for name in named(expression) - OTHERS for label in BY_SAMPLE[name].labels}
    chosen = set(re.findall(r"(\w+)=~?\"", expression))
    grouped = {
        label
        for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
        for label in labels.split(", ")
    }
    assert chosen | grouped <= had | TARGET_LABELS | {"role", "le"}


def test_every_metric_is_shown_but_two_that_others_stand_for() -> None:
    shown = set[str]().union(*map(named, expressions()))
    missing = {metric.name for metric in METRICS if not samples(metric) & shown}
    # An endpoint knows the tabs of all workers; and a plugin's workers are shown.
    assert missing == {"opentabs_tabs_ready", "opentabs_fleet_plugin_browsers"}


def test_every_panel_reads_the_prometheus_that_is_chosen() -> None:
    [source] = [each for each in VARIABLES if each["type"] == "datasource"]
    assert (source["name"], source["query"]) == ("datasource", "prometheus")
    for panel in PANELS:
        assert [panel["datasource"], *(each["datasource"] for each in panel["targets"])] == [
            SOURCE
        ] * (1 + len(panel["targets"]))


def test_every_variable_of_an_expression_is_defined() -> None:
    defined = {each["name"] for each in VARIABLES} | {"__rate_interval"}
    used = {name for each in expressions() for name in re.findall(r"\$(\w+)", each)}
    assert used <= defined


def test_panels_have_their_own_ids_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)
