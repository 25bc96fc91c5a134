"""`opentabs audit` and `opentabs stats`: what tools were called."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.cells import cell_len
from rich.markup import escape

from opentabs_py.cli.options import Json
from opentabs_py.core.text import quantity, well_formed
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.core.audit.entry import AuditEntry
    from opentabs_py.core.audit.statistics import ToolStatistics

_AGO: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.ASCII)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_ALL: Final = 2**62

Since = Annotated[
    str | None,
    typer.Option(
        metavar="AGO|TIME",
        help="Only calls that started after this: 30m, 2h, 3d, or 2026-11-23, 2026-11-23T18:00.",
    ),
]
OfPlugin = Annotated[
    str | None, typer.Option(metavar="NAME", help="Only tools of this plugin or Python module.")
]


def audit(
    since: Since = None,
    plugin: OfPlugin = None,
    tool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this tool, or all that match, such as 'slack_*'."),
    ] = None,
    client: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only clients whose name contains this.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only calls that returned no value.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Only the last N calls; 0 for all.")
    ] = 50,
    json_: Json = False,
) -> None:
    """Show which tools were called, by whom, and how each call ended; the newest call last.

    `opentabs serve`, `start`, `call` and `worker` record every call, refused ones too, for 30 days.
    Arguments and results are recorded only with `serve --audit-values`; --json shows them.

    [dim]opentabs audit --since 2h --failed[/]
    """
    from opentabs_py.audit.history import Filter, read_calls
    from opentabs_py.cli.terminal import err, write_json
    from opentabs_py.config.paths import audit_file

    which = Filter(_time(since), _name(plugin), _name(tool), _name(client), failed)
    calls = [each.entry for each in read_calls(audit_file(), which, limit=min(limit or _ALL, _ALL))]
    if json_:
        write_json([each.to_json() for each in calls])
    elif calls:
        _print_calls(calls)
    else:
        err.print(_nothing(is_filtered=which != Filter()), soft_wrap=True)
    _warn_of_missed(which.since)


def stats(since: Since = None, plugin: OfPlugin = None, json_: Json = False) -> None:
    """Show how often each tool was called, how often it failed, and how long it takes.

    p50 is the median of the calls' times, p95 the 95th percentile; refused calls are left out.
    Cancelled calls do not count as failed.

    [dim]opentabs stats --since 7d --plugin slack[/]
    """
    from opentabs_py.audit.history import Filter, read_statistics
    from opentabs_py.cli.terminal import err, write_json
    from opentabs_py.config.paths import audit_file

    which = Filter(_time(since), _name(plugin))
    tools = read_statistics(audit_file(), which)
    if json_:
        write_json([each.to_json() for each in tools])
    elif tools:
        _print_tools(tools)
    else:
        err.print(_nothing(is_filtered=which != Filter()), soft_wrap=True)
    _warn_of_missed(which.since)


def _name(text: str | None) -> str | None:
    return None if text is None else well_formed(text)  # an argument need not be UTF-8


def _time(text: str | None) -> float | None:
    return None if text is None else read_time(text, now=time.time())


def read_time(text: str, *, now: float) -> float:
    """Return a time that is written as `2h` (ago), or as in ISO 8601, in seconds since the epoch.

    Raises:
        ConfigError: It is neither.
    """
    if ago := _AGO.fullmatch(text.strip()):
        return now - float(ago[1]) * _SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(
            f"Cannot read the time {text!r}. Write how long ago, as in 90s, 30m, 2h, 3d or 1w, or "
            "when, as in 2026-11-23 or 2026-11-23T18:00."
        ) from None


def _nothing(*, is_filtered: bool) -> str:
    from opentabs_py.config.paths import audit_file
    from opentabs_py.directories import exists

    if not exists(audit_file()):
        return f"No calls have been recorded yet: {escape(str(audit_file()))} does not exist."
    return "No such call is recorded." if is_filtered else "No call is recorded."


def _warn_of_missed(since: float | None) -> None:
    from opentabs_py.audit.history import count_missed
    from opentabs_py.cli.terminal import warn
    from opentabs_py.config.paths import audit_file

    if missed := count_missed(audit_file(), since=since):
        calls = f"{quantity(missed, 'call')} {'is' if missed == 1 else 'are'}"
        warn(f"{calls} missing: for too long, the file could not be written.")


# --- tables ---

_MARKS: Final = {"succeeded": "✓", "refused": "⊘", "cancelled": "–"}
_FAILED: Final = "✗"
_STYLES: Final = {"✓": "green", "⊘": "yellow", "–": "dim", "✗": "red"}
_LEFT: Final = {"", "time", "tool", "client", "error", "site", "allowed by"}  # the others: numbers
_GAP: Final = 2  # columns of the terminal
# Where there is not enough room, these columns shrink to so many characters, the widest first;
# if that is not enough, the last of these columns are left out. Then the first shrinks further.
_CALLS: Final = {"tool": 20, "client": 12, "error": 12, "site": 12, "tab": 3, "allowed by": 10}
_TOOLS: Final = {"tool": 20, "refused": 7, "p95": 10, "cancelled": 9, "longest": 10}


def _print_calls(calls: "Sequence[AuditEntry]") -> None:
    from opentabs_py.core.text import duration

    today = datetime.now().astimezone().date()
    form = "%H:%M:%S" if _local(calls[0].started).date() == today else "%d %b %H:%M:%S"
    columns = {
        "": [_MARKS.get(each.outcome, _FAILED) for each in calls],
        "time": [_local(each.started).strftime(form) for each in calls],
        "tool": [_text(each.tool) for each in calls],
        "took": [duration(each.seconds) for each in calls],
        "client": [_text(each.client) for each in calls],
        "error": [_text(each.code) for each in calls],
        "site": [_text(each.site) for each in calls],
        "tab": ["" if each.tab_id is None else str(each.tab_id) for each in calls],
        "allowed by": [_text(each.allowed) for each in calls],
    }
    # The columns that say nothing are left out.
    _print_table({name: texts for name, texts in columns.items() if any(texts)}, _CALLS)


def _print_tools(tools: "Sequence[ToolStatistics]") -> None:
    from opentabs_py.core.text import duration

    def took(seconds: float | None) -> str:
        return "" if seconds is None else duration(seconds)

    columns = {
        "tool": [_text(each.tool) for each in tools],
        "calls": [str(each.calls) for each in tools],
        "failed": [str(each.failed) for each in tools],
        "refused": [str(each.refused) for each in tools],
        "cancelled": [str(each.cancelled) for each in tools],
        "p50": [took(each.p50) for each in tools],
        "p95": [took(each.p95) for each in tools],
        "longest": [took(each.longest) for each in tools],
    }
    _print_table(columns, _TOOLS)


def _print_table(columns: Mapping[str, Sequence[str]], least: dict[str, int]) -> None:
    from rich.table import Table
    from rich.text import Text

    from opentabs_py.cli.terminal import err, out, print_wide

    widths = {name: max(map(cell_len, [name, *texts])) for name, texts in columns.items()}
    whole = sum(widths.values()) + _GAP * len(widths)
    room = out.width if out.is_terminal else max(out.width, whole)  # else a program reads it
    fitting = fit_columns(widths, room, least)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for name, width in fitting.items():
        is_text = name in _LEFT
        table.add_column(name, width=width, no_wrap=True, justify="left" if is_text else "right")
    for index in range(len(columns["tool"])):
        table.add_row(
            *(
                Text(texts[index], _style(name, texts[index]))
                for name, texts in columns.items()
                if name in fitting
            )
        )
    print_wide(table, room)
    if left_out := [name for name in widths if name not in fitting]:
        err.print(f"[dim]Not shown: {', '.join(left_out)}. Widen the terminal, or use --json.[/]")


def fit_columns(widths: Mapping[str, int], room: int, least: dict[str, int]) -> dict[str, int]:
    """Return how wide the columns of a table may be, and which of them fit into a terminal.

    Args:
        widths: What they would like.
        room: The width of the terminal.
        least: How wide those must be that may shrink; the last of them are left out first, and the
            first of them shrinks to nearly nothing instead.
    """
    first, *others = least
    fitting = dict(widths)
    smallest = {name: min(least.get(name, width), width) for name, width in widths.items()}
    room += _GAP  # none is needed after the last
    for name in reversed(others):
        if sum(smallest[each] + _GAP for each in fitting) <= room:
            break
        fitting.pop(name, None)
    if sum(smallest[each] + _GAP for each in fitting) > room:
        smallest[first] = 1
    while sum(width + _GAP for width in fitting.values()) > room:
        shrinking = [name for name, width in fitting.items() if width > smallest[name]]
        if not shrinking:
            break
        fitting[max(shrinking, key=lambda name: fitting[name])] -= 1
    return fitting


def _style(column: str, text: str) -> str:
    match column:
        case "":
            return _STYLES[text]
        case "tool":
            return "bold"
        case "time":
            return "dim"
        case "error":
            return "red"
        case "failed" | "refused" | "cancelled":
            return "dim" if text == "0" else "red" if column == "failed" else ""
        case _:
            return ""


def _text(text: str | None) -> str:
    from opentabs_py.core.text import one_line

    return "" if text is None else one_line(text)


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at).astimezone()
