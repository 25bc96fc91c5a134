"""Statistics of many calls."""

from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.audit.statistics import ToolStatistics, summarize
from opentabs_py.core.trace.record import Outcome


def test_each_tool_has_its_numbers_and_the_most_used_is_first() -> None:
    calls: list[tuple[str, Outcome, float]] = [
        ("b", "succeeded", 0.3),
        ("a", "succeeded", 0.1),
        ("b", "failed", 0.2),
        ("b", "timed_out", 30.0),
        ("b", "lost", 0.4),
        ("b", "refused", 0.0),
        ("b", "cancelled", 5.0),
        ("c", "refused", 0.0),
    ]
    b, a, c = summarize(calls)
    assert b == ToolStatistics("b", 6, 3, 1, 1, 0.4, 30.0, 30.0)
    assert a == ToolStatistics("a", 1, 0, 0, 0, 0.1, 0.1, 0.1)
    assert c == ToolStatistics("c", 1, 0, 1, 0, None, None, None)
    assert b.to_json() == {
        "tool": "b",
        "calls": 6,
        "failed": 3,
        "refused": 1,
        "cancelled": 1,
        "p50": 0.4,
        "p95": 30.0,
        "longest": 30.0,
    }


def test_without_calls_there_are_no_numbers() -> None:
    assert summarize([]) == []


def test_95_of_100_calls_took_no_longer_than_p95() -> None:
    [tool] = summarize(("t", "succeeded", float(n)) for n in range(1, 101))
    assert (tool.p50, tool.p95, tool.longest) == (50.0, 95.0, 100.0)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300))
def test_a_percentile_is_the_smallest_value_that_its_share_does_not_exceed(
    values: list[float],
) -> None:
    [tool] = summarize(("t", "succeeded", each) for each in values)
    for found, percent in ((tool.p50, 50), (tool.p95, 95)):
        assert found in values
        assert 100 * sum(each <= found for each in values) >= percent * len(values)
        assert 100 * sum(each < found for each in values) < percent * len(values)
