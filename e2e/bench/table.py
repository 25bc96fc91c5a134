"""The results of the bench, as a table and as JSON."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of the table.

    Attributes:
        floor: What a bare prototype of the same hops took, on the machine where it was measured.
        beside: Or the name of the results of this run that are its floor: one per round.
        at_most: The goal, if less is better.
        at_least: The goal, if more is better.
        needs: What the measurement requires.
    """

    name: str
    unit: str
    floor: str = "–"
    beside: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    needs: str = ""

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

    def times_floor(self, values: Sequence[float], floors: Sequence[float]) -> float:
        """The median over the rounds of ours divided by the floor."""
        pairs = zip(values, floors, strict=True)
        is_rate = self.unit.endswith("/s")
        return median(floor / value if is_rate else value / floor for value, floor in pairs)


@contextmanager
def rounds_shown(total: int) -> Generator[Callable[[str], None]]:
    """Show the progress on stderr; yields a function to call with each workload's name."""
    progress = Progress(
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,  # drawn between workloads, never during one
    )
    with progress:
        task = progress.add_task("", total=total)

        def done(what: str) -> None:
            progress.update(task, advance=1, description=what, refresh=True)

        yield done


def show(measurements: Mapping[str, Measurement], numbers: Mapping[str, Sequence[float]]) -> None:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("measurement")
    for column in ("median", "min", "max"):
        table.add_column(column, justify="right")
    table.add_column("unit")
    for column in ("floor", "times"):
        table.add_column(column, justify="right")
    for column in ("reach", ""):
        table.add_column(column)
    for name, measurement in measurements.items():
        if name not in numbers:
            table.add_row(measurement.name, "–", "", "", f"needs {measurement.needs}")
            continue
        values = numbers[name]
        middle = median(values)
        reached = measurement.reached(middle)
        mark = {None: "", True: "[green]✓[/]", False: "[yellow]missed[/]"}[reached]
        shown = [number(value) for value in (middle, min(values), max(values))]
        floor = measurement.floor_in(numbers)
        times = (
            ""
            if measurement.beside is None
            else f"{measurement.times_floor(values, numbers[measurement.beside]):.2f}"
        )
        table.add_row(
            measurement.name, *shown, measurement.unit, floor, times, measurement.reach(), mark
        )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.print(table)
    rounds = max(len(values) for values in numbers.values())
    console.print(
        f"[dim]Rounds: {rounds}. Floors: bare prototypes, measured in this run if marked “here”, "
        "otherwise on a quiet machine. Times: ours divided by the floor of its round, median.[/]"
    )


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def to_document(
    measurements: Mapping[str, Measurement], numbers: Mapping[str, Sequence[float]]
) -> list[dict[str, Any]]:
    return [
        {
            "measurement": name,
            "description": measurement.name.strip(),
            "unit": measurement.unit,
            "median": round(median(numbers[name]), 4),
            "min": round(min(numbers[name]), 4),
            "max": round(max(numbers[name]), 4),
            "rounds": len(numbers[name]),
            "floor": measurement.floor_in(numbers),
            "floor_median": None
            if measurement.beside is None
            else round(median(numbers[measurement.beside]), 4),
            "times_floor": None
            if measurement.beside is None
            else round(measurement.times_floor(numbers[name], numbers[measurement.beside]), 4),
            "reach": measurement.reach(),
            "reached": measurement.reached(median(numbers[name])),
        }
        for name, measurement in measurements.items()
        if name in numbers
    ]
