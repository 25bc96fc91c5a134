"""Start a server in the background, and end it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from opentabs_py.daemon.local_client import LocalClient
from opentabs_py.daemon.log import log_file
from opentabs_py.daemon.state import (
    AlreadyRunningError,
    ServerState,
    find_holder,
    is_claimed,
    name_flag,
    own_variables,
    read_state,
    why_unknown,
)
from opentabs_py.directories import create_private, exists
from opentabs_py.errors import BrowserError, ChainError, ConfigError
from opentabs_py.processes import is_running

LOOK_AGAIN: Final = 0.05  # s
UP_WITHIN: Final = 60.0  # s; a browser starts in one, on a loaded machine in ten
GONE_WITHIN: Final = 15.0  # s; a server ends its calls, its browser and itself in less than one


class StartFailedError(BrowserError):
    """A server exited as it started, or would.

    Attributes:
        code: Its exit code.
        log: What it said, line by line.
    """

    def __init__(self, code: int, log: Sequence[str], file: Path) -> None:
        super().__init__(
            f"The server exited with code {code} as it started, and logged nothing. Check that the "
            f"disk of its log is not full: {file}"
        )
        self.code = code
        self.log = log


def start_server(
    name: str,
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> ServerState:
    """Start `opentabs serve` in the background, and return its state once it is up.

    It belongs to no terminal, so closing the one that started it does not end it.

    Args:
        name: Its name.
        arguments: The options of `serve`.
        directory: Where it is started; relative paths start there.
        environment: Its `OPENTABS_*` variables; those of this process by default.

    Raises:
        ConfigError: Its log cannot be written.
        StartFailedError: It exited.
        AlreadyRunningError: Another one was faster.
        BrowserError: It has no process, or is not up after a minute; it was ended.
    """
    log = log_file(name)
    try:
        create_private(log.parent)
        begun = log.stat().st_size if exists(log) else 0
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise ConfigError(
            f"Cannot write {error.filename}: {error.strerror}. A server in the background needs a "
            "home directory for its log; `opentabs serve` needs none."
        ) from error
    with os.fdopen(descriptor, "ab") as out:
        # What is written before the log is set up, or by a library that knows no logging.
        try:
            process = subprocess.Popen(
                [*_serve(arguments), "--log-file", str(log), "--name", name],
                cwd=directory,
                env=_with_variables(environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                **_detached(),
            )
        except OSError as error:
            raise BrowserError(
                f"Cannot start the server's process: {error.strerror}. Check the free memory, and "
                "how many processes you may run (ulimit -u)."
            ) from error
    try:
        return _wait_up(name, process, log, begun)
    except BaseException:
        # Also after Ctrl-C: a server that no command waits for is not left behind.
        _end(process)
        raise


def check_start(
    name: str,
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Check the options, settings and tools that a server would start with.

    The arguments are those of `start_server`.

    Raises:
        StartFailedError: It would not start.
        BrowserError: That is not known after a minute.
    """
    try:
        done = subprocess.run(
            [*_serve(arguments), "--check"],
            cwd=directory,
            env=_with_variables(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=UP_WITHIN,
        )
    except subprocess.TimeoutExpired:
        raise BrowserError(f"Checking the settings took longer than {UP_WITHIN:g} s.") from None
    if done.returncode:
        raise StartFailedError(done.returncode, done.stdout.splitlines(), log_file(name))


def _serve(arguments: Sequence[str]) -> list[str]:
    # Python would otherwise import what is in the directory, such as a file typer.py.
    return [sys.executable, "-P", "-m", "opentabs_py", "serve", *arguments]


def _with_variables(variables: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return this process's environment with other `OPENTABS_*` variables; None for its own."""
    if variables is None:
        return None
    own = own_variables()
    return {name: value for name, value in os.environ.items() if name not in own} | {**variables}


def _wait_up(name: str, process: "subprocess.Popen[Any]", log: Path, begun: int) -> ServerState:
    deadline = time.monotonic() + UP_WITHIN
    while time.monotonic() < deadline:
        if (code := process.poll()) is not None:
            if is_claimed(name):  # by another start, which has written to the same log
                raise AlreadyRunningError(name, read_state(name))
            raise StartFailedError(code, _since(log, begun), log)
        state = read_state(name)
        if state is not None and state.pid == process.pid:
            return state
        time.sleep(LOOK_AGAIN)
    raise BrowserError(f"The server was not up after {UP_WITHIN:g} s; see {log}.")


def _end(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(GONE_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def stop_server(state: ServerState) -> None:
    """Ask a server to stop, and wait until it is gone.

    Raises:
        BrowserError: It does not exit.
    """
    try:
        LocalClient(state).stop()
    except ChainError:
        # It lives, because its lock is held, but its interface does not answer.
        _terminate(state.pid)
    _wait_gone(state.name, state.pid)


def stop_unknown(name: str) -> int:
    """Stop a server that has no record that can be read, and wait until it is gone.

    Returns:
        Its pid.

    Raises:
        BrowserError: It does not exit, or its process cannot be found.
    """
    pid = find_holder(name)
    if pid is None:
        raise BrowserError(f"{why_unknown(name)} Its process cannot be found; end it yourself.")
    _terminate(pid)
    _wait_gone(name, pid)
    return pid


def _terminate(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        if sys.platform != "win32":
            os.kill(pid, signal.SIGCONT)  # if it is suspended, it handles no signal before


def _wait_gone(name: str, pid: int) -> None:
    deadline = time.monotonic() + GONE_WITHIN
    while is_claimed(name) or is_running(pid):
        if time.monotonic() > deadline:
            raise BrowserError(
                f"The server {name!r} (pid {pid}) has not exited after {GONE_WITHIN:g} s. See "
                f"`opentabs logs{name_flag(name)}`, or end the process yourself."
            )
        time.sleep(LOOK_AGAIN)


def _detached() -> dict[str, Any]:
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.DETACHED_PROCESS
        return {"creationflags": flags}
    return {"start_new_session": True}


def _since(log: Path, begun: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begun if log.stat().st_size >= begun else 0)
        return file.read().decode("utf-8", "replace").splitlines()
