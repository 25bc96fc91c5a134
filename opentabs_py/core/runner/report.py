"""The report of a run: its content, its size limits, and merging."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from opentabs_py.core.runner.events import ScreenshotTaken
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.core.runner.shard import MOST_PARTS
from opentabs_py.errors import ReportError

FORMAT: Final = 2
MOST_SCREENSHOTS: Final = 12 * 1024 * 1024  # bytes of screenshots of one run; an e-mail may hold it
MOST_DETAILS: Final = 64 * 1024 * 1024  # bytes of calls and texts, about
MOST_VIDEO: Final = 2 * 1024 * 1024  # bytes; larger videos stay files beside the report
_RAN: Final = {"idle": 0, "skipped": 1}  # the other states say more about a test


class Run(BaseModel):
    """One run of pytest.

    Attributes:
        id: Unique among all runs.
        started: When, in seconds since the epoch.
        why: Why it is incomplete; empty if it is not.
        versions: Those of Python, Chromium and the packages, by name.
        directory: The name of the plugin's directory; of pytest's root directory, if its tests are
            not all in one plugin's.
        arguments: pytest's.
        seeds: The seeds it was given, by the name of their option.
        shard: Its part and how many there are, if it is one of several.
        workers: How many processes ran tests; 0 for pytest's own.
        screenshots_left_out: How many screenshots are left out of the report.
        lightened: How many tests are in the report without their calls.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    started: float
    seconds: float = 0.0
    why: str = ""
    versions: dict[str, str] = {}
    platform: str = ""
    directory: str = ""
    arguments: tuple[str, ...] = ()
    seeds: dict[str, int] = {}
    shard: tuple[int, Annotated[int, Field(le=MOST_PARTS)]] | None = None
    workers: int = 0
    screenshots_left_out: int = 0
    lightened: int = 0


class ReportedAttempt(BaseModel):
    """What merging reads of an attempt."""

    model_config = ConfigDict(extra="allow", strict=True)

    state: str
    run: int = 0


class ReportedFile(BaseModel):
    """What merging reads of a file that was kept."""

    model_config = ConfigDict(extra="allow", strict=True)

    href: str


class ReportedTest(BaseModel):
    """What merging reads of a test; the rest is only shown."""

    model_config = ConfigDict(extra="allow")

    id: str
    file: str
    name: str
    state: str
    at: int
    attempts: list[ReportedAttempt]
    files: list[ReportedFile]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of one run, or of several.

    Attributes:
        tests: Each as `ReportedTest` describes, with all that is shown of it.
        is_merged: Whether it was merged, perhaps of only one.
    """

    runs: Sequence[Run]
    tests: Sequence[Mapping[str, Any]]
    is_merged: bool = False

    @property
    def missing(self) -> list[str]:
        """The missing parts; none if the reports are not parts, or this is that of one part."""
        if not self.is_merged:
            return []
        there = {run.shard for run in self.runs if run.shard is not None}
        counts = sorted({count for _, count in there})
        return [
            f"Part {part} of {count} is missing."
            for count in counts
            for part in range(1, count + 1)
            if (part, count) not in there
        ]


def merge(reports: Sequence[Report]) -> Report:
    """Return one report of all runs.

    A test that is in several of them has the attempts of all, in the order of the runs. Its
    outcome is that of the last run; flaky, if it failed earlier and passed there.

    Raises:
        ReportError: Two of them are of the same run.
    """
    ids = [run.id for report in reports for run in report.runs]
    if len(set(ids)) < len(ids):
        raise ReportError("Two of these reports are of the same run. Name each report once.")
    ordered = sorted(reports, key=lambda report: report.runs[0].started)
    merged: dict[str, dict[str, Any]] = {}
    runs: list[Run] = []
    for report in ordered:
        for test in report.tests:
            new = _moved(test, len(runs))
            known = merged.get(new["id"])
            merged[new["id"]] = new if known is None else _joined(known, new)
        runs += report.runs
    return Report(runs, _in_files(merged.values()), is_merged=True)


def _moved(test: Mapping[str, Any], by: int) -> dict[str, Any]:
    attempts = [{**each, "run": each.get("run", 0) + by} for each in test["attempts"]]
    return {**test, "attempts": attempts}


def _joined(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return a test that is in two reports."""
    says_more = _RAN.get(after["state"], 2) >= _RAN.get(before["state"], 2)
    last, first = (after, before) if says_more else (before, after)
    attempts = [*_that_ran(first), *last["attempts"]]
    state = last["state"]
    if state == "passed" and any(each["state"] == "failed" for each in attempts):
        state = "flaky"
    files = [*before["files"], *after["files"]]
    return {**last, "state": state, "attempts": attempts, "files": files}


def _that_ran(test: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [] if test["state"] == "idle" else test["attempts"]


def _in_files(tests: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tests with those of a file together, numbered in their order."""
    files: dict[str, list[dict[str, Any]]] = {}
    for test in tests:
        files.setdefault(test["file"], []).append(test)
    ordered = [test for group in files.values() for test in group]
    return [{**test, "at": at} for at, test in enumerate(ordered)]


def screenshots_by_worth(tests: Sequence[OneTest]) -> list[ScreenshotTaken]:
    """Return all screenshots, those first that say most about why tests fail."""
    worth = {"failed": 0, "flaky": 1}
    ordered = sorted(tests, key=lambda test: worth.get(test.state, 2))
    found = [each for test in ordered for attempt in test.attempts for each in attempt.screenshots]
    bad = [each for each in found if each.when == "failure"]
    return [*bad, *(each for each in found if each.when != "failure")]


def lighten(tests: Sequence[OneTest], most: int = MOST_DETAILS) -> int:
    """Drop the calls of tests, passed ones first, until the rest fits.

    Args:
        tests: The tests.
        most: How many bytes the calls and texts of all tests may have, about.

    Returns:
        How many tests have lost theirs.
    """
    weights = {test.id: test.weight() for test in tests}
    over = sum(weights.values()) - most
    dropped = 0
    for test in sorted(tests, key=lambda test: test.state in ("failed", "flaky")):
        if over <= 0:
            break
        test.drop_details()
        over -= weights[test.id] - test.weight()
        dropped += 1
    return dropped


def fitting(sizes: Iterable[tuple[str, int]], most: int) -> set[str]:
    """Return the files that fit; the first named take precedence.

    Args:
        sizes: Their names and sizes in bytes.
        most: How many bytes they may have together.
    """
    fits: set[str] = set()
    for name, size in sizes:
        if size <= most:
            fits.add(name)
            most -= size
    return fits
