"""The state of the console, as a page reads it."""

from dataclasses import replace
from typing import Any

from opentabs_py.core.audit.entry import entry_of
from opentabs_py.core.console.board import FIRST_CALLS, Board, in_parts
from opentabs_py.core.console.rows import LONGEST, call_row, earlier_row
from opentabs_py.core.limits import Limits
from opentabs_py.core.trace.record import CallRecord, LinkMark, LogMark, ProgressMark
from opentabs_py.errors import ErrorDetail


def a_record(call_id: str = "1", **more: Any) -> CallRecord:
    return CallRecord(
        **{
            "call_id": call_id,
            "name": "chat_send",
            "started": 100.0,
            "seconds": 0.5,
            "outcome": "succeeded",
            "limits": Limits(),
            **more,
        }
    )


HEAVY = a_record(
    "heavy",
    progress=(ProgressMark(0.1, 1, 1, 2, "one"), ProgressMark(0.2, 2, 2, 2, None)),
    report_count=2,
    logs=(LogMark(0.1, "info", "x" * 5_000),),
    log_count=1,
    links=(LinkMark(0, "boot"), LinkMark(0.1)),
    arguments="{}",
    result="[]",
    error=ErrorDetail("X", "y", stack="at z"),
)


def seen(board: Board, version: int = 0) -> dict[str, Any]:
    update = board.since(version)
    assert update is not None
    return update


def states(update: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["state"] for each in update["calls"]["changed"]}


def test_a_call_runs_until_it_ends_and_is_one_row() -> None:
    board = Board()
    before = board.version
    board.handle_call(a_record())
    assert states(seen(board, before)) == {"1": "running"}
    started = board.version
    board.handle_end(a_record(outcome="failed"))
    update = seen(board, started)
    assert states(update) == {"1": "failed"}
    assert update["calls"]["gone"] == []
    assert states(seen(board)) == {"1": "failed"}


def test_a_reader_that_has_seen_all_gets_nothing() -> None:
    board = Board()
    board.handle_call(a_record())
    assert board.since(board.version) is None


def test_only_sections_that_have_changed_are_sent() -> None:
    board = Board()
    board.set("tabs", {"7": {"id": 7}})
    before = board.version
    board.set("tabs", {"7": {"id": 7}})
    assert board.since(before) is None
    board.set("tabs", {"7": {"id": 7, "title": "x"}})
    assert seen(board, before) == {
        "version": board.version,
        "tabs": {"reset": False, "changed": [{"id": 7, "title": "x"}], "gone": []},
    }


def test_a_new_reader_is_notified_to_forget_what_it_had() -> None:
    board = Board()
    board.set("plugins", {})
    update = seen(board)
    assert update["calls"] == {"reset": True, "changed": [], "gone": []}
    assert update["plugins"]["reset"]


def test_the_oldest_ended_calls_make_room_and_are_removed_from_the_page() -> None:
    board = Board(ended=2)
    for call_id in "ab":
        board.handle_end(a_record(call_id))
    before = board.version
    board.handle_end(a_record("c"))
    update = seen(board, before)
    assert states(update) == {"c": "succeeded"}
    assert update["calls"]["gone"] == ["a"]
    assert board.record("a") is None


def test_a_reader_that_missed_too_many_removals_gets_all_calls_again() -> None:
    board = Board(ended=1)
    board.handle_end(a_record("first"))
    before = board.version
    for number in range(10_100):
        board.handle_end(a_record(str(number)))
    update = seen(board, before)
    assert update["calls"] == {
        "reset": True,
        "changed": [call_row(a_record("10099"), running=False)],
        "gone": [],
    }


def test_old_calls_lose_their_details_before_they_take_too_much_memory() -> None:
    board = Board(whole=9_000)
    board.handle_end(HEAVY)
    assert board.record("heavy") == HEAVY
    before, row = board.version, call_row(HEAVY, running=False)
    board.handle_end(replace(HEAVY, call_id="next"))
    light = board.record("heavy")
    assert light is not None
    assert (light.logs, light.arguments, light.result) == ((), None, None)
    assert light.links == HEAVY.links[:1]
    assert light.error == ErrorDetail("X", "y")
    assert call_row(light, running=False) == row
    assert states(seen(board, before)) == {"next": "succeeded"}
    whole = board.record("next")
    assert whole is not None
    assert whole.logs


