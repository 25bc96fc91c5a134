"""Queries of the audit."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from opentabs_py.audit.file import FORMAT
from opentabs_py.audit.history import Filter, count_missed, read_calls, read_statistics
from opentabs_py.errors import AuditError
from tests.audit.records import ALL, add, an_entry, numbers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.sqlite"


def found(path: Path, **which: object) -> list[int]:
    calls = read_calls(path, Filter(**which), limit=ALL)  # type: ignore[arg-type]
    return [int(each.entry.call_id, 16) for each in calls]


def test_without_a_file_there_are_no_calls_and_none_is_created(path: Path) -> None:
    assert read_calls(path) == []
    assert read_statistics(path) == []
    assert count_missed(path) == 0
    assert not path.exists()


def test_an_empty_file_has_no_calls(path: Path) -> None:
    path.touch()
    assert read_calls(path) == []
    assert read_statistics(path) == []
    assert count_missed(path) == 0


def test_a_call_is_read_as_it_was_written(path: Path) -> None:
    entry = an_entry(5, site="chat.example", tab_id=7, client="c", allowed="auto", result="{}")
    add(path, entry)
    assert [each.entry for each in read_calls(path)] == [entry]


def test_the_calls_are_filtered(path: Path) -> None:
    add(
        path,
        an_entry(1, client="Claude-Code 2.1.0"),
        an_entry(2, tool="mail_send", plugin="mail"),
        an_entry(3, outcome="refused", code="INVALID_ARGUMENTS"),
        an_entry(4, tool="chat_read", client="codex"),
    )
    assert found(path) == [1, 2, 3, 4]
    assert found(path, since=1002.5) == [3, 4]
    assert found(path, plugin="mail") == [2]
    assert found(path, tool="chat_send") == [1, 3]
    assert found(path, tool="chat_*") == [1, 3, 4]
    assert found(path, client="claude") == [1]
    assert found(path, failed=True) == [3]
    assert found(path, since=1001.0, plugin="chat", client="CODEX") == [4]


def test_a_filter_is_not_sql(path: Path) -> None:
    add(path, an_entry(1))
    assert found(path, plugin="' OR 1 --") == []
    assert found(path, tool="' OR 1 --") == []


def test_the_pages_together_are_all_calls_though_more_are_written(path: Path) -> None:
    add(path, *map(an_entry, range(10)))
    pages: list[list[int]] = []
    before = None
    while page := read_calls(path, before=before, limit=4):
        pages.append([int(each.entry.call_id, 16) for each in page])
        before = page[0].number
        add(path, an_entry(99))
    assert pages == [[6, 7, 8, 9], [2, 3, 4, 5], [0, 1]]


def test_it_can_be_read_while_another_writes(path: Path) -> None:
    add(path, an_entry(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM calls")
        assert numbers(path) == [1]
        db.execute("ROLLBACK")


def test_the_statistics_are_those_of_the_calls_that_match(path: Path) -> None:
    add(
        path,
        an_entry(1),
        an_entry(2, outcome="failed"),
        an_entry(3, tool="mail_send", plugin="mail"),
        missed=2,
    )
    assert [(each.tool, each.calls, each.failed) for each in read_statistics(path)] == [
        ("chat_send", 2, 1),
        ("mail_send", 1, 0),
    ]
    [mail] = read_statistics(path, Filter(plugin="mail"))
    assert (mail.tool, mail.p50) == ("mail_send", 0.25)
    assert count_missed(path) == 2
    assert count_missed(path, since=2001.0) == 0


def test_a_file_that_is_not_a_database_is_an_error_that_says_what_will_happen(path: Path) -> None:
    path.write_text("no database" * 1000)
    for read in (read_calls, read_statistics, count_missed):
        with pytest.raises(AuditError, match=r"not a database.*renames the file"):
            read(path)


def test_a_file_of_a_later_version_is_an_error(path: Path) -> None:
    add(path, an_entry(1))
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(AuditError, match="later version"):
        read_calls(path)


def test_a_file_that_is_locked_is_an_error_that_says_so(path: Path) -> None:
    add(path, an_entry(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("DELETE FROM calls")
        with pytest.raises(AuditError, match=r"locked.*no other program has locked it"):
            read_calls(path)
        db.execute("ROLLBACK")
