"""Recordings on disk."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response
from opentabs_py.errors import RecordingError
from opentabs_py.recording.files import bodies_dir, check_place, read_recording, write_recording


def recording(*bodies: bytes) -> Recording:
    return Recording(
        "https://site.test/",
        [
            Exchange(Request("GET", "https://site.test/"), Response(200, body=each))
            for each in bodies
        ],
    )


def write(file: Path, *bodies: bytes) -> None:
    write_recording(recording(*bodies), file, version="1")


def read(file: Path) -> list[bytes | None]:
    answers = [each.response for each in read_recording(file).exchanges]
    return [None if answer is None else answer.body for answer in answers]


def test_a_recording_and_its_bodies_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "new" / "site.har"
    write(file, b"one", b"two", b"one", b"")
    assert read(file) == [b"one", b"two", b"one", b""]
    assert len([*bodies_dir(file).iterdir()]) == 2


def test_a_new_recording_takes_the_old_one_s_place(tmp_path: Path) -> None:
    file = tmp_path / "site.har"
    write(file, b"one", b"two")
    write(file, b"two", b"three")
    assert read(file) == [b"two", b"three"]
    assert len([*bodies_dir(file).iterdir()]) == 2


def test_recordings_whose_names_begin_alike_keep_their_own_bodies(tmp_path: Path) -> None:
    write(tmp_path / "chat.v1", b"one")
    write(tmp_path / "chat.v2", b"two")
    assert read(tmp_path / "chat.v1") == [b"one"]
    assert read(tmp_path / "chat.v2") == [b"two"]


@pytest.mark.parametrize("place", ["taken", "file/site.har", "site.har"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_recorded(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "site.bodies").touch()
    with pytest.raises(RecordingError, match=f"Cannot write the recording {tmp_path / place}: "):
        check_place(tmp_path / place)


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_place_without_a_name_is_refused(place: str) -> None:
    with pytest.raises(RecordingError, match=r"Cannot write the recording [./]: Is a directory"):
        check_place(Path(place))


def test_checking_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    check_place(tmp_path / "new" / "site.har")
    assert [*tmp_path.rglob("*")] == [tmp_path / "new"]


def test_what_others_have_put_beside_the_bodies_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "site.har"
    write(file, b"one")
    (bodies_dir(file) / "notes.txt").write_text("mine")
    (bodies_dir(file) / "more").mkdir()
    write(file, b"two")
    assert {"notes.txt", "more"} < {each.name for each in bodies_dir(file).iterdir()}
    assert len([*bodies_dir(file).iterdir()]) == 3


def test_a_recording_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "site.har"
    write(file, b"one")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("opentabs_py.recording.files.write_whole", fail)
    with pytest.raises(RecordingError, match=r"site\.har: No space left on device"):
        write(file, b"two")
    assert read(file) == [b"one"]


@pytest.mark.parametrize("outside", ["../secret.txt", "/etc/hostname", "link.txt"])
@pytest.mark.parametrize(("of", "member"), [("request", "postData"), ("response", "content")])
def test_a_body_outside_the_directory_is_not_read(
    tmp_path: Path, outside: str, of: str, member: str
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    directory = tmp_path / "tests"
    directory.mkdir()
    if sys.platform != "win32":
        (directory / "link.txt").symlink_to(tmp_path / "secret.txt")
    entry: dict[str, Any] = {
        "startedDateTime": "2026-11-23T12:00:00Z",
        "request": {"method": "GET", "url": "https://site.test/"},
        "response": {"status": 200},
    }
    entry[of][member] = {"_file": outside}
    (directory / "site.har").write_text(json.dumps({"log": {"entries": [entry]}}))

    with pytest.raises(RecordingError, match="outside the recording's directory"):
        read_recording(directory / "site.har")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "site.har"
    with pytest.raises(RecordingError, match=r"There is no recording .*site\.har"):
        read_recording(file)
    write(file, b"one")
    [body] = bodies_dir(file).iterdir()
    body.unlink()
    with pytest.raises(RecordingError, match=body.name):
        read_recording(file)


@pytest.mark.parametrize(
    ("name", "why"), [("", "Is a directory"), ("a" * 300, "File name too long")]
)
def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path, name: str, why: str) -> None:
    file = tmp_path / name
    with pytest.raises(RecordingError, match=re.escape(f"Cannot read {file}: {why}.")):
        read_recording(file)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"log": {}}', "[" * 100_000])
def test_what_is_not_a_recording_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "site.har"
    file.write_text(text)
    with pytest.raises(RecordingError, match=r"site\.har is not a recording"):
        read_recording(file)
