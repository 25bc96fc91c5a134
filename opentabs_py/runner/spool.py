"""The events of a run on disk: each process of pytest writes a file of events.

So nothing is lost if one of them dies, and the report is made from what is there.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Final

from opentabs_py.core.runner.events import Event, Lost, read_event, to_line
from opentabs_py.core.runner.lines import Lines

SCREENSHOTS: Final = "screenshots"
_EVENTS: Final = ".events"
_RUN: Final = "run.json"
_AT_ONCE: Final = 1024 * 1024  # bytes


class SpoolWriter:
    """Writes what one process reports.

    Args:
        directory: The run's directory.
        process: The name of the process; `main`, or of a worker.
    """

    def __init__(self, directory: Path, process: str) -> None:
        self._file = (directory / f"{process}{_EVENTS}").open("ab", buffering=0)
        self._lock = Lock()

    def send(self, event: Event) -> None:
        """Write an event, from any thread."""
        line = to_line(event)
        with self._lock:
            if not self._file.closed:
                self._file.write(line)

    def close(self) -> None:
        """Stop writing."""
        with self._lock:
            self._file.close()


def prepare(directory: Path, run: str) -> None:
    """Make a run's directory ready, with what is known of the run at its start."""
    (directory / SCREENSHOTS).mkdir()
    (directory / _RUN).write_text(run, encoding="utf-8")


def read_run(directory: Path) -> str:
    """Return what was known of the run at its start."""
    return (directory / _RUN).read_text(encoding="utf-8")


def read_events(directory: Path) -> Iterator[Event]:
    """Return what all processes have reported, one after the other, and last what was lost."""
    lost = 0
    for path in sorted(directory.glob(f"*{_EVENTS}")):
        lines = Lines()
        with path.open("rb") as file:
            while data := file.read(_AT_ONCE):
                for line in lines.feed(data):
                    if (event := read_event(line)) is None:
                        lost += 1
                    else:
                        yield event
        lost += lines.left_out
    if lost:
        yield Lost(count=lost)


def remove(directory: Path) -> None:
    """Remove a run's directory."""
    shutil.rmtree(directory, ignore_errors=True)
