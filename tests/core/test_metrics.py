"""The metrics that are declared."""

import re

from opentabs_py.core.metrics import METRICS, NO_TOOL
from opentabs_py.core.plugin_names import plugin_id


def test_no_two_metrics_have_one_name() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)


def test_names_have_our_prefix_and_the_suffix_of_their_kind() -> None:
    for metric in METRICS:
        assert re.fullmatch(r"opentabs(_[a-z]+)+", metric.name), metric.name
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.name.endswith("_seconds") == (metric.kind == "histogram"), metric.name


def test_only_histograms_have_buckets_and_these_rise() -> None:
    for metric in METRICS:
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
        assert list(metric.buckets) == sorted(set(metric.buckets)), metric.name


def test_no_plugin_can_be_counted_with_the_calls_that_name_no_tool() -> None:
    try:
        named = plugin_id(f"opentabs-plugin-{NO_TOOL}")
    except ValueError:
        return
    raise AssertionError(f"a plugin can be named {named}")
