"""Makes the report of a run from what it has reported, and writes it."""

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from opentabs_py.calling.clock import wall_clock
from opentabs_py.config.files import check_writable, write_whole
from opentabs_py.core.runner.board import RunBoard
from opentabs_py.core.runner.events import BrowserStarted, Lost
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.core.runner.report import (
    MOST_SCREENSHOTS,
    MOST_VIDEO,
    Report,
    Run,
    fitting,
    lighten,
    screenshots_by_worth,
)
from opentabs_py.core.text import quantity
from opentabs_py.errors import ReportError
from opentabs_py.runner.details import attempt_data
from opentabs_py.runner.report_page import to_html
from opentabs_py.runner.spool import SCREENSHOTS, read_events, read_run, remove
from opentabs_py.tracing.inline import data_url

_NO_FAILURE: Final = (0, 5)  # pytest's exit codes: passed, no tests
_VIDEO: Final = ".webm"


class Begun(BaseModel):
    """A run, and where its report goes; written when it begins."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: Run
    file: str


def check_place(file: Path) -> None:
    """Make a report's directory, and check that the report can be written.

    Raises:
        ReportError: It cannot.
    """
    try:
        check_writable(file)
    except OSError as error:
        raise _unwritable(file, error) from None


def finish(spool: Path, why: str = "", *, exit_code: int = 0, crashed: bool = False) -> Path:
    """Write the report of a run from its directory, and remove that.

    Args:
        spool: The run's directory.
        why: Why the run did not come to its end; empty if it did.
        exit_code: pytest's.
        crashed: Whether the test that ran is the reason.

    Returns:
        The report's file.

    Raises:
        ReportError: It cannot be written.
    """
    begun = Begun.model_validate_json(read_run(spool))
    file = Path(begun.file)
    try:
        report = _report(spool, begun.run, file, why, exit_code=exit_code, crashed=crashed)
        write(file, report)
    except ReportError:
        remove(spool)
        raise
    remove(spool)  # if this was interrupted, the guard still has it
    return file


def write(file: Path, report: Report) -> None:
    """Write a report; a file that is there is replaced as a whole.

    Raises:
        ReportError: It cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, map(str.encode, to_html(report)), mode=0o666)  # less the umask
    except OSError as error:
        raise _unwritable(file, error) from None


def _unwritable(file: Path, error: OSError) -> ReportError:
    return ReportError(f"Cannot write the report {file}: {error.strerror}.")


def _report(
    spool: Path, run: Run, file: Path, why: str, *, exit_code: int, crashed: bool
) -> Report:
    board = RunBoard(whole=2**62)
    board.begin(None)
    versions = dict(run.versions)
    lost = 0
    for event in read_events(spool):
        if isinstance(event, BrowserStarted):
            versions["Chromium"] = event.version
        if isinstance(event, Lost):
            lost += event.count
        board.handle(event)
    board.end(why if crashed else "")
    reasons = [why] if why else []
    if lost:
        reasons.append(f"{quantity(lost, 'event')} of it could not be read.")
    if not (reasons or board.failed or exit_code in _NO_FAILURE):
        reasons.append(f"pytest exited with {exit_code}, but none of these tests has failed.")
    tests = [*board.tests.values()]
    lightened = lighten(tests)
    screenshots = _read_screenshots(tests, spool / SCREENSHOTS)
    videos = _small_videos(tests)
    entries = [_entry(test, run.id, screenshots, videos, file.parent) for test in tests]
    left = sum(each["screenshotsLeftOut"] for entry in entries for each in entry["attempts"])
    more = {
        "seconds": round(wall_clock() - run.started, 3),
        "why": " ".join(reasons),
        "versions": versions,
        "screenshots_left_out": left,
        "lightened": lightened,
    }
    return Report([run.model_copy(update=more)], entries)


def _entry(
    test: OneTest, run: str, screenshots: Mapping[str, str], videos: set[str], beside: Path
) -> dict[str, Any]:
    attempts: list[dict[str, Any]] = []
    for attempt in test.attempts:
        data = attempt_data(attempt)
        shown = [
            {**each, "data": screenshots[each["file"]], "file": f"{run}-{each['file']}"}
            for each in data["screenshots"]
            if each["file"] in screenshots
        ]
        left_out = len(data["screenshots"]) - len(shown)
        attempts.append({**data, "screenshots": shown, "screenshotsLeftOut": left_out, "run": 0})
    files = [_kept(Path(each), videos, beside) for each in [*test.traces, *test.files]]
    return {**test.row(), "attempts": attempts, "files": [each for each in files if each]}


def _read_screenshots(tests: Sequence[OneTest], directory: Path) -> dict[str, str]:
    """Return the screenshots that the report holds, in base64, by their names."""
    sizes: list[tuple[str, int]] = []
    for each in screenshots_by_worth(tests):
        with suppress(OSError):  # the process died while it wrote it
            sizes.append((each.file, (directory / each.file).stat().st_size))
    return {
        name: base64.b64encode((directory / name).read_bytes()).decode()
        for name in fitting(sizes, MOST_SCREENSHOTS)
    }


def _small_videos(tests: Sequence[OneTest]) -> set[str]:
    ordered = sorted(tests, key=lambda test: test.state not in ("failed", "flaky"))
    videos = [each for test in ordered for each in test.files if each.endswith(_VIDEO)]
    sizes: list[tuple[str, int]] = []
    for each in videos:
        with suppress(OSError):
            sizes.append((each, Path(each).stat().st_size))
    return fitting(sizes, MOST_VIDEO)


def _kept(file: Path, videos: set[str], beside: Path) -> dict[str, Any] | None:
    """Return what the report says of a file that was kept; None if it is gone."""
    try:
        size = file.stat().st_size
        embedded = data_url(file.read_bytes(), "video/webm") if str(file) in videos else ""
    except OSError:
        return None
    return {
        "name": file.name,
        "size": size,
        "href": link(file, beside),
        "data": embedded,
    }


def link(file: Path, beside: Path) -> str:
    """Return a file's URL, relative to a directory."""
    try:
        return quote(Path(os.path.relpath(file, beside)).as_posix())
    except ValueError:  # on another drive
        return file.absolute().as_uri()
