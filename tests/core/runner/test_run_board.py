"""The tests as pages see them."""

from typing import Any

import pytest

from opentabs_py.core.limits import Limits
from opentabs_py.core.runner.attempt import MOST_CALLS
from opentabs_py.core.runner.board import RunBoard
from opentabs_py.core.runner.events import (
    BrowserStarted,
    CallSeen,
    Collected,
    Ended,
    Event,
    FaultsSeen,
    Known,
    Lost,
    NotCollected,
    Paused,
    Phase,
    Resumed,
    Retried,
    ScreenshotTaken,
    Started,
    Unanswered,
)
from opentabs_py.core.runner.one_test import NO_RESULT, STOPPED, OneTest
from opentabs_py.core.trace.record import CallRecord

A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"


def known(test: str, line: int = 1) -> Known:
    file, _, name = test.partition("::")
    return Known(id=test, file=file, path=f"/p/{file}", name=name, line=line)


def board_of(*tests: str, **options: Any) -> RunBoard:
    board = RunBoard(**options)
    board.begin(None)
    board.handle(Collected(tests=tuple(map(known, tests))))
    return board


def phase(test: str, outcome: str = "passed", **more: Any) -> Phase:
    return Phase(**{"test": test, "when": "call", "outcome": outcome, "seconds": 0.5, **more})


def record(call: str, result: str = "") -> CallRecord:
    return CallRecord(call, "chat_send", 1.0, 0.1, "succeeded", Limits(), result=result)


def run_one(board: RunBoard, test: str, *phases: Event) -> None:
    board.handle(Started(test=test))
    for each in phases:
        board.handle(each)
    board.handle(Ended(test=test))


def states(board: RunBoard) -> list[str]:
    return [test.state for test in board.tests.values()]


def test_collected_tests_of_a_run_wait_and_then_run() -> None:
    board = board_of(A, B)
    assert states(board) == ["waiting", "waiting"]
    board.handle(Started(test=A))
    assert states(board) == ["running", "waiting"]


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        ([phase(A, when="setup"), phase(A), phase(A, when="teardown")], "passed"),
        ([phase(A, "failed")], "failed"),
        ([phase(A, "failed", when="setup")], "failed"),
        ([phase(A), phase(A, "failed", when="teardown")], "failed"),
        ([phase(A, "failed"), phase(A, when="teardown")], "failed"),
        ([phase(A, "skipped", when="setup")], "skipped"),
        ([phase(A, "skipped", expected=True)], "xfailed"),
        ([phase(A, "rerun")], "idle"),
        ([], "idle"),
    ],
)
def test_a_test_ends_as_its_phases_did(phases: list[Phase], state: str) -> None:
    board = board_of(A)
    run_one(board, A, *phases)
    assert states(board) == [state]


def test_a_test_that_ended_without_a_result_says_so() -> None:
    board = board_of(A, B)
    run_one(board, A, phase(A, when="setup"), phase(A, when="teardown"))
    run_one(board, B, phase(B))
    assert [test.row()["why"] for test in board.tests.values()] == [NO_RESULT, ""]


def test_the_duration_is_that_of_the_test_itself_or_of_a_setup_that_failed() -> None:
    board = board_of(A)
    setup, teardown = (phase(A, when=when, seconds=9.0) for when in ("setup", "teardown"))
    run_one(board, A, setup, phase(A), teardown)
    assert board.tests[A].now.seconds == 0.5
    run_one(board, A, phase(A, "failed", when="setup", seconds=9.0))
    assert board.tests[A].now.seconds == 9.0


def test_a_test_that_takes_less_than_a_millisecond_has_a_duration() -> None:
    board = board_of(A)
    run_one(board, A, phase(A, seconds=0.00021))
    test = board.tests[A]
    assert (test.row()["seconds"], test.now.details()["seconds"]) == (0.00021, 0.00021)


