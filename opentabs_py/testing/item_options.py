"""The marks and options of a pytest item. Every run of pytest imports this module too."""

import inspect
from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from opentabs_py.testing.marks import Marks, RunsOn
    from opentabs_py.testing.people import People
    from opentabs_py.testing.recordings.recording import MarkedRecording, RecordMode

MARK = "opentabs"
PEOPLE: "pytest.StashKey[People]" = pytest.StashKey()


def marks_of(item: pytest.Item) -> "Marks":
    """Return the options of a test's marks; one that is not valid fails the test."""
    from opentabs_py.testing.marks import read_marks

    try:
        return read_marks((mark.args, mark.kwargs) for mark in item.iter_markers(MARK))
    except ValueError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def clock_of(item: pytest.Item) -> "RunsOn | None":
    """Return what drives the timers of a test's calls; None if neither test nor run selects it."""
    chosen = option(item.config, "clock")
    if chosen == "real":
        return "real"
    return marks_of(item).clock or ("manual" if chosen == "manual" else None)


def faults_seed_of(item: pytest.Item) -> int:
    """Return the seed for a test's random faults."""
    given: int | None = item.config.getoption("opentabs_faults_seed")
    return marks_of(item).faults_seed if given is None else given


def recording_of(request: pytest.FixtureRequest) -> "MarkedRecording | None":
    """Return the recording that a test names, and what to do with it; None if it names none."""
    marks = marks_of(request.node)
    if marks.recording is None:
        return None
    from opentabs_py.testing.recordings.recording import MarkedRecording, WrittenRecordings

    mode = cast("RecordMode", option(request.config, "record"))
    written = WrittenRecordings(_shared_directory(request))
    return MarkedRecording(
        request.path.parent / marks.recording, mode, marks.replay_timing, written
    )


def _shared_directory(request: pytest.FixtureRequest) -> "Path":
    """Return a temporary directory that all processes of this run share, and no other run."""
    own: Path = request.getfixturevalue("tmp_path_factory").getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own  # that of pytest-xdist


def is_async(item: object) -> bool:
    """Return whether a test is async."""
    return inspect.iscoroutinefunction(getattr(item, "obj", None))


def uses_opentabs(request: pytest.FixtureRequest) -> bool:
    """Return whether a test uses the `opentabs` fixture or our mark."""
    return "opentabs" in request.fixturenames or request.node.get_closest_marker(MARK) is not None


def is_ours(item: pytest.Item) -> bool:
    """Return whether a test uses the `opentabs` fixture and is not async."""
    return "opentabs" in getattr(item, "fixturenames", ()) and not is_async(item)


def option(config: pytest.Config, name: str) -> str:
    """Return the value of one of our options, from the command line or a settings file."""
    given: str | None = config.getoption(f"opentabs_{name}")
    ini: str = config.getini(f"opentabs_{name}")
    return given or ini
