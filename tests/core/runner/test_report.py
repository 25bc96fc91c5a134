"""The report of a run: its content, and how several are merged."""

from typing import Any

import pytest

from opentabs_py.core.limits import Limits
from opentabs_py.core.runner.events import CallSeen, Phase, ScreenshotTaken
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.core.runner.report import (
    Report,
    Run,
    fitting,
    lighten,
    merge,
    screenshots_by_worth,
)
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ReportError


def run(name: str, started: float = 1.0, shard: tuple[int, int] | None = None) -> Run:
    return Run(id=name, started=started, shard=shard)


def entry(test: str, state: str, *, attempts: int = 1, file: str = "a.py") -> dict[str, Any]:
    shown = "passed" if state == "flaky" else state
    before = [{"state": "failed", "run": 0}] * (attempts - 1)
    return {
        "id": f"{file}::{test}",
        "file": file,
        "name": test,
        "state": state,
        "at": 0,
        "attempts": [*before, {"state": shown, "run": 0}],
        "files": [{"href": f"{test}.zip"}],
    }


def merged(*reports: tuple[Run, list[dict[str, Any]]]) -> Report:
    return merge([Report([each], tests) for each, tests in reports])


def test_the_parts_of_a_suite_become_one() -> None:
    first = (run("x", shard=(1, 2)), [entry("test_a", "passed")])
    second = (run("y", shard=(2, 2)), [entry("test_b", "failed", file="b.py")])

    whole = merged(second, first)

    assert [each.id for each in whole.runs] == ["y", "x"]
    assert [(test["id"], test["at"]) for test in whole.tests] == [
        ("b.py::test_b", 0),
        ("a.py::test_a", 1),
    ]
    assert [test["attempts"][0]["run"] for test in whole.tests] == [0, 1]
    assert whole.missing == []


def test_the_tests_of_a_file_are_together_even_if_parts_divide_it() -> None:
    first = (run("x"), [entry("test_a", "passed"), entry("test_b", "passed", file="b.py")])
    second = (run("y", 2.0), [entry("test_c", "passed")])

    names = [test["name"] for test in merged(first, second).tests]

    assert names == ["test_a", "test_c", "test_b"]


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ("failed", "passed", "flaky"),
        ("passed", "failed", "failed"),
        ("passed", "passed", "passed"),
        ("flaky", "passed", "flaky"),
        ("passed", "skipped", "passed"),
        ("skipped", "passed", "passed"),
        ("failed", "idle", "failed"),
        ("idle", "skipped", "skipped"),
        ("xfailed", "passed", "passed"),
    ],
)
def test_a_test_in_two_reports_is_as_the_last_run_left_it_that_ran_it(
    before: str, after: str, state: str
) -> None:
    tests = ([entry("t", each, attempts=1 + (each == "flaky"))] for each in (before, after))
    first, second = tests

    [test] = merged((run("y", 2.0), second), (run("x", 1.0), first)).tests

    assert test["state"] == state
    assert test["files"] == [{"href": "t.zip"}, {"href": "t.zip"}]


def test_the_attempts_of_two_reports_are_in_the_order_of_their_runs() -> None:
    first = (run("x", 1.0), [entry("t", "failed")])
    second = (run("y", 2.0), [entry("t", "flaky", attempts=2)])

    [test] = merged(second, first).tests

    assert [(each["run"], each["state"]) for each in test["attempts"]] == [
        (0, "failed"),
        (1, "failed"),
        (1, "passed"),
    ]


def test_a_test_that_did_not_run_in_one_report_has_no_attempt_there() -> None:
    first = (run("x", 1.0), [entry("t", "failed")])
    second = (run("y", 2.0), [entry("t", "idle")])

    [test] = merged(first, second).tests

    assert [each["run"] for each in test["attempts"]] == [0]


def test_one_run_cannot_be_merged_with_itself_or_with_a_report_that_has_it() -> None:
    one = Report([run("x")], [])
    with pytest.raises(ReportError, match="same run"):
        merge([one, one])
    with pytest.raises(ReportError, match="same run"):
        merge([merge([one, Report([run("y")], [])]), one])


def test_the_parts_that_are_missing_are_named() -> None:
    assert merged((run("x", shard=(1, 4)), []), (run("y", shard=(3, 4)), [])).missing == [
        "Part 2 of 4 is missing.",
        "Part 4 of 4 is missing.",
    ]
    assert merged((run("x", shard=(1, 2)), [])).missing == ["Part 2 of 2 is missing."]
    assert Report([run("x", shard=(1, 4))], []).missing == []  # it is what was requested
    assert merged((run("x", shard=(1, 1)), [])).missing == []
    assert merged((run("x"), []), (run("y"), [])).missing == []


def test_the_screenshots_of_failures_come_first() -> None:
    def test(state: Any, *screenshots: tuple[str, Any]) -> OneTest:
        made = OneTest(state, "a.py", "/a.py", state, 1, "pytest", state=state)
        made.now.screenshots = [
            ScreenshotTaken(test=state, when=when, file=file) for file, when in screenshots
        ]
        return made

    tests = [
        test("passed", ("1", "after")),
        test("flaky", ("2", "before")),
        test("failed", ("3", "before"), ("4", "failure")),
    ]

    assert [each.file for each in screenshots_by_worth(tests)] == ["4", "3", "2", "1"]


def test_files_are_kept_that_fit_and_none_is_cut() -> None:
    assert fitting([("a", 6), ("b", 5), ("c", 4), ("d", 1)], 10) == {"a", "c"}
    assert fitting([], 10) == set()


def heavy(state: Any) -> OneTest:
    test = OneTest(state, "a.py", "/a.py", state, 1, "pytest", state=state)
    record = CallRecord("c", "t", 1.0, 0.1, "succeeded", Limits(), result="x" * 5_000)
    test.now.handle_call(CallSeen(test=state, running=False, record=record))
    test.now.handle_phase(Phase(test=state, when="call", outcome="failed", seconds=1, text="why"))
    return test


def test_passed_tests_lose_their_calls_before_failed_ones_do() -> None:
    tests = [heavy("failed"), heavy("passed"), heavy("flaky"), heavy("skipped")]

    assert lighten(tests, most=13_000) == 2

    assert [test.now.forgotten for test in tests] == [False, True, False, True]
    assert [test.now.text for test in tests] == ["why"] * 4


def test_failed_tests_lose_their_calls_too_if_that_is_not_enough() -> None:
    tests = [heavy("failed"), heavy("passed")]
    assert lighten(tests, most=0) == 2
    assert [test.now.forgotten for test in tests] == [True, True]


def test_calls_are_kept_if_there_is_room() -> None:
    tests = [heavy("passed")]
    assert lighten(tests) == 0
    assert not tests[0].now.forgotten
