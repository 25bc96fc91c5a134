"""`opentabs report merge`: one report of several runs."""

from pathlib import Path
from typing import Annotated

import typer

from opentabs_py.cli.command_classes import App
from opentabs_py.core.text import quantity

app = App(help="Merge reports of test runs.")


@app.callback()
def _report() -> None:
    pass  # makes `merge` a subcommand even while it is the only one


@app.command()
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Reports written by `opentabs test --report`."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="The file to write.")],
) -> None:
    """Write one report of several runs, such as the parts of a suite on several machines.

    A test in several reports keeps its attempts from all runs, in order. Its outcome is that of
    the last run: flaky, if it failed earlier and passed there. Missing parts are named, here and in
    the report.

    Exit codes: 0 written, whether tests failed or not; 2 a file is not a report, or cannot be
    written, or two are of the same run.
    """
    from opentabs_py.cli.terminal import err, warn
    from opentabs_py.core.runner import report
    from opentabs_py.runner.report import write
    from opentabs_py.runner.report_page import moved, read_report

    read = [moved(read_report(file), file.parent, out.parent) for file in files]
    merged = report.merge(read)
    write(out, merged)
    for text in merged.missing:
        warn(text)
    err.print(
        f"Wrote {out}: {quantity(len(merged.runs), 'run')}, {quantity(len(merged.tests), 'test')}",
        markup=False,
        soft_wrap=True,
    )
