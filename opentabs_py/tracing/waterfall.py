"""Draw a call as text: where its time went and, if it failed, how far it got.

All hops share one axis. A tool takes a thousand times as long as a hop, so the longest bar is
shortened if it would leave no room for the others. Progress and logs are marked on the same axis.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.text import Text

from opentabs_py.core.text import duration, one_line, quantity, shorten
from opentabs_py.core.trace.hops import Carrier, Span, Waterfall
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.tracing.words import outcome_text, reached_text

WIDTH: Final = 80
_ID: Final = 8  # digits of a call's id, enough to tell calls in a file apart
_NAMES: Final = 24  # columns; the longest hop name has 23
_TIMES: Final = 10
_MARGIN: Final = 2
_LABELS: Final = 11
_LOGS: Final = 5
_STACK: Final = 24  # lines
_ERROR: Final = 800  # characters
_CUT_OVER: Final = 0.5  # of the total time; a longer bar gets only this share of the width

# The mark before a call, and at the end of an unfinished bar.
_SUCCEEDED: Final = ("✓", "green")
_FAILED: Final = ("✗", "red")
_RUNNING: Final = ("…", "yellow")

_COLOURS: Final[dict[Carrier, str]] = {
    "mcp": "bright_black",
    "server": "blue",
    "fleet": "bright_blue",
    "websocket": "cyan",
    "port": "green",
    "event": "yellow",
    "tool": "magenta",
    "several": "bright_black",
}


def report(record: CallRecord, *, width: int = WIDTH, is_running: bool = False) -> str:
    """Return everything known about a call as plain text, without a trailing newline.

    Args:
        record: The call's record; for a running call, the record so far.
        width: Columns.
        is_running: The call has not ended, whatever its record says.
    """
    return render(record, width=width, is_running=is_running).plain


def render(record: CallRecord, *, width: int = WIDTH, is_running: bool = False) -> Text:
    """Return the waterfall of a call and, if it failed, its report, for a rich console."""
    lines = [headline(record, width=width, is_running=is_running)]
    bars = max(10, width - _MARGIN - _NAMES - _TIMES - 2)
    lines += _drawing(record, bars, end=_RUNNING if is_running else _FAILED)
    if not record.succeeded:
        lines += _explanation(record, width)
    return Text("\n").join(lines)


def headline(
    record: CallRecord, *, width: int = WIDTH, time: str = "", is_running: bool = False
) -> Text:
    """Return one line: whether it succeeded, its name, how long it took, how it ended.

    Its tab and its id follow, as far as there is room for them.
    """
    mark, style = _RUNNING if is_running else _SUCCEEDED if record.succeeded else _FAILED
    line = Text(f"{mark} ", style=f"bold {style}")
    if time:
        line.append(f"{time}  ", style="dim")
    outcome = Text(f"  {duration(record.seconds)}  ")
    how = "still running" if is_running else outcome_text(record)
    outcome.append(how, style="" if record.succeeded else style)
    name = Text(one_line(record.name), style="bold")
    room = width - line.cell_len - outcome.cell_len - 2
    short_name = min(name.cell_len, 8)
    id_ = one_line(record.call_id[:_ID])
    rights = [id_, ""] if record.tab_id is None else [f"tab {record.tab_id}  {id_}", id_, ""]
    right = next((each for each in rights if short_name + cell_len(each) <= room), "")
    name.truncate(max(short_name, room - cell_len(right)), overflow="ellipsis")
    line.append_text(name).append_text(outcome)
    if right:
        line.append(" " * (width - line.cell_len - cell_len(right)))
        line.append(right, style="dim")
    line.truncate(width, overflow="ellipsis")
    return line


# --- the drawing ---


@dataclass(frozen=True, slots=True)
class _Axis:
    """Maps seconds to columns; `cut` is the bar that is shortened."""

    column: Callable[[float], int]
    width: int
    cut: Span | None


def _drawing(record: CallRecord, width: int, *, end: tuple[str, str]) -> list[Text]:
    waterfall = record.waterfall()
    axis = _axis(waterfall.spans, width)
    lines = [
        _row(_hop(span), duration(span.seconds), _bar(span, axis, end)) for span in waterfall.spans
    ]
    offset = record.lead(waterfall)
    if record.report_count:
        marks = [mark.at + offset for mark in record.progress]
        lines.append(
            _row("progress", quantity(record.report_count, "report"), _marks(marks, "▴", axis))
        )
    if record.log_count:
        marks = [mark.at + offset for mark in record.logs]
        lines.append(_row("log", quantity(record.log_count, "record"), _marks(marks, "•", axis)))
    notes = _notes(waterfall, axis)
    if notes:
        lines.append(Text(f"{'':{_MARGIN}}{notes}", style="dim"))
    return lines


def _axis(spans: Sequence[Span], width: int) -> _Axis:
    whole = max((span.start + span.seconds for span in spans), default=0.0)
    longest = max(spans, key=lambda span: span.seconds, default=None)
    if longest is None or whole <= 0:
        return _Axis(lambda _: 0, width, None)
    last = width - 1

    def within(at: float) -> float:
        return min(max(at, 0.0), whole)  # marks of a damaged trace may be far outside

    rest = whole - longest.seconds
    if longest.seconds <= _CUT_OVER * whole or rest <= 0:
        return _Axis(lambda at: round(within(at) / whole * last), width, None)
    start, end = longest.start, longest.start + longest.seconds
    inside, outside = _CUT_OVER * last, (1 - _CUT_OVER) * last

    def column(at: float) -> int:
        at = within(at)
        before = min(at, start) + max(0.0, at - end)
        share = (min(max(at, start), end) - start) / longest.seconds
        return _within(round(before / rest * outside + share * inside), last)

    return _Axis(column, width, longest)


def _within(column: int, last: int) -> int:
    return min(max(column, 0), last)


def _bar(span: Span, axis: _Axis, end: tuple[str, str]) -> Text:
    first, last = axis.column(span.start), axis.column(span.start + span.seconds)
    length = max(1, last - first)
    first = min(first, axis.width - length)
    bar = "╌" * length if span.unfinished else "━" * length
    if span is axis.cut and length > 4 and not span.unfinished:
        middle = length // 2
        bar = bar[: middle - 1] + "≈≈" + bar[middle + 1 :]
    text = Text(" " * first)
    mark, style = end
    text.append(bar, style=style if span.unfinished else _COLOURS[span.carrier])
    if span.unfinished:
        text = text[: axis.width - 1]
        text.append(mark, style=f"bold {style}")
    return text


def _marks(times: Iterable[float], mark: str, axis: _Axis) -> Text:
    columns = [" "] * axis.width
    for at in times:
        columns[axis.column(at)] = mark
    return Text("".join(columns).rstrip(), style="cyan")


def _row(name: str, time: str, drawing: Text) -> Text:
    line = Text(f"{'':{_MARGIN}}{name:<{_NAMES}}{time:>{_TIMES}}  ")
    return line.append_text(drawing)


def _hop(span: Span) -> str:
    return shorten(span.hop, _NAMES)


def _notes(waterfall: Waterfall, axis: _Axis) -> str:
    notes: list[str] = []
    if axis.cut is not None:
        notes.append("the longest bar is shortened")
    if waterfall.adjusted > 0:
        notes.append(f"corrected clocks that disagreed by {duration(waterfall.adjusted)}")
    return "; ".join(notes)


# --- the report ---


def _explanation(record: CallRecord, width: int) -> list[Text]:
    rows: list[tuple[str, str]] = []
    if (place := reached_text(record)) is not None:
        rows.append(("reached", place))
    if record.url is not None:
        rows.append(("page", one_line(record.url)))
    left, limits = record.left, record.limits
    if left is not None:
        rows.append(("progress", _last_progress(record)))
        idle = f"idle {left.idle:.1f} of {limits.idle:g} s"
        ceiling = f"ceiling {left.ceiling:.1f} of {limits.ceiling:g} s"
        rows.append(("left", f"{idle}, {ceiling}"))
    if len(record.links) > 1 or any(link.boot_id is None for link in record.links):
        rows.append(("worker", _worker(record)))
    if record.dropped:
        rows.append(("dropped", f"{quantity(record.dropped, 'report')} did not arrive"))
    rows += [
        ("log", f"{duration(mark.at)} {mark.level}: {one_line(mark.message)}")
        for mark in record.logs[-_LOGS:]
    ]
    error = record.error
    if error is not None:
        rows.append(("error", f"{one_line(error.code)}: {one_line(error.message)}"))
    lines = [line for label, text in rows for line in _paragraph(label, text, width)]
    if error is not None and error.stack is not None:
        lines += _stack(error.stack)
    return lines


def _stack(stack: str) -> list[Text]:
    """Format a stack without wrapping, to keep source code aligned."""
    lines = stack.splitlines()
    return [
        Text.assemble((f"{'':{_MARGIN}}{'' if at else 'stack':<{_LABELS}}", "bold"), one_line(line))
        for at, line in enumerate(lines[:_STACK])
    ]


def _last_progress(record: CallRecord) -> str:
    if not record.progress:
        return "no reports"
    last = record.progress[-1]
    words = [
        f"the last of {quantity(record.report_count, 'report')} arrived at {duration(last.at)}"
    ]
    if last.progress is not None:
        words.append(f"{last.progress:g}" + (f"/{last.total:g}" if last.total else ""))
    if last.message:
        words.append(shorten(one_line(last.message)))
    return ": ".join([words[0], " ".join(words[1:])]) if len(words) > 1 else words[0]


def _worker(record: CallRecord) -> str:
    restarts = record.service_worker_restarts
    times = {0: "not restarted", 1: "restarted once"}.get(restarts, f"restarted {restarts} times")
    lives = [link.boot_id[:_ID] for link in record.links if link.boot_id is not None]
    known = f" (boot {' → '.join(map(one_line, dict.fromkeys(lives)))})" if lives else ""
    gone = ", not connected at the end" if record.links[-1].boot_id is None else ""
    return f"{times}{known}{gone}"


def _paragraph(label: str, text: str, width: int) -> list[Text]:
    room = max(20, width - _MARGIN - _LABELS)
    lines = _wrapped(shorten(text, _ERROR), room)
    style = "red" if label == "error" else ""
    heads = [label, *[""] * (len(lines) - 1)]
    return [
        Text.assemble((f"{'':{_MARGIN}}{head:<{_LABELS}}", "bold"), (line, style))
        for head, line in zip(heads, lines, strict=True)
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap a string at words; widths are in columns, since many characters take two."""
    lines = [""]
    for word in text.split():
        for part in chop_cells(word, width):
            joined = f"{lines[-1]} {part}" if lines[-1] else part
            if cell_len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(part)
    return lines