def test_two_failures_of_a_test_are_both_shown_and_the_first_is_the_reason() -> None:
    board = board_of(A)
    teardown = phase(A, "failed", when="teardown", why="two", text="text two")
    run_one(board, A, phase(A, "failed", why="one", text="text one"), teardown)
    details = board.tests[A].now.details()
    assert (details["why"], details["text"]) == ("one", "text one\n\ntext two")


def test_a_failure_that_is_reported_at_a_pause_and_at_the_end_is_shown_once() -> None:
    board = board_of(A)
    failed = phase(A, "failed", text="text one")
    run_one(board, A, failed, Paused(test=A, pause=1), Resumed(test=A), failed)
    assert board.tests[A].now.text == "text one"


def test_files_in_the_directory_are_shown_relative_to_it() -> None:
    inside = Known(id=A, file="p/tests/test_a.py", path="/p/tests/test_a.py", name="a", line=1)
    board = RunBoard(directory="/p")
    board.handle(NotCollected(file="other.py", path="/other/other.py", text="no"))
    board.handle(Collected(tests=(inside,)))
    assert [test.file for test in board.tests.values()] == ["tests/test_a.py", "other.py"]


def test_only_the_chosen_tests_wait_and_the_others_keep_their_state() -> None:
    board = board_of(A, B)
    run_one(board, A, phase(A))
    run_one(board, B, phase(B, "failed"))
    board.begin((B,))
    assert states(board) == ["passed", "waiting"]
    new = "tests/test_b.py::test_new"
    board.handle(Collected(tests=(known(B, 7), known(new))))
    assert list(board.tests) == [B, new]  # A has gone
    assert states(board) == ["waiting", "idle"]
    assert board.tests[B].line == 7


def test_the_tests_of_a_file_are_listed_together_after_those_of_node() -> None:
    board = board_of(A, B, "tests/test_a.py::test_late")
    board.set_units([OneTest("tests/u.test.js", "tests/u.test.js", "/p/u", "u.test.js", 0, "node")])
    assert [row["at"] for row in board.since(0)["tests"]["changed"]] == [0, 1, 2, 3]  # type: ignore[index]
    assert list(board.tests) == ["tests/u.test.js", A, "tests/test_a.py::test_late", B]
    board.handle(Collected(tests=(known(A),)))
    assert list(board.tests) == ["tests/u.test.js", A]


def test_a_file_that_cannot_be_imported_is_listed_until_it_can() -> None:
    board = board_of(A)
    broken = NotCollected(file="tests/test_b.py", path="/p/tests/test_b.py", text="no module")
    for _ in range(2):
        board.begin(None)
        board.handle(broken)
        board.handle(Collected(tests=(known(A),)))
    module = board.tests["tests/test_b.py"]
    assert (module.kind, module.state, module.now.text) == ("module", "failed", "no module")
    assert module.changes == 1  # a page reads it again
    assert board.failed == ("tests/test_b.py",)
    board.begin(None)
    board.handle(Collected(tests=(known(A), known(B))))
    assert list(board.tests) == [A, B]


def test_a_call_is_kept_as_it_ended_even_if_older_news_comes_later() -> None:
    board = board_of(A)
    board.handle(Started(test=A))
    ended = record("c1", result="1")
    board.handle(CallSeen(test=A, running=True, record=record("c1")))
    assert board.tests[A].now.details()["running"] == ["c1"]
    board.handle(CallSeen(test=A, running=False, record=ended))
    board.handle(CallSeen(test=A, running=True, record=record("c1")))
    assert board.tests[A].now.records == [ended]
    assert board.tests[A].now.details()["running"] == []


def test_of_many_calls_the_last_are_kept_and_all_are_counted() -> None:
    board = board_of(A)
    board.handle(Started(test=A))
    for number in range(MOST_CALLS + 2):
        board.handle(CallSeen(test=A, running=False, record=record(str(number))))
    test = board.tests[A]
    assert [test.now.records[0].call_id, len(test.now.records)] == ["2", MOST_CALLS]
    assert (test.row()["calls"], test.now.details()["leftOut"]) == (MOST_CALLS + 2, 2)


