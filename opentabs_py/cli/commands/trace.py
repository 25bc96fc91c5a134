"""`opentabs trace show`: show recorded calls."""

import os
import webbrowser
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Annotated

import typer

from opentabs_py.cli.command_classes import App
from opentabs_py.cli.options import Json
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.core.trace.record import CallRecord, Trace

FEW = 10  # up to this many calls are drawn hop by hop; more are listed, one per line

app = App(help="Show the calls in a trace file.")


@app.callback()
def _trace() -> None:
    pass  # makes `show` a subcommand even while it is the only one


@app.command()
def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A trace file, written by `opentabs serve --trace` or `pytest --opentabs-trace`.",
        ),
    ],
    call: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Show only calls whose id starts with ID."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Show only calls that did not return a value.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a single HTML file.")
    ] = None,
    chrome: Annotated[
        Path | None,
        typer.Option(metavar="OUT", help="Write Chrome trace JSON, for ui.perfetto.dev."),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the HTML page in your browser.")
    ] = False,
    json_: Json = False,
) -> None:
    """Show where the time of recorded calls went, and how far failed calls got.

    Draws each call hop by hop; for more than ten calls, prints one line per call.
    """
    from opentabs_py.tracing.file import read_trace

    trace = read_trace(file)
    records = _chosen(trace, call, failed=failed)
    written = _write(file, trace, records, html=html, chrome=chrome, browse=open_)
    if json_:
        _print_json(file, trace, records, written)
    elif not written:
        _print(trace, records)
    if open_:
        webbrowser.open(Path(written[0]).absolute().as_uri())


def _chosen(trace: "Trace", prefix: str | None, *, failed: bool) -> "list[CallRecord]":
    records = [record for record in trace.records if not (failed and record.succeeded)]
    if prefix is None:
        return records
    chosen = [record for record in records if record.call_id.startswith(prefix)]
    if not chosen:
        which = "failed call" if failed else "call"
        raise ConfigError(
            f"No {which} in this trace has an id that starts with {prefix!r}. "
            "Omit --call to see them all."
        )
    return chosen


def _write(
    file: Path,
    trace: "Trace",
    records: "Sequence[CallRecord]",
    *,
    html: Path | None,
    chrome: Path | None,
    browse: bool,
) -> list[str]:
    """Write the requested files; return their names, the HTML page's first."""
    from opentabs_py.cli.terminal import err
    from opentabs_py.tracing.chrome import to_chrome
    from opentabs_py.tracing.html import to_html

    if html is None and browse:
        handle, name = mkstemp(prefix="opentabs-trace-", suffix=".html")
        os.close(handle)
        html = Path(name)
    texts: list[tuple[Path, str]] = []
    if html is not None:
        texts.append((html, to_html(records, title=file.name, cut=trace.cut)))
    if chrome is not None:
        texts.append((chrome, to_chrome(records)))
    for path, text in texts:
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"Cannot write {path}: {error.strerror}.") from None
        err.print(f"Wrote {path}", markup=False, soft_wrap=True)
    return [str(path) for path, _ in texts]


def _print(trace: "Trace", records: "Sequence[CallRecord]") -> None:
    from rich.text import Text

    from opentabs_py.cli.terminal import out, warn
    from opentabs_py.tracing.waterfall import headline, render

    if trace.cut:
        warn(
            "A line of the trace is incomplete, and a call is missing: its writer was killed, or "
            "its disk was full."
        )
    if not records:
        out.print("No calls." if not trace.records else "No call failed.")
    elif len(records) > FEW:
        for record in records:
            time = datetime.fromtimestamp(record.started).astimezone().strftime("%H:%M:%S.%f")[:-3]
            out.print(headline(record, width=out.width, time=time), soft_wrap=True)
        failed = sum(not record.succeeded for record in records)
        out.print(
            f"\n{len(records)} calls, {failed} without a value. "
            "--call ID shows where the time of one went; --open shows all of them.",
            style="dim",
        )
    else:
        for number, record in enumerate(records):
            out.print(Text("\n" if number else "", end=""), end="")
            out.print(render(record, width=out.width), soft_wrap=True)


def _print_json(
    file: Path, trace: "Trace", records: "Sequence[CallRecord]", written: list[str]
) -> None:
    from opentabs_py.cli.terminal import write_json

    document = {
        "file": str(file),
        "cut": trace.cut,
        "written": written,
        "calls": [_as_json(record) for record in records],
    }
    write_json(document)


def _as_json(record: "CallRecord") -> dict[str, object]:
    waterfall = record.waterfall()
    hops = [
        {
            "hop": span.hop,
            "carrier": span.carrier,
            "start": round(span.start, 6),
            "seconds": round(span.seconds, 6),
            "unfinished": span.unfinished,
        }
        for span in waterfall.spans
    ]
    return {
        **record.to_json(),
        "reached": record.reached,
        "workerRestarts": record.service_worker_restarts,
        "adjusted": round(waterfall.adjusted, 6),
        "hops": hops,
    }
