"""Terminal output: progress and errors on stderr, only results on stdout."""

import json
import sys
import time
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import inf
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from opentabs_py.core.text import one_line, visible, well_formed
from opentabs_py.errors import OpenTabsError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

LINES_APART = 1.0  # s
_RULE = 4  # columns that Rich needs around the text of a rule


class _SafeConsole(Console):
    """Console that escapes control characters in text, but keeps its own styles.

    Args:
        stderr: Write to stderr, not to stdout.
        width: In columns; by default, that of the terminal.
    """

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make control characters visible wherever text appears: tables, progress bars, logs."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave the error to `main`: Rich would exit with 1, within a task group."""
        self.quiet = True
        raise  # noqa: PLE0704 (it is called where the error is handled)


err = _SafeConsole(stderr=True)
out = _SafeConsole()


def print_wide(renderable: RenderableType, width: int) -> None:
    """Print something to stdout in a width of its own."""
    _SafeConsole(width=width).print(renderable)


def print_error(error: OpenTabsError) -> None:
    """Print an error for the user."""
    err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning for the user."""
    err.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def new_table(*columns: str) -> "Table":
    """Return a table without lines, which wraps what is too long rather than cut it."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def print_rule(markup: str) -> None:
    """Print a title within a line across the terminal; without the line if it does not fit."""
    if Text.from_markup(markup, emoji=False).cell_len + _RULE > err.width:
        err.print(markup)  # which wraps; a rule would be cut
    else:
        err.rule(markup)


class ProgressLines:
    """One call's progress as lines, at least a second apart, for logs and programs."""

    def __init__(self) -> None:
        self._shown = -inf

    def say(self, message: str) -> None:
        """Print nothing, because there is no terminal."""

    def stop(self) -> None:
        """Do nothing: there is no bar to remove."""

    def pause(self) -> AbstractContextManager[None]:
        """Do nothing, for the same reason."""
        return nullcontext()

    def update(self, progress: float, total: float | None, message: str | None) -> None:
        """Write one report, if it is the last, or long enough after the previous one."""
        now = time.monotonic()
        if progress != total and now - self._shown < LINES_APART:
            return
        self._shown = now
        text = "" if message is None else f"  {one_line(message)}"
        sys.stderr.write(f"{_count(progress, total)}{text}\n")
        sys.stderr.flush()


class ProgressBar:
    """A live bar of one call's progress, with its last message."""

    def __init__(self, progress: "Progress", title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None, count="")

    def say(self, message: str) -> None:
        """Show what is going on."""
        self._progress.update(self._task, description=one_line(message))

    def stop(self) -> None:
        """Remove the bar, so that the result can follow."""
        self._progress.stop()

    @contextmanager
    def pause(self) -> Generator[None]:
        """Remove the bar while the context is open, so that a question can be asked."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def update(self, progress: float, total: float | None, message: str | None) -> None:
        """Show one report."""
        count = _count(progress, total)
        self._progress.update(self._task, completed=progress, total=total, count=count)
        if message is not None:
            self.say(message)


def _count(progress: float, total: float | None) -> str:
    return f"{progress:g}" if total is None else f"{progress:g}/{total:g}"


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Generator[ProgressBar | ProgressLines]:
    """Show progress on stderr: a live bar on a terminal, lines elsewhere, nothing if quiet."""
    if not (quiet or err.is_terminal):
        yield ProgressLines()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=quiet,
    )
    with progress:
        yield ProgressBar(progress, title)


@contextmanager
def spinner(title: str) -> Generator[None]:
    """Show on stderr that something takes its time; nothing without a terminal."""
    if not err.is_terminal:
        yield
        return
    with err.status(Text(title)):
        yield


def write_result(text: str) -> None:
    """Write a result to stdout: coloured JSON on a terminal, unchanged for a program."""
    if sys.stdout.isatty() and text.lstrip().startswith(("{", "[")):
        try:
            out.print_json(text, ensure_ascii=False)
        except (ValueError, RecursionError):
            pass  # it only looked like JSON
        else:
            return
    _write(text)


def write_json(document: object) -> None:
    """Write a document to stdout, for a program."""
    _write(json.dumps(document, ensure_ascii=False))


def _write(text: str) -> None:
    sys.stdout.write((visible(text) if sys.stdout.isatty() else well_formed(text)) + "\n")
    sys.stdout.flush()
