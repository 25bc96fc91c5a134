"""docs/trace-format.md describes everything in a trace file, and nothing else."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from opentabs_py.core.excerpts import LONGEST
from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.hops import ORDER
from opentabs_py.core.trace.record import (
    FORMAT,
    MARK,
    CallRecord,
    LinkMark,
    LogMark,
    ProgressMark,
    TraceHeader,
    header_line,
    parse_trace,
    record_line,
)
from opentabs_py.core.trace.recorder import KEPT
from opentabs_py.errors import ErrorDetail

TEXT = (Path(__file__).parents[3] / "docs" / "trace-format.md").read_text()
_, HEADER, CALL, STAMP = TEXT.split("\n## ")
[BLOCK] = re.findall(r"^```json\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
# With everything that a call can have.
WHOLE = CallRecord(
    call_id="",
    name="",
    started=0.0,
    seconds=0.0,
    outcome="failed",
    limits=Limits(),
    error=ErrorDetail("", "", "", False, 1.0, ""),
    left=Limits(0.0, 0.0),
    progress=(ProgressMark(0.0, 0, 0.0, 0.0, ""),),
    logs=(LogMark(0.0, "info", ""),),
    links=(LinkMark(0.0, ""),),
)


def rows(section: str) -> Iterator[tuple[list[str], str]]:
    """The first column of a table, and the second by its names."""
    for line in section.splitlines():
        if line.startswith("| `"):
            names, _, what = line.strip("| ").partition(" | ")
            yield re.findall(r"`([^`]+)`", names), what


def names_of(section: str) -> list[str]:
    return [name for names, _ in rows(section) for name in names]


def test_the_members_of_a_header_are_those_that_are_written() -> None:
    assert names_of(HEADER) == [MARK, "opentabs", "started"]
    assert len(fields(TraceHeader)) == 3
    assert f"the number of the format: {FORMAT}\n" in HEADER.replace(" |", "")


def test_the_members_of_a_call_are_those_that_are_written() -> None:
    members = TypeAdapter(CallRecord).json_schema()["properties"]
    assert sorted(names_of(CALL)) == sorted(members)


@pytest.mark.parametrize("name", ["limits", "error", "left", "progress", "logs", "links"])
def test_what_is_in_a_member_is_named_with_it(name: str) -> None:
    [what] = [what for names, what in rows(CALL) if names[-1] == name]
    written = WHOLE.to_json()[name]
    inner = written[0] if isinstance(written, list) else written

    assert re.findall(r"`(\w+)`", what) == list(inner)


def test_the_stamps_are_in_their_order() -> None:
    assert tuple(names_of(STAMP)) == ORDER


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"the first {KEPT:,} of them and the last {KEPT:,}" in CALL
    assert f"cut to {LONGEST:,} characters" in CALL


def test_the_example_is_read_and_is_what_is_written() -> None:
    trace = parse_trace(BLOCK.splitlines())

    written = [*map(header_line, trace.headers), *map(record_line, trace.records)]

    assert [record.outcome for record in trace.records] == ["succeeded", "timed_out"]
    assert "".join(written) == BLOCK