def test_screenshots_faults_sections_and_traces_are_in_the_details() -> None:
    board = board_of(A)
    board.handle(Started(test=A))
    board.handle(ScreenshotTaken(test=A, when="before", calls=("c1",), file="1.jpg"))
    board.handle(FaultsSeen(test=A, seed=3, rules=("drop port: up 1",), done=("stop",), log="{}"))
    board.handle(phase(A, sections=(("Captured stdout", "printed"),)))
    board.handle(Ended(test=A, traces=("/t.zip",)))
    details = board.tests[A].now.details()
    assert details["screenshots"] == [
        {"when": "before", "calls": ["c1"], "file": "1.jpg", "of": ""}
    ]
    assert details["injected"][0]["rules"] == ["drop port: up 1"]
    assert board.tests[A].row()["faults"] == 2
    assert details["sections"] == [("Captured stdout", "printed")]
    assert board.tests[A].traces == ("/t.zip",)
    board.handle(Started(test=A))
    assert board.tests[A].now.details()["screenshots"] == []


def test_a_stay_has_its_number_until_it_is_over() -> None:
    board = board_of(A)
    board.handle(Started(test=A))
    board.handle(phase(A, "failed"))
    board.handle(Paused(test=A, pause=2))
    assert (states(board), board.tests[A].pause, board.failed) == (["paused"], 2, (A,))
    board.handle(Resumed(test=A))
    assert (states(board), board.tests[A].pause) == (["running"], None)
    board.handle(Ended(test=A))
    assert states(board) == ["failed"]


def test_a_run_that_is_stopped_leaves_its_tests_not_run() -> None:
    board = board_of(A, B)
    board.handle(Started(test=A))
    board.handle(phase(A, "failed"))
    board.handle(Paused(test=A, pause=1))
    board.end()
    assert states(board) == ["failed", "idle"]
    assert board.tests[A].pause is None


def test_a_test_that_ran_when_the_run_was_stopped_says_so() -> None:
    board = board_of(A, B)
    board.handle(Started(test=A))
    board.end()
    assert [test.now.why for test in board.tests.values()] == [STOPPED, ""]
    assert states(board) == ["idle", "idle"]


def test_a_test_that_passes_when_it_runs_again_is_flaky_and_keeps_its_attempts() -> None:
    board = board_of(A, B)
    for test, last in ((A, "passed"), (B, "failed")):
        board.handle(Started(test=test))
        board.handle(CallSeen(test=test, running=False, record=record("c1")))
        board.handle(phase(test, "failed", why="slow today"))
        board.handle(Retried(test=test))
        board.handle(CallSeen(test=test, running=False, record=record("c2")))
        board.handle(phase(test, last))
        board.handle(Ended(test=test, files=("/v.webm",)))
    assert states(board) == ["flaky", "failed"]
    first, second = board.tests[A].attempts
    assert (first.outcome, first.why, first.records) == ("failed", "slow today", [record("c1")])
    assert (second.outcome, second.why, second.records) == ("passed", "", [record("c2")])
    assert (board.tests[A].row()["attempts"], board.tests[A].files) == (2, ("/v.webm",))
    board.handle(Started(test=A))
    assert (len(board.tests[A].attempts), board.tests[A].files) == (1, ())


@pytest.mark.parametrize(
    ("phases", "where"),
    [
        ([phase(A, "failed", when="setup"), phase(A, "failed", when="teardown")], "setup"),
        ([phase(A), phase(A, "failed", when="teardown")], "teardown"),
        ([phase(A, "failed"), phase(A, "failed", when="teardown")], "call"),
        ([phase(A)], ""),
    ],
)
def test_it_is_known_in_which_phase_a_test_failed_first(phases: list[Phase], where: str) -> None:
    board = board_of(A)
    run_one(board, A, *phases)
    assert board.tests[A].row()["failedIn"] == where


