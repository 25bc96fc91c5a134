"""Recordings on disk: a HAR, and a directory with its bodies beside it."""

import json
import re
from pathlib import Path
from typing import Final

from opentabs_py.config.files import check_writable, write_whole
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.recording.har import to_har
from opentabs_py.core.recording.har_reader import HarError, from_har
from opentabs_py.errors import RecordingError

_BODY: Final = re.compile(r"[0-9a-f]{20}\.[a-z]+")


def bodies_dir(file: Path) -> Path:
    """Return the directory with the bodies of a recording."""
    is_har = file.suffix == ".har"
    return file.with_suffix(".bodies") if is_har else file.with_name(f"{file.name}.bodies")


def check_place(file: Path) -> None:
    """Check that a recording can be written to a file, before it is made.

    Raises:
        RecordingError: It cannot.
    """
    try:
        check_writable(file)
        if (folder := bodies_dir(file)).exists():
            check_writable(folder / "body")
    except OSError as error:
        raise _unwritable(file, error) from error


def write_recording(recording: Recording, file: Path, *, version: str) -> None:
    """Write a recording, in place of what is there.

    Args:
        recording: What to write, which is scrubbed.
        file: The HAR.
        version: The version of this package.

    Raises:
        RecordingError: The files cannot be written.
    """
    folder = bodies_dir(file)
    har, bodies = to_har(recording, folder=folder.name, version=version)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = {*folder.iterdir()}
        named = {folder / Path(path).name: body for path, body in bodies.items()}
        for each in named.keys() - before:  # a name says what is in it
            write_whole(each, named[each])
        text = json.dumps(har, indent=1, ensure_ascii=False)
        write_whole(file, text.encode("utf-8", "surrogatepass") + b"\n")
        # Only now does no file need those of the recording that was there.
        for each in before - named.keys():
            if _BODY.fullmatch(each.name):  # nothing that someone else has put there
                each.unlink()
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> RecordingError:
    return RecordingError(f"Cannot write the recording {file}: {error.strerror}.")


def read_recording(file: Path) -> Recording:
    """Return a recording, which may be a HAR of another program.

    Raises:
        RecordingError: It is not there, or is not a recording.
    """
    root = file.parent.resolve()

    def read(path: str) -> bytes:
        body = (root / path).resolve()
        if not body.is_relative_to(root):
            raise HarError(f"the body {path!r} is outside the recording's directory")
        return body.read_bytes()

    try:
        return from_har(json.loads(file.read_bytes()), read)
    except FileNotFoundError as error:
        missing = file if error.filename is None else Path(error.filename)
        if missing == file:
            raise RecordingError(f"There is no recording {file}.") from None
        raise RecordingError(f"The recording {file} lacks its body {missing}.") from None
    except OSError as error:
        raise RecordingError(f"Cannot read {error.filename or file}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        why = str(error).removesuffix(".")
        raise RecordingError(f"{file} is not a recording: {why}.") from error
