"""`opentabs trace show`."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from opentabs_py.cli.commands.trace import FEW, app
from opentabs_py.core.trace.record import CallRecord, ProgressMark, record_line
from opentabs_py.errors import ConfigError, ErrorDetail, TraceError
from opentabs_py.tracing.file import TraceWriter
from opentabs_py.tracing.waterfall import report
from tests.tracing.examples import ALL, LOST, SUCCEEDED, TIMED_OUT


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return write(tmp_path / "trace.jsonl", *ALL)


def write(path: Path, *records: CallRecord) -> Path:
    with TraceWriter(path, version="1") as writer:
        for record in records:
            writer.write(record)
    return path


def show(*args: str | Path) -> str:
    """Run the command on a terminal of 80 columns; return its stdout."""
    run = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["show", *map(str, args)])
    if run.exception is not None:
        raise run.exception
    return run.stdout


def document(*args: str | Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(show(*args, "--json"))
    return value


def test_each_call_is_shown_as_its_report(written: Path) -> None:
    shown = show(written)
    assert shown == "\n\n".join(report(record) for record in ALL) + "\n"


def test_only_the_calls_without_a_value_can_be_shown(written: Path) -> None:
    calls = document(written, "--failed")["calls"]
    assert [call["callId"] for call in calls] == [record.call_id for record in ALL[1:]]


def test_a_call_can_be_chosen_by_the_beginning_of_its_id(written: Path) -> None:
    assert show(written, "--call", TIMED_OUT.call_id[:4]) == report(TIMED_OUT) + "\n"


def test_an_id_of_no_call_is_refused(written: Path) -> None:
    with pytest.raises(ConfigError, match="No call in this trace has an id that starts with 'x'"):
        show(written, "--call", "x")
    with pytest.raises(ConfigError, match="No failed call in this trace"):
        show(written, "--failed", "--call", SUCCEEDED.call_id)


def test_of_many_calls_each_has_a_line(tmp_path: Path) -> None:
    calls = [replace(SUCCEEDED, call_id=f"{n:032x}") for n in range(FEW)]
    lines = show(write(tmp_path / "t", *calls, LOST)).splitlines()
    listed, said = lines[: FEW + 1], " ".join(lines[FEW + 1 :])
    assert all("demo_export_messages  1.20 s  succeeded" in line for line in listed[:FEW])
    assert "lost" in listed[FEW]
    assert max(map(len, lines)) == 80
    assert "11 calls, 1 without a value. --call ID shows" in said


def test_as_json_calls_have_their_record_hops_and_how_far_they_came(written: Path) -> None:
    shown = document(written)
    assert (shown["file"], shown["cut"], shown["written"]) == (str(written), 0, [])
    call = shown["calls"][1]
    assert call["error"]["code"] == "TIMEOUT_IDLE"
    assert (call["reached"], call["workerRestarts"], call["adjusted"]) == ("page", 1, 0)
    assert call["hops"][-1] == {
        "hop": "tool", "carrier": "tool", "start": 0.0015, "seconds": 2.4985, "unfinished": True,
    }  # fmt: skip


def test_a_page_and_a_trace_for_perfetto_are_written_and_nothing_is_printed(
    written: Path, tmp_path: Path
) -> None:
    page, events = tmp_path / "out.html", tmp_path / "out.json"
    assert show(written, "--html", page, "--chrome", events, "--failed") == ""
    assert "trace.jsonl – OpenTabs trace" in page.read_text()
    names = {event["name"] for event in json.loads(events.read_text())["traceEvents"]}
    assert "tool (ended here)" in names
    assert document(written, "--html", page)["written"] == [str(page)]


def test_a_place_that_cannot_be_written_to_is_named(written: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot write .*out\.html: No such file"):
        show(written, "--html", tmp_path / "missing" / "out.html")


@pytest.mark.parametrize("records", [(), (SUCCEEDED,)])
def test_a_trace_with_nothing_to_show_says_so(
    tmp_path: Path, records: tuple[CallRecord, ...]
) -> None:
    path = write(tmp_path / "t", *records)
    assert show(path, "--failed") == ("No call failed.\n" if records else "No calls.\n")


def test_a_trace_whose_writer_was_killed_is_shown_with_a_warning(
    written: Path,
) -> None:
    with written.open("a") as file:
        file.write(record_line(LOST)[:-9])
    run = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["show", str(written)])
    assert "its writer was killed, or its disk was full" in run.output.replace("\n", " ")
    assert document(written)["cut"] == 1


def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk")
    with pytest.raises(TraceError, match="This is not an OpenTabs trace"):
        show(path)


def test_the_page_is_opened_in_the_browser_from_a_file_that_only_its_owner_can_read(
    written: Path, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    subprocess.run(
        [sys.executable, "-c", "import opentabs_py.cli.commands.trace as t; t.app()", "show",
         str(written), "--open"],
        env={**os.environ, "BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)},
        check=True, timeout=30,
    )  # fmt: skip
    url = (tmp_path / "opened").read_text().strip()
    page = Path(url.removeprefix("file://"))
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("at", [1e11, 1e15, 1.7e308, -1e10, -1e11, -1.7e308])
def test_a_trace_with_impossible_times_is_shown_or_refused(tmp_path: Path, at: float) -> None:
    trace = tmp_path / "trace.jsonl"
    out = tmp_path / "out"
    mark = ProgressMark(at, 0)
    for strange in (
        replace(TIMED_OUT, stamps=dict.fromkeys(TIMED_OUT.stamps, at)),
        replace(TIMED_OUT, started=at),
        replace(TIMED_OUT, seconds=at),
        replace(TIMED_OUT, error=ErrorDetail("SLOW", "Slow down.", retry_after=at)),
        replace(TIMED_OUT, progress=(mark,)),
        replace(TIMED_OUT, stamps={**TIMED_OUT.stamps, "runtime.down": at}, progress=(mark,)),
    ):
        trace.unlink(missing_ok=True)
        write(trace, *[strange] * (FEW + 1))
        for options in ([], ["--call", "7bb"], ["--html", out], ["--chrome", out], ["--json"]):
            with suppress(TraceError):
                show(trace, *options)
