"""The audit is written in the background; calls never wait for it."""

import logging
import sqlite3
import threading
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from opentabs_py.audit.history import count_missed, read_calls
from opentabs_py.audit.writer import AuditWriter
from opentabs_py.core.audit.retention import Retention
from tests.audit.records import a_record, add, an_entry, numbers
from tests.waiting import PATIENT

FOREVER = Retention(days=10**6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.sqlite"


@pytest.fixture
def locked(path: Path) -> Generator[sqlite3.Connection]:
    """A lock on the file; closing it releases the lock."""
    add(path, an_entry(10**6))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield db


def wait_for(path: Path, count: int) -> None:
    done = threading.Event()
    for _ in range(int(PATIENT / 0.02)):
        if len(numbers(path)) >= count:
            return
        done.wait(0.02)
    raise AssertionError(f"{len(numbers(path))} calls were written, not {count}")


def wait_for_log(caplog: pytest.LogCaptureFixture, text: str) -> None:
    done = threading.Event()
    for _ in range(int(PATIENT / 0.02)):
        if text in caplog.text:
            return
        done.wait(0.02)
    raise AssertionError(f"{text!r} was not logged")


def test_what_is_queued_is_written_at_the_end_in_its_order(path: Path) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    for number in range(2500):
        writer.write(a_record(number))
    writer.close()
    assert numbers(path) == [*range(2500)]


def test_a_call_is_written_soon_without_another_one(path: Path) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    writer.write(a_record(1))
    wait_for(path, 1)
    writer.write(a_record(2))
    wait_for(path, 2)
    writer.close()


def test_the_end_leaves_neither_a_thread_nor_a_file_that_is_open(path: Path) -> None:
    before = {*threading.enumerate()}
    writer = AuditWriter(path, retention=FOREVER)
    writer.write(a_record(1))
    wait_for(path, 1)
    writer.close()
    assert {*threading.enumerate()} <= before
    assert [*path.parent.iterdir()] == [path]


def test_without_calls_there_is_neither_a_file_nor_a_thread(path: Path) -> None:
    before = threading.active_count()
    writer = AuditWriter(path, retention=FOREVER)
    assert threading.active_count() == before
    writer.close()
    assert not path.exists()


def test_after_the_end_nothing_is_written(path: Path) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    writer.write(a_record(1))
    writer.close()
    writer.write(a_record(2))
    assert numbers(path) == [1]
    assert not [each for each in threading.enumerate() if each.name == "opentabs-audit"]


def test_while_the_file_is_locked_calls_wait_and_then_arrive(
    path: Path, locked: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    with caplog.at_level(logging.INFO):
        for number in range(100):
            writer.write(a_record(number))
        wait_for_log(caplog, "Cannot write the audit")
        writer.write(a_record(100))
        locked.execute("ROLLBACK")
        wait_for(path, 102)
        writer.write(a_record(101))
        wait_for(path, 103)
        writer.close()
    assert numbers(path)[1:] == [*range(102)]
    assert caplog.text.count("Cannot write the audit") == 1
    assert caplog.text.count("is written again") == 1


def test_calls_beyond_the_bound_are_counted_and_that_is_written(
    path: Path,
    locked: sqlite3.Connection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer = AuditWriter(path, retention=FOREVER, most_waiting=10)
    for number in range(25):
        writer.write(a_record(number))
    locked.execute("ROLLBACK")
    wait_for_log(caplog, "too many waited to be written: 15")  # they do not wait any more
    writer.write(a_record(25))
    writer.close()
    assert numbers(path)[1:] == [*range(10), 25]
    assert count_missed(path) == 15


def test_the_memory_of_waiting_values_is_bounded(path: Path, locked: sqlite3.Connection) -> None:
    writer = AuditWriter(path, retention=FOREVER, with_values=True, most_characters=1000)
    for number in range(25):
        writer.write(a_record(number, arguments="x" * 90, result="y" * 10))
    locked.execute("ROLLBACK")
    writer.close()
    assert len(numbers(path)[1:]) == 10
    assert count_missed(path) == 15


def test_what_cannot_be_written_at_the_end_is_said(
    path: Path, locked: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    writer.write(a_record(1))
    writer.close()
    locked.execute("ROLLBACK")
    assert "not written in time: 1" in caplog.text
    assert len(read_calls(path)) == 1


def test_a_call_that_cannot_be_written_takes_no_other_with_it(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writer = AuditWriter(path, retention=FOREVER)
    for number in range(5):
        writer.write(a_record(number, **({"name": "x\udcff"} if number == 2 else {})))
    wait_for(path, 4)
    writer.write(a_record(5))
    writer.close()
    assert numbers(path) == [0, 1, 3, 4, 5]
    assert f"The call {2:032x} cannot be written to the audit" in caplog.text
