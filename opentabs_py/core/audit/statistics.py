"""Per-tool statistics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any, Final

from opentabs_py.core.trace.record import Outcome

_FAILED: Final[frozenset[Outcome]] = frozenset({"failed", "timed_out", "lost"})


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """The calls of a tool.

    Attributes:
        tool: Its MCP name.
        calls: How many there were.
        failed: How many of them failed, timed out or were lost.
        refused: How many were refused before anything was sent.
        cancelled: How many were cancelled by their caller.
        p50: The median of the seconds that a call took; None if all were refused. Refused calls
            do not count, because they take no time.
        p95: In how many seconds 95 % of them ended.
        longest: How many seconds the longest of them took.
    """

    tool: str
    calls: int
    failed: int
    refused: int
    cancelled: int
    p50: float | None
    p95: float | None
    longest: float | None

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return asdict(self)


def summarize(calls: Iterable[tuple[str, Outcome, float]]) -> list[ToolStatistics]:
    """Return the statistics of calls, given as tool, outcome and seconds; most used tools first."""
    outcomes: defaultdict[str, Counter[Outcome]] = defaultdict(Counter)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for tool, outcome, took in calls:
        outcomes[tool][outcome] += 1
        if outcome != "refused":
            seconds[tool].append(took)
    found = [_of_tool(tool, counts, sorted(seconds[tool])) for tool, counts in outcomes.items()]
    return sorted(found, key=lambda each: (-each.calls, each.tool))


def _of_tool(tool: str, counts: Counter[Outcome], seconds: Sequence[float]) -> ToolStatistics:
    return ToolStatistics(
        tool,
        calls=counts.total(),
        failed=sum(counts[each] for each in _FAILED),
        refused=counts["refused"],
        cancelled=counts["cancelled"],
        p50=_percentile(seconds, 0.5),
        p95=_percentile(seconds, 0.95),
        longest=seconds[-1] if seconds else None,
    )


def _percentile(in_order: Sequence[float], share: float) -> float | None:
    """Return the smallest value that this share of the values does not exceed."""
    return in_order[max(0, ceil(share * len(in_order)) - 1)] if in_order else None