def test_calls_that_are_gone_need_no_room() -> None:
    board = Board(ended=1, whole=3_500)
    for call_id in "abcde":
        board.handle_end(a_record(call_id))
    board.handle_end(a_record("plain", error=None))
    assert board.record("plain") == a_record("plain")


def test_logs_are_bounded_and_each_has_its_own_id() -> None:
    board = Board(logs=2)
    for text in "abc":
        board.handle_log({"text": text})
    entries = seen(board)["logs"]["changed"]
    assert [each["text"] for each in entries] == ["b", "c"]
    assert len({each["id"] for each in entries}) == 2


def test_a_row_has_the_last_report_and_no_longer_text_than_a_list_can_show() -> None:
    record = a_record(
        progress=(ProgressMark(0.1, 1, 1, 4, "first"), ProgressMark(0.2, 2, 3, 4, "x" * 9_999)),
        report_count=2,
        url="https://chat.example/" + "y" * 9_999,
        error=ErrorDetail("CODE", "z" * 9_999, stack="at w"),
    )
    row = call_row(record, running=False)
    assert (row["progress"], row["total"]) == (3, 4)
    assert {len(row["message"]), len(row["url"]), len(row["error"]["message"])} == {LONGEST}
    assert row["error"]["code"] == "CODE"


def test_the_row_of_a_running_call_does_not_say_that_it_was_cancelled() -> None:
    record = a_record(
        outcome="cancelled", error=ErrorDetail("X", "y"), progress=(ProgressMark(0.1, 1),)
    )
    row = call_row(record, running=True)
    assert (row["state"], row["error"], row["message"]) == ("running", None, None)


def test_a_call_of_the_audit_is_the_same_row_as_before_with_all_that_is_known() -> None:
    error = ErrorDetail("CODE", "z" * 9_999)
    values: dict[str, Any] = {"arguments": "{}", "result": "[]"}
    record = a_record(
        outcome="failed",
        plugin="chat",
        url="http://chat.example/",
        tab_id=7,
        client="agent 1.0",
        allowed="auto",
        error=error,
        **values,
    )
    row = earlier_row(entry_of(record, with_values=True))
    assert row == {
        **call_row(record, running=False),
        "error": {"code": "CODE", "message": error.message},
        **values,
    }


def test_a_call_of_the_audit_may_have_no_page_no_error_and_no_values() -> None:
    row = earlier_row(entry_of(a_record()))
    values = {"arguments": None, "result": None}
    assert row == {**call_row(a_record(), running=False), **values}
    assert earlier_row(entry_of(a_record(error=ErrorDetail("X", "y"))))["error"] == {
        "code": "X",
        "message": "",
    }


def test_what_is_seen_at_first_comes_first_and_only_the_last_part_has_the_version() -> None:
    board = Board()
    board.set("tabs", {"7": {"id": 7}})
    for number in range(FIRST_CALLS + 3):
        board.handle_end(a_record(str(number)))
    update = seen(board)
    first, rest = in_parts(update)
    assert first["calls"]["changed"][0]["id"] == "3"
    assert [each["id"] for each in rest["calls"]["changed"]] == ["0", "1", "2"]
    assert (first["version"], rest["version"]) == (0, update["version"])
    assert (first["calls"]["reset"], rest["calls"]["reset"]) == (True, False)
    assert ("tabs" in first, "tabs" in rest) == (True, False)


def test_a_small_update_stays_whole() -> None:
    board = Board()
    assert in_parts({"version": 3, "tabs": {}}) == [{"version": 3, "tabs": {}}]
    board.handle_end(a_record())
    assert in_parts(seen(board)) == [seen(board)]