def test_what_a_recording_did_not_answer_is_in_the_details() -> None:
    board = board_of(A)
    board.handle(Started(test=A))
    board.handle(Unanswered(test=A, recording="a.har", requests=(("GET /x", 2),), more=3))
    assert board.tests[A].now.details()["unanswered"] == [
        {
            "browser": "",
            "recording": "a.har",
            "requests": [{"text": "GET /x", "count": 2}],
            "more": 3,
        }
    ]


def test_tests_that_have_ended_are_not_part_of_how_the_run_ends() -> None:
    board = board_of(A)
    run_one(board, A, phase(A))
    board.end("pytest was ended by signal 9.")
    assert states(board) == ["passed"]


def test_a_run_that_dies_fails_the_test_that_it_died_in() -> None:
    board = board_of(A, B)
    board.handle(Started(test=A))
    board.end("pytest was ended by signal 9.")
    assert states(board) == ["failed", "idle"]
    assert board.tests[A].now.text == "pytest was ended by signal 9."


def test_events_of_tests_that_are_not_known_are_ignored() -> None:
    board = board_of(A)
    before = board.version
    board.handle(Started(test=B))
    board.handle(BrowserStarted(version="156"))
    board.handle(Lost(count=3))
    assert board.version == before


def test_a_reader_gets_what_has_changed_since_its_version() -> None:
    board = board_of(A, B)
    board.set_status({"state": "running"})
    first = board.since(0)
    assert first is not None
    assert [row["id"] for row in first["tests"]["changed"]] == [A, B]
    assert first["status"]["changed"] == [{"state": "running"}]
    assert board.since(first["version"]) is None
    board.handle(Started(test=B))
    after = board.since(first["version"])
    assert after is not None
    assert [row["state"] for row in after["tests"]["changed"]] == ["running"]
    assert "status" not in after
    board.handle(Collected(tests=(known(A),)))
    gone = board.since(after["version"])
    assert gone is not None
    assert gone["tests"]["gone"] == [B]


def test_the_tests_that_ended_first_lose_their_details_when_there_are_too_many() -> None:
    board = board_of(A, B, whole=5_000)
    for test in (A, B):
        board.handle(Started(test=test))
        board.handle(CallSeen(test=test, running=False, record=record("c", result="x" * 3_000)))
        board.handle(phase(test))
        board.handle(Ended(test=test))
    assert (board.tests[A].now.forgotten, board.tests[A].now.records) == (True, [])
    assert (board.tests[B].now.forgotten, len(board.tests[B].now.records)) == (False, 1)
    assert states(board) == ["passed", "passed"]


def test_details_that_are_of_a_later_run_are_not_taken_for_those_of_an_earlier_one() -> None:
    board = board_of(A, whole=5_000)
    for _ in range(3):
        board.handle(Started(test=A))
        board.handle(CallSeen(test=A, running=False, record=record("c", result="x" * 3_000)))
        board.handle(Ended(test=A))
    assert len(board.tests[A].now.records) == 1


def test_what_is_forgotten_may_be_of_a_test_that_is_gone() -> None:
    board = board_of(A, B, whole=1)
    board.handle(Collected(tests=(known(B),)))
    run_one(board, B, phase(B, "failed", text="xx"))
    board.handle(Collected(tests=()))
    board.handle(Collected(tests=(known(A),)))
    run_one(board, A, phase(A, "failed", text="xx"))
    assert board.tests[A].now.forgotten


def test_files_are_known_by_their_path() -> None:
    assert board_of(A, B).files == {
        "/p/tests/test_a.py": "tests/test_a.py",
        "/p/tests/test_b.py": "tests/test_b.py",
    }
