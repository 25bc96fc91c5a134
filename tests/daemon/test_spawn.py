"""How a background server is started, with a program in its place."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from opentabs_py.daemon import spawn
from opentabs_py.errors import BrowserError
from tests.waiting import PATIENT

HANGS = f"""#!{sys.executable}
import os, pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("pid.new").write_text(str(os.getpid()))
os.rename("pid.new", "pid")
while True:
    signal.pause()
"""


SAYS = f"""#!{sys.executable}
import json, os
print(json.dumps([os.environ.get(each) for each in ("OPENTABS_TOKEN", "OPENTABS_IDLE", "SHELL")]))
"""


def test_a_server_is_started_with_the_variables_that_are_its_own_and_not_those_of_the_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "says"
    program.write_text(SAYS)
    program.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENTABS_IDLE", "5")
    monkeypatch.setenv("SHELL", "sh")
    monkeypatch.setattr(sys, "executable", str(program))
    said: list[Any] = []
    for variables in (None, {"OPENTABS_TOKEN": "secret"}):
        with pytest.raises(spawn.StartFailedError) as failed:
            spawn.start_server("work", [], tmp_path, variables)
        said += map(json.loads, failed.value.log)
    assert said == [[None, "5", "sh"], ["secret", None, "sh"]]


def test_a_server_that_is_not_up_in_time_and_does_not_exit_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, pid = tmp_path / "hangs", tmp_path / "pid"
    program.write_text(HANGS)
    program.chmod(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(spawn, "GONE_WITHIN", 0.1)
    monkeypatch.setattr(spawn, "UP_WITHIN", 0.1)

    def not_earlier(*_: Any) -> None:
        """Look for its state only once it runs."""
        late = time.monotonic() + PATIENT
        while not pid.exists():
            assert time.monotonic() < late

    monkeypatch.setattr(spawn, "read_state", not_earlier)
    try:
        with pytest.raises(BrowserError, match="was not up after"):
            spawn.start_server("work", [], tmp_path)
        assert not psutil.pid_exists(int(pid.read_text()))
    finally:
        if psutil.pid_exists(int(pid.read_text())):
            psutil.Process(int(pid.read_text())).kill()
