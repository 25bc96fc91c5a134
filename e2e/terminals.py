"""Commands in pseudoterminals, as people run them."""

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from e2e.documents import ENVIRONMENT, ROOT
from e2e.processes import descendants, is_alive
from e2e.waiting import PATIENT


class Terminal:
    """A command in its own pseudoterminal: what it prints, and what is typed."""

    def __init__(self, process: "subprocess.Popen[bytes]", end: int) -> None:
        self.process = process
        self.output = ""
        self._end = end
        self._read_to = 0

    def wait_for(self, *texts: str) -> None:
        """Read until texts appear, in any order, after those that were waited for last."""
        deadline = time.monotonic() + PATIENT
        while any(text not in self.output[self._read_to :] for text in texts):
            assert time.monotonic() < deadline, self.output
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self._end, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    raise AssertionError(self.output) from None
        self._read_to = max(self.output.index(text, self._read_to) + len(text) for text in texts)

    def drain(self, until: Event) -> None:
        """Read all output until an event, because a full terminal would block the command."""
        while not until.is_set():
            if select.select([self._end], [], [], 0.1)[0]:
                try:
                    self.output += os.read(self._end, 65536).decode(errors="replace")
                except OSError:  # it has ended
                    return

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def wait(self) -> int:
        """Wait for its end, and read the rest of its output."""
        deadline = time.monotonic() + PATIENT
        while time.monotonic() < deadline:
            try:
                self.output += os.read(self._end, 65536).decode(errors="replace")
            except OSError:
                return self.process.wait(PATIENT)
        raise AssertionError(self.output)


@contextmanager
def terminal(command: list[str], cwd: Path, **environment: str) -> Generator[Terminal]:
    ours, its = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment_of(environment),
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    with process:
        try:
            yield Terminal(process, ours)
        finally:
            left = descendants(process.pid)  # its test runs are in other process groups
            process.kill()
            for pid in filter(is_alive, left):
                os.kill(pid, signal.SIGKILL)
            os.close(ours)


def environment_of(more: Mapping[str, str]) -> dict[str, str]:
    without = {"DISPLAY", "WAYLAND_DISPLAY"}
    inherited = {name: value for name, value in ENVIRONMENT.items() if name not in without}
    return {**inherited, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "TERM": "dumb", **more}
