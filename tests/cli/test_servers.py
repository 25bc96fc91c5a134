"""The commands for background servers, with another program in the place of a server."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

import pytest

from opentabs_py.config.paths import state_dir
from opentabs_py.daemon import log
from opentabs_py.daemon.state import claim
from tests.cli.in_process import opentabs_here
from tests.daemon.servers import COMMAND
from tests.waiting import PATIENT

SERVER = """
import sys, time
from opentabs_py.daemon.state import claim
from tests.daemon.servers import COMMAND, a_server
directory, *arguments = sys.argv[1:]
with claim("work", COMMAND) as claimed:
    claimed.publish(
        a_server(
            arguments=tuple(arguments),
            directory=directory,
            log="work.log",
            environment={"OPENTABS_TOKEN": "t" * 16},
        )
    )
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@contextmanager
def serving(directory: Path, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """Run a process that is registered as the server `work` and does not respond."""
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, directory, *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"up\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def server(tmp_path: Path) -> Generator["subprocess.Popen[bytes]"]:
    """A process that is registered as the server `work` and does not respond."""
    with serving(tmp_path) as process:
        yield process


# Passes every check, and then fails silently.
SILENT = f"""#!{sys.executable}
import sys
sys.exit("--check" not in sys.argv)
"""
WITH_PROGRAM = """
import sys
sys.executable = sys.argv.pop(1)
from opentabs_py.cli import main
main()
"""


def with_program(text: str, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command with another program in the place of the server."""
    program = cwd / "program"
    program.write_text(text)
    program.chmod(0o700)
    return subprocess.run(
        [sys.executable, "-c", WITH_PROGRAM, program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_a_server_that_exits_and_logs_nothing_is_an_error_with_the_place_of_its_log(
    tmp_path: Path,
) -> None:
    run = with_program(SILENT, "start", cwd=tmp_path)
    assert run.returncode == 3
    assert run.stderr.startswith("error: The server exited with code 1 as it started")
    assert str(tmp_path / "state" / "opentabs" / "log" / "default.log") in run.stderr


@pytest.mark.parametrize("text", [None, "", '{"name": "work"}'])
def test_a_server_without_a_record_of_use_can_be_stopped(
    text: str | None, server: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    record = state_dir() / "work.json"
    record.unlink() if text is None else record.write_text(text)
    # Its process is a zombie until it is reaped; that counts as gone.
    stopped = opentabs_here("stop", "--server", "work", cwd=tmp_path)
    assert stopped.returncode == 0
    assert f"Stopped the server 'work' (pid {server.pid})" in stopped.stderr
    assert server.wait(PATIENT) < 0


def test_a_server_whose_record_cannot_be_read_is_in_the_status(
    server: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    (state_dir() / "work.json").write_text("{")
    status = opentabs_here("status", "--json", cwd=tmp_path)
    assert status.returncode == 3
    [report] = json.loads(status.stdout)
    assert (report["name"], report["pid"]) == ("work", server.pid)
    assert "cannot be read" in report["error"]


@pytest.mark.parametrize(
    "command",
    [
        ["call", "echo", "--server", "home"],
        ["tools", "--server", "home"],
        ["config", "--client", "cursor", "--running", "--server", "home"],
        ["ui", "--server", "home"],
        ["restart", "--name", "home"],
    ],
    ids=" ".join,
)
def test_a_server_that_is_named_and_does_not_run_is_an_error_with_the_command_that_starts_it(
    command: list[str], tmp_path: Path
) -> None:
    run = opentabs_here(*command, cwd=tmp_path)
    assert run.returncode == 2
    said = "No server named 'home' is running. Start it: opentabs start --name home"
    assert said in run.stderr


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("command", ["stop", "status", "ui", "restart"])
def test_a_server_that_does_not_run_is_an_error_that_says_which_ones_do(
    command: str, tmp_path: Path
) -> None:
    run = opentabs_here(command, "--name", "wrk", cwd=tmp_path)
    said = "No server named 'wrk' is running, only work."
    assert said in run.stderr


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["call", "echo"], ["--fresh"]),
        (["call", "echo"], ["--tools", "tools.py"]),
        (["call", "echo"], ["--headless"]),
        (["tools"], ["--fresh"]),
        (["tools"], ["--tools", "tools.py"]),
    ],
    ids=str,
)
def test_a_server_that_would_not_be_used_is_a_usage_error(
    command: list[str], option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.py").write_text("def echo(): ...")
    run = opentabs_here(*command, "--server", "home", *option, cwd=tmp_path)
    assert run.returncode == 2
    said = f"--server and {option[0]} cannot be combined: with {option[0]}, no running server is"
    assert said in run.stderr

    monkeypatch.setenv("OPENTABS_SERVER", "home")  # which is for the commands that use one
    assert "cannot be combined" not in opentabs_here(*command, *option, cwd=tmp_path).stderr


def test_a_server_and_a_fleet_are_a_usage_error(tmp_path: Path) -> None:
    fleet = ["--nats", "nats://127.0.0.1:1"]
    run = opentabs_here("call", "echo", "--server", "home", *fleet, cwd=tmp_path)
    assert run.returncode == 2
    assert "--server and --nats cannot be combined" in run.stderr

    run = subprocess.run(
        [sys.executable, "-m", "opentabs_py", "call", "echo", *fleet],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "OPENTABS_SERVER": "home"},
    )
    assert run.returncode == 3
    assert "Cannot connect to NATS" in run.stderr


def test_in_the_directory_of_a_plugin_the_tools_of_a_named_server_are_listed(
    tmp_path: Path,
) -> None:
    plugin = {"name": "opentabs-plugin-chat", "opentabs": {}}
    (tmp_path / "package.json").write_text(json.dumps(plugin))
    run = opentabs_here("tools", "--server", "home", cwd=tmp_path)
    assert "No server named 'home' is running" in run.stderr


def test_a_server_named_in_the_environment_is_required_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENTABS_SERVER", "home")
    run = opentabs_here("tools", cwd=tmp_path)
    assert run.returncode == 2
    assert "No server named 'home'" in run.stderr


def test_a_server_without_a_record_of_use_is_not_called_missing(
    server: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    (state_dir() / "work.json").unlink()
    run = opentabs_here("ui", "--name", "work", cwd=tmp_path)
    assert f"'work' (pid {server.pid}) is just starting" in run.stderr
    assert "Stop it: opentabs stop --name work" in run.stderr


def test_a_call_does_not_deny_a_server_without_a_record_of_use(tmp_path: Path) -> None:
    with claim("default", COMMAND):
        run = opentabs_here("call", "demo_export", cwd=tmp_path)
    assert run.returncode == 2
    assert f"'default' (pid {os.getpid()}) is just starting" in run.stderr
    assert "Stop it: opentabs stop" in run.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "http"], "error: A setting is not valid. port: write a whole number"),
        (["--set", "nobody.key=1"], "error: --set names a plugin that is not loaded: 'nobody'"),
        (["--tools", "gone.py"], "There is no file"),
        (["--gone"], "No such option: --gone"),
    ],
)
def test_a_server_that_would_not_start_again_is_not_stopped_by_a_restart(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    with serving(tmp_path, *arguments) as server:
        run = opentabs_here("restart", "--name", "work", cwd=tmp_path)
        assert run.returncode == 2
        assert said in run.stderr
        assert "could not be started again, so it was left" in run.stderr
        assert server.poll() is None


def test_a_server_whose_directory_was_deleted_is_not_stopped_by_a_restart(tmp_path: Path) -> None:
    with serving(tmp_path / "gone", "--plugin", "a b") as server:
        run = opentabs_here("restart", "--name", "work", cwd=tmp_path)
        assert run.returncode == 2
        assert f"{tmp_path / 'gone'}, which no longer exists" in run.stderr
        assert "opentabs start --name work --plugin 'a b'" in run.stderr
        assert server.poll() is None


def test_a_restart_that_fails_in_the_end_says_how_to_start_the_server_again(tmp_path: Path) -> None:
    with serving(tmp_path, "--plugin", "a b"):
        run = with_program(SILENT, "restart", "--name", "work", cwd=tmp_path)
    assert run.returncode == 3
    *_, how, directory, start = run.stderr.splitlines()
    assert how == "To start it again as it was, with the variables OPENTABS_TOKEN:"
    assert directory == f"  cd {tmp_path}"
    assert start == "  opentabs start --name work --plugin 'a b'"


def test_a_log_that_does_not_exist_yet_can_be_followed_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "state" / "opentabs" / "log" / "work.log"
    command = [sys.executable, "-m", "opentabs_py", "logs", "-f", "--name", "work"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        said = following.stderr.readline()
        file.parent.mkdir(parents=True)
        file.write_text("hello\n")
        line = following.stdout.readline()
        following.kill()
    assert said == f"There is no log of a server named 'work' at {file} yet; waiting for one.\n"
    assert line == "hello\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say who reads a pipe.")
def test_a_log_is_followed_until_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    file = log.log_file("work")
    file.parent.mkdir(parents=True)
    file.write_text("old\n")
    command = [sys.executable, "-m", "opentabs_py", "logs", "-f", "--name", "work"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as following:
        try:
            assert following.stdout is not None
            assert following.stderr is not None
            assert following.stdout.readline() == "old\n"
            following.stdout.close()
            assert following.wait(PATIENT) == 0
            assert following.stderr.read() == ""
        finally:
            following.kill()


@pytest.mark.parametrize("plugin", [(), ("--plugin", "chat")])
def test_a_line_that_is_logged_while_a_followed_log_is_opened_is_printed_once(
    plugin: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = log.log_file("work")
    file.parent.mkdir(parents=True)
    begin = "2026-11-23 10:00:00,000 INFO opentabs_py.plugin.chat: chat:"
    file.with_name("work.log.1").write_text(f"{begin} oldest\n")
    file.write_text(f"{begin} old\n")
    to_log = ["new", "newer"]

    def look(path: Path, opened: TextIOWrapper) -> bool:
        if path == file and to_log:
            with file.open("a") as out:
                out.write(f"{begin} {to_log.pop(0)}\n")
        return is_replaced(path, opened)

    def stop(_seconds: float) -> None:
        if not to_log:
            raise KeyboardInterrupt

    is_replaced = log._is_replaced
    monkeypatch.setattr(log, "_is_replaced", look)
    monkeypatch.setattr("time.sleep", stop)
    done = opentabs_here("logs", "-f", "--server", "work", *plugin, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"{begin} {each}" for each in ("oldest", "old", "new")]
