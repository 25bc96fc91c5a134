"""How a background server is started, with a program in its place."""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from opentabs_py.config.paths import state_dir
from opentabs_py.daemon import spawn
from opentabs_py.daemon.log import log_file
from opentabs_py.daemon.state import AlreadyRunningError, claim, is_claimed, read_state
from opentabs_py.errors import BrowserError
from opentabs_py.processes import is_running
from tests.daemon.servers import COMMAND, a_server
from tests.waiting import PATIENT

HANGS = f"""#!{sys.executable}
import os, pathlib, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path("pid.new").write_text(str(os.getpid()))
os.rename("pid.new", "pid")
while True:
    signal.pause()
"""


SERVES = f"""#!{sys.executable}
import json, os, signal, sys
from opentabs_py.daemon.state import ServeCommand, ServerState, claim
print(json.dumps(sys.argv[1:]), flush=True)
if "--name" not in sys.argv:
    sys.exit(int(os.environ["CODE"]))
name = sys.argv[-1]
with claim(name, ServeCommand([], "/")) as claimed:
    claimed.publish(ServerState(name, os.getpid(), "1", 1.0, "u", None, 1, "t", (), "/", None))
    signal.pause()
"""

SAYS = f"""#!{sys.executable}
import json, os
print(json.dumps([os.environ.get(each) for each in ("OPENTABS_TOKEN", "OPENTABS_IDLE", "SHELL")]))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the test writes the program that is started as a server."""
    file = tmp_path / "program"
    file.touch(0o700)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(file))
    return file


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("is_suspended", [True, False])
def test_a_server_is_up_when_it_has_recorded_itself_and_is_ended_though_it_does_not_answer(
    program: Path, tmp_path: Path, *, is_recorded: bool, is_suspended: bool
) -> None:
    program.write_text(SERVES)
    state = spawn.start_server("work", ["--plugin", "a b"], tmp_path)
    try:
        assert read_state("work") == state
        [said] = log_file("work").read_text().splitlines()
        given = ["--plugin", "a b", "--log-file", str(log_file("work")), "--name", "work"]
        assert json.loads(said) == ["-P", "-m", "opentabs_py", "serve", *given]
        if is_suspended:  # as by Ctrl-Z
            os.kill(state.pid, signal.SIGSTOP)
        if is_recorded:
            spawn.stop_server(state)
        else:
            (state_dir() / "work.json").unlink()
            assert spawn.stop_unknown("work") == state.pid
        assert not is_claimed("work")
        assert not is_running(state.pid)
    finally:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(state.pid).kill()


def test_a_record_of_another_process_is_not_that_of_the_server_that_starts(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text(SAYS)
    monkeypatch.setattr(spawn, "read_state", lambda _: a_server(pid=1))
    with pytest.raises(spawn.StartFailedError):
        spawn.start_server("work", [], tmp_path)


def test_a_server_that_another_start_has_overtaken_says_only_that(
    program: Path, tmp_path: Path
) -> None:
    program.write_text(SERVES)
    with claim("work", COMMAND) as claimed:
        claimed.publish(a_server(name="work"))
        said = rf"^The server 'work' is already running \(pid {os.getpid()}\)\."
        with pytest.raises(AlreadyRunningError, match=said):
            spawn.start_server("work", [], tmp_path)


def test_a_server_that_does_not_exit_is_named_in_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spawn, "GONE_WITHIN", 0.01)
    said = rf"'work' \(pid {os.getpid()}\) has not exited .* `opentabs logs --name work`"
    with pytest.raises(BrowserError, match=said):
        spawn._wait_gone("work", os.getpid())


def test_a_server_whose_process_is_unknown_cannot_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(BrowserError, match="Its process cannot be found; end it yourself"):
        spawn.stop_unknown("work")


def test_what_a_server_would_refuse_to_start_with_is_known_before_it_is_started(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text(SERVES)
    monkeypatch.setenv("CODE", "0")
    spawn.check_start("work", ["--idle", "1"], tmp_path)
    monkeypatch.setenv("CODE", "2")
    with pytest.raises(spawn.StartFailedError) as failed:
        spawn.check_start("work", ["--idle", "1"], tmp_path)
    assert failed.value.code == 2
    [said] = failed.value.log
    assert json.loads(said) == ["-P", "-m", "opentabs_py", "serve", "--idle", "1", "--check"]


def test_a_server_imports_nothing_of_the_directory_in_which_it_is_started(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise SystemExit(9)")
    spawn.check_start("work", [], tmp_path)


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


def test_a_server_whose_process_cannot_be_started_is_not_said_to_lack_a_log(
    program: Path, tmp_path: Path
) -> None:
    program.chmod(0o600)  # the system has other reasons, such as a limit of processes
    with pytest.raises(BrowserError, match=r"process: Permission denied.*ulimit -u"):
        spawn.start_server("work", [], tmp_path)
