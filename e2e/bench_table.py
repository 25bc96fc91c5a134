"""What the bench measures, as lines of a table and as JSON."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Work:
    """One line of the table.

    Attributes:
        floor: What a bare prototype of the same hops took, on the machine it was measured on.
        beside: Or the numbers of this run that are its floor, by their name.
        at_most: What is to be reached, where less is better.
        at_least: The same, where more is better.
    """

    name: str
    unit: str
    floor: str = "–"
    beside: str | None = None
    at_most: float | None = None
    at_least: float | None = None

    def reach(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:,g}"
        return "–" if self.at_least is None else f"≥ {self.at_least:,g}"

    def reached(self, value: float) -> bool | None:
        if self.at_most is not None:
            return value <= self.at_most
        return None if self.at_least is None else value >= self.at_least

    def floor_in(self, numbers: Mapping[str, Sequence[float]]) -> str:
        return self.floor if self.beside is None else f"{number(median(numbers[self.beside]))} here"


def show(works: Mapping[str, Work], numbers: Mapping[str, Sequence[float]]) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("work")
    for column in ("median", "min", "max"):
        table.add_column(column, justify="right")
    for column in ("unit", "floor", "reach", ""):
        table.add_column(column)
    for name, work in works.items():
        values = numbers[name]
        middle = median(values)
        reached = work.reached(middle)
        mark = {None: "", True: "[green]✓[/]", False: "[yellow]not reached[/]"}[reached]
        shown = [number(value) for value in (middle, min(values), max(values))]
        floor = work.floor_in(numbers)
        table.add_row(work.name, *shown, work.unit, floor, work.reach(), mark)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    console.print(table)
    rounds = max(len(values) for values in numbers.values())
    console.print(
        f"[dim]Rounds: {rounds}. Floors: bare prototypes, on a quiet machine; or, here, a bare "
        "MCP server in the same run.[/]"
    )


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def to_document(
    works: Mapping[str, Work], numbers: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    return [
        {
            "work": name,
            "description": work.name.strip(),
            "unit": work.unit,
            "median": round(median(numbers[name]), 4),
            "min": round(min(numbers[name]), 4),
            "max": round(max(numbers[name]), 4),
            "rounds": len(numbers[name]),
            "floor": work.floor_in(numbers),
            "reach": work.reach(),
            "reached": work.reached(median(numbers[name])),
        }
        for name, work in works.items()
    ]
