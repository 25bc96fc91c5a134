"""The audit's file: bounded, private, and replaced when it is damaged."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from opentabs_py.audit.file import FORMAT, AuditFile
from opentabs_py.audit.history import count_missed
from opentabs_py.core.audit.retention import Retention
from opentabs_py.errors import AuditError
from tests.audit.records import add, an_entry, check, numbers

DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "audit.sqlite"


def test_only_its_owner_can_read_it_and_what_is_beside_it(path: Path) -> None:
    file = AuditFile(path, retention=Retention())
    file.add([an_entry()])
    modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(("audit.sqlite", "audit.sqlite-wal", "audit.sqlite-shm"), 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700
    file.close()


def test_calls_are_kept_in_the_order_in_which_they_were_written(path: Path) -> None:
    add(path, an_entry(3), an_entry(1))
    add(path, an_entry(2))
    assert numbers(path) == [3, 1, 2]


def test_old_calls_are_removed_when_it_is_opened_and_once_an_hour(path: Path) -> None:
    now = 100 * DAY
    file = AuditFile(path, retention=Retention(days=30), now=lambda: now)
    file.add([an_entry(1, started=60 * DAY), an_entry(2, started=71 * DAY)], missed=4)
    assert numbers(path) == [2]
    now = 102 * DAY
    file.add([an_entry(3, started=now)])
    assert numbers(path) == [3]
    now = 131 * DAY
    file.add([])
    assert count_missed(path) == 0
    file.close()


def test_old_calls_are_removed_after_the_clock_was_set_back(path: Path) -> None:
    now = 1000 * DAY
    file = AuditFile(path, retention=Retention(days=30), now=lambda: now)
    file.add([])
    now = 100 * DAY
    file.add([an_entry(1, started=60 * DAY), an_entry(2, started=71 * DAY)])
    assert numbers(path) == [2]
    file.close()


def test_the_oldest_calls_are_removed_when_it_is_too_large(path: Path) -> None:
    file = AuditFile(path, retention=Retention(megabytes=1), now=lambda: 2000.0)
    for number in range(300):
        file.add([an_entry(number, arguments="x" * 10_000)])
        assert path.stat().st_size <= 1_100_000
    file.close()
    kept = numbers(path)
    assert 70 < len(kept) < 100
    assert kept == [*range(kept[0], 300)]
    assert check(path) == "ok"


def test_the_file_shrinks_when_much_of_it_is_removed(path: Path) -> None:
    now = 0.0
    file = AuditFile(path, retention=Retention(days=1), now=lambda: now)
    file.add([an_entry(number, arguments="x" * 10_000) for number in range(100)])
    now = 3 * DAY
    file.add([an_entry(100, started=now)])
    file.close()
    assert numbers(path) == [100]
    assert path.stat().st_size < 100_000


def test_several_may_write_to_one_file(path: Path) -> None:
    files = [AuditFile(path, retention=Retention(), now=lambda: 2000.0) for _ in range(3)]
    for number in range(30):
        files[number % 3].add([an_entry(number)])
    for file in files:
        file.close()
    assert numbers(path) == [*range(30)]


def test_a_file_that_was_removed_or_moved_is_recreated(path: Path) -> None:
    file = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    file.add([an_entry(1)])
    path.rename(path.with_name("kept.sqlite"))
    file.add([an_entry(2)])
    assert numbers(path) == [2]
    file.close()


@pytest.mark.parametrize("damage", ["all", "within"])
def test_a_damaged_file_is_set_aside_and_nothing_new_is_lost(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(path, *map(an_entry, range(2000)))
    content = bytearray(path.read_bytes())
    begin = 0 if damage == "all" else 4096
    content[begin:] = b"no database " * (len(content[begin:]) // 12)
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        add(path, an_entry(7))
    assert numbers(path) == [7]
    [aside] = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == content
    assert "is damaged" in caplog.text
    assert str(aside) in caplog.text


def test_a_call_that_the_file_refuses_neither_damages_it_nor_stops_the_next(path: Path) -> None:
    file = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    file.add([an_entry(1)])
    with pytest.raises(sqlite3.IntegrityError):
        file.add([an_entry(2), an_entry(3, tool=None)])
    file.add([an_entry(4)])
    file.close()
    assert numbers(path) == [1, 4]
    assert [*path.parent.iterdir()] == [path]


def test_a_process_that_finds_the_file_replaced_keeps_the_new_one(path: Path) -> None:
    add(path, an_entry(1))
    late = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    late.add([an_entry(2)])
    path.rename(path.with_name("damaged"))  # by another process, which begins a new one
    add(path, an_entry(3))
    late.add([an_entry(4)])
    late.close()
    assert numbers(path) == [3, 4]


def test_a_file_of_a_later_version_is_left_alone(path: Path) -> None:
    add(path, an_entry(1))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    content = path.read_bytes()
    file = AuditFile(path, retention=Retention())
    with pytest.raises(AuditError, match=r"later version.*Update opentabs-py"):
        file.add([an_entry(2)])
    assert path.read_bytes() == content
    assert [*path.parent.iterdir()] == [path]


def test_a_place_where_no_file_can_be_is_an_error_and_used_when_it_can_be(path: Path) -> None:
    path.parent.write_text("in the way")
    file = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    with pytest.raises(AuditError):
        file.add([an_entry(1)])
    path.parent.unlink()
    file.add([an_entry(1)])
    file.close()
    assert numbers(path) == [1]


def test_a_batch_is_written_whole_or_not_at_all(path: Path) -> None:
    add(path, an_entry(0))
    file = AuditFile(path, retention=Retention(), now=lambda: 2000.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        with pytest.raises(AuditError, match="locked"):
            file.add([an_entry(1), an_entry(2)])
    file.add([an_entry(1), an_entry(2)], missed=3)
    file.close()
    assert numbers(path) == [0, 1, 2]
    assert count_missed(path) == 3
