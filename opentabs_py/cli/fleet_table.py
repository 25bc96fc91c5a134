"""The workers of a fleet in a terminal."""

import time
from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table

from opentabs_py.cli.server_texts import uptime
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.text import quantity
from opentabs_py.fleet.observed import ObservedFleet

_NUMBERS: Final = ("browsers", "running", "calls", "failed", "memory", "up")
_ANY_WIDTH: Final = 10_000
_READY_WIDTH: Final = 12  # in less, most names of plugins and labels would be broken


def show_workers(
    workers: Sequence[Announcement], observed: ObservedFleet, console: Console
) -> RenderableType:
    """Return the workers as a table, or as a list where a table would be cut off."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("worker", style="bold", no_wrap=True)
    for heading in _NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ready tabs, labels", overflow="fold", max_width=_READY_WIDTH)
    rows = [(_state(each, observed), _numbers(each), _ready(each)) for each in workers]
    for state, numbers, ready in rows:
        table.add_row(state, *numbers, ready)
    summary = _summary(workers, observed)
    wide = console.options.update(width=_ANY_WIDTH)
    if Measurement.get(console, wide, table).maximum <= console.width:
        table.columns[-1].max_width = None
        table.caption = summary
        return table
    lines: list[RenderableType] = []
    for state, numbers, ready in rows:
        named = (f"{name} {text}" for name, text in zip(_NUMBERS, numbers, strict=True) if text)
        below = filter(None, [", ".join(named), ready])
        lines += [
            f"[bold]{state}[/]",
            *(Padding(each, (0, 0, 0, 2), expand=False) for each in below),
        ]
    return Group(*lines, f"[dim]{summary}[/]")


def _numbers(worker: Announcement) -> list[str]:
    return [
        str(len(worker.browsers)),
        f"{worker.total_running}/{worker.max_calls}",
        str(worker.calls),
        f"[red]{worker.failures}[/]" if worker.failures else "0",
        f"{worker.memory / 2**20:.0f} MiB" if worker.memory else "",
        uptime(time.time() - worker.started),
    ]


def _summary(workers: Sequence[Announcement], observed: ObservedFleet) -> str:
    running = sum(each.total_running for each in workers)
    browsers = sum(len(each.browsers) for each in workers)
    endpoints = observed.endpoints.values()
    return (
        f"{quantity(len(workers), 'worker')}, {quantity(browsers, 'browser')}, "
        f"{quantity(len(endpoints), 'endpoint')}; "
        f"{running} of {quantity(sum(each.max_calls for each in workers), 'call')} running, "
        f"{sum(each.waiting for each in endpoints)} waiting"
    )


def _state(worker: Announcement, observed: ObservedFleet) -> str:
    if worker.instance in observed.directory.refused:
        return f"[red]●[/] {escape(worker.name)} [dim]refused[/]"
    color = "green" if worker.state == "serving" else "yellow"
    more = "" if worker.state == "serving" else f" [dim]{worker.state}[/]"
    return f"[{color}]●[/] {escape(worker.name)}{more}"


def _ready(worker: Announcement) -> str:
    tabs = [
        f"[cyan]{escape(name)}[/] {'[yellow]0[/]' if each.ready == 0 else each.ready}"
        if each.ready is not None
        else f"[cyan]{escape(name)}[/]"
        for name, each in worker.served.items()
    ]
    labels = [f"[dim]{escape(key)}={escape(value)}[/]" for key, value in worker.labels.items()]
    return "  ".join([*tabs, *labels])
