"""However a test run ends, it leaves no process, no port and, in the end, no directory."""

import getpass
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from e2e.kit.runs import command, environment, prepare
from e2e.processes import alive, descendants, is_alive
from e2e.waiting import PATIENT
from opentabs_py.browser.scratch import temporary_dir


@dataclass
class Hanging:
    """A test run in the middle of a test."""

    process: "subprocess.Popen[str]"
    children: set[int]
    port: int
    temporary: Path

    def wait_until_gone(self) -> None:
        deadline = time.monotonic() + PATIENT
        while any(is_alive(pid) for pid in self.children) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert alive(self.children) == {}
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENT)


@contextmanager
def hanging(directory: Path, *options: str) -> Generator[Hanging]:
    prepare(directory, "lifetime")
    temporary = directory / "tmp"
    temporary.mkdir(exist_ok=True)
    (directory / "hangs").unlink(missing_ok=True)
    process = subprocess.Popen(
        command(*options),
        cwd=directory,
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # like a terminal's job: Ctrl-C reaches everything that it started
    )
    with process:
        try:
            mark = directory / "hangs"
            deadline = time.monotonic() + PATIENT
            while not (mark.exists() and mark.read_text()) and process.poll() is None:
                assert time.monotonic() < deadline, "the test did not begin"
                time.sleep(0.01)
            assert process.poll() is None, process.stdout and process.stdout.read()
            port = int(mark.read_text().split(":")[2].split("/")[0])
            children = descendants(process.pid)
            assert len(children) > 3, "a Chromium has more processes than that"
            assert list(temporary.glob("opentabs-*"))
            yield Hanging(process, children, port, temporary)
        finally:
            process.kill()


def test_ctrl_c_leaves_nothing(short_path: Path) -> None:
    with hanging(short_path) as ran:
        os.killpg(ran.process.pid, signal.SIGINT)
        output, _ = ran.process.communicate(timeout=PATIENT)

    assert ran.process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
    ran.wait_until_gone()
    assert list(ran.temporary.iterdir()) == []


def test_killed_runs_leave_no_process_and_the_next_one_removes_their_directories(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hanging(short_path) as alone:
        alone.process.kill()
        alone.wait_until_gone()
    of_the_first = {*alone.temporary.iterdir()}
    assert len(of_the_first) == 2  # ours and pytest-playwright's
    with hanging(short_path, "-n", "1") as ran:
        for pid in pytests(ran.children):
            os.kill(pid, signal.SIGKILL)
        ran.process.kill()
        ran.wait_until_gone()
    temporary = ran.temporary
    assert of_the_first & {*temporary.iterdir()} == set()
    assert list(temporary.glob("opentabs-*"))

    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with temporary_dir():  # each run begins with this
        pass

    left = {each.name for each in temporary.iterdir()}
    assert left == {f"pytest-of-{getpass.getuser()}"}  # pytest's own, which stays


def pytests(pids: set[int]) -> list[int]:
    """Return the processes that run Python, and thus pytest."""
    # By the executable: pytest-xdist may change its workers' command lines.
    return [pid for pid in pids if "python" in psutil.Process(pid).exe()]
