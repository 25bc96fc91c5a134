"""What a process that runs tests keeps of the screenshots."""

from pathlib import Path
from typing import Literal

import pytest

from opentabs_py.core.runner.events import ScreenshotTaken
from opentabs_py.runner.spool import SCREENSHOTS, SpoolWriter, prepare, read_events
from opentabs_py.testing.notes import ScreenshotStore
from opentabs_py.testing.reports.spooling import Spooling


def report(test: str, outcome: Literal["passed", "failed"]) -> pytest.TestReport:
    return pytest.TestReport(test, ("a.py", 1, test), {}, outcome, None, "call")


def run_one(spooling: Spooling, directory: Path, test: str, *outcomes: str) -> None:
    spooling.pytest_runtest_logstart(test)
    (directory / SCREENSHOTS / f"{test}.jpg").write_bytes(b"x" * 10)
    spooling.send(ScreenshotTaken(test=test, when="after", file=f"{test}.jpg"))
    for outcome in outcomes[:-1]:
        assert outcome == "failed"
        spooling.begin_again([report(test, "failed")])
    spooling.pytest_runtest_logreport(
        report(test, "failed" if outcomes[-1] == "failed" else "passed")
    )
    spooling.pytest_runtest_logfinish(test)


def test_of_many_screenshots_those_of_tests_that_passed_are_not_kept(tmp_path: Path) -> None:
    prepare(tmp_path, "{}")
    writer = SpoolWriter(tmp_path, "main")
    spooling = Spooling(writer, ScreenshotStore(tmp_path / SCREENSHOTS, iter(()), 10), most=15)

    run_one(spooling, tmp_path, "first", "passed")
    run_one(spooling, tmp_path, "second", "passed")  # now there are more than 15 bytes
    run_one(spooling, tmp_path, "passes", "passed")
    run_one(spooling, tmp_path, "fails", "failed")
    run_one(spooling, tmp_path, "flaky", "failed", "passed")
    writer.close()

    kept = {each.stem for each in (tmp_path / SCREENSHOTS).iterdir()}
    assert kept == {"first", "second", "fails", "flaky"}
    taken = [each for each in read_events(tmp_path) if isinstance(each, ScreenshotTaken)]
    assert len(taken) == 5  # so that the report counts what it omits
