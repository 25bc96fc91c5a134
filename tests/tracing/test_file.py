"""Trace files on disk."""

import logging
import os
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from opentabs_py.core.trace.record import record_line
from opentabs_py.errors import TraceError
from opentabs_py.tracing.file import TraceWriter, read_trace
from tests.tracing.examples import SUCCEEDED, TIMED_OUT


def test_calls_are_in_the_file_as_soon_as_they_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    writer = TraceWriter(path, version="1.2.3")
    assert read_trace(path).headers[0].opentabs == "1.2.3"
    writer.write(SUCCEEDED)
    assert read_trace(path).records == (SUCCEEDED,)
    writer.write(TIMED_OUT)
    assert read_trace(path).records == (SUCCEEDED, TIMED_OUT)
    writer.close()


def test_only_its_owner_can_read_a_trace(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl", version="1") as writer:
        assert writer.path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_continued_after_a_line_that_a_killed_process_left_half(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with TraceWriter(path, version="1") as writer:
        writer.write(SUCCEEDED)
    with path.open("ab") as file:
        file.write(record_line(TIMED_OUT).encode()[:40])
    with TraceWriter(path, version="2") as writer:
        writer.write(TIMED_OUT)
    trace = read_trace(path)
    assert [header.opentabs for header in trace.headers] == ["1", "2"]
    assert (trace.records, trace.cut) == ((SUCCEEDED, TIMED_OUT), 1)


def test_a_file_that_is_there_and_empty_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.touch()
    with TraceWriter(path, version="1") as writer:
        writer.write(SUCCEEDED)
    assert read_trace(path).records == (SUCCEEDED,)


def test_a_file_of_the_users_is_not_written_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n")
    with pytest.raises(
        TraceError, match=r"Will not write to .*notes\.txt\. This is not an OpenTabs trace"
    ):
        TraceWriter(path, version="1")
    assert path.read_text() == "buy milk\n"


def test_a_call_that_ends_after_the_file_was_closed_is_not_written(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl", version="1") as writer:
        pass
    writer.write(SUCCEEDED)
    assert read_trace(writer.path).records == ()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"Cannot write the trace .*trace\.jsonl: No such file"):
        TraceWriter(tmp_path / "missing" / "trace.jsonl", version="1")


def test_after_a_failure_nothing_is_appended_to_half_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = TraceWriter(tmp_path / "trace.jsonl", version="1")
    before = writer.path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, limit[1]))  # like a full disk
    writer.write(SUCCEEDED)
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    writer.write(SUCCEEDED)
    writer.close()
    assert "tracing stopped" in caplog.text
    assert len(writer.path.read_bytes()) == len(before) + 10


def test_a_full_disk_is_logged_once_and_affects_no_call(caplog: pytest.LogCaptureFixture) -> None:
    writer = TraceWriter("/dev/full", version="1")
    with caplog.at_level(logging.WARNING), writer:
        writer.write(SUCCEEDED)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "Cannot write the trace /dev/full, tracing stopped: No space left on device"


@pytest.mark.parametrize(
    ("name", "said"),
    [("missing", "Cannot read .*missing: No such file"), ("", "Cannot read .*: Is a directory")],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read_trace(tmp_path / name)


def test_a_file_that_is_not_a_trace_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(b"\x89PNG\r\n\xff\xff\x00")
    with pytest.raises(TraceError, match=r"photo\.png: This is not an OpenTabs trace: "):
        read_trace(path)


def test_a_text_with_separators_of_lines_in_it_stays_one_line(tmp_path: Path) -> None:
    record = replace(SUCCEEDED, url="https://a/\u2028\x85\r\x0b")
    with TraceWriter(tmp_path / "trace.jsonl", version="1") as writer:
        writer.write(record)
    assert read_trace(writer.path).records == (record,)


def test_a_line_that_was_cut_within_a_character_is_passed_over(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "trace.jsonl", version="1") as writer:
        writer.write(replace(SUCCEEDED, url="https://a/é"))
    data = writer.path.read_bytes()
    os.truncate(writer.path, data.index("é".encode()) + 1)
    assert read_trace(writer.path).cut == 1
