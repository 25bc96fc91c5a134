"""Which recording a test begins with."""

from pathlib import Path

import pytest

from opentabs_py.core.recording.exchange import Recording
from opentabs_py.errors import RecordingError
from opentabs_py.recording.files import write_recording
from opentabs_py.testing.recordings.recording import (
    MarkedRecording,
    RecordMode,
    WrittenRecordings,
)

URL = "https://site.test/"


def marked(file: Path, mode: RecordMode) -> MarkedRecording:
    return MarkedRecording(file, mode, "instant", WrittenRecordings(file.parent))


def test_a_damaged_recording_that_is_recorded_again_counts_as_none(tmp_path: Path) -> None:
    file = tmp_path / "site.har"
    file.write_text("{")
    assert marked(file, "all").read(()).recording == Recording("")
    for mode in ("none", "missing"):
        with pytest.raises(
            RecordingError, match=r"is not a recording: .*\. To replace it, .*=all\."
        ):
            marked(file, mode).read(())


def test_what_is_recorded_again_still_says_which_page_was_opened(tmp_path: Path) -> None:
    file = tmp_path / "site.har"
    write_recording(Recording(URL), file, version="1")
    assert marked(file, "all").read(()).recording.url == URL
