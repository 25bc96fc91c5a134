"""The records of running servers, by which other commands find them.

Each server has a name. `NAME.json` says how to reach it, and the server locks `NAME.lock` for as
long as it lives, so a file that a killed server left behind is recognized without asking anyone.
Both are readable by their owner only, because the file contains the token of the local interface
and the server's settings.
"""

import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from opentabs_py.config.files import write_whole
from opentabs_py.config.names import check_name
from opentabs_py.config.paths import state_dir
from opentabs_py.directories import create_private, exists
from opentabs_py.errors import ConfigError

DEFAULT_NAME: Final = "default"
LOCK_WITHIN = 1.0  # s; a command that looks whether a server lives holds the lock for an instant
PROBE_AGAIN = 0.002  # s; another command's probe takes some tenths of a millisecond


@dataclass(frozen=True, slots=True)
class ServerState:
    """A running server, as other commands see it.

    Attributes:
        name: What it is called; one server of a user has a name.
        pid: Its process.
        version: Its version of this package.
        started: When it started, in seconds since 1970.
        mcp_url: Where MCP clients connect.
        mcp_token: The token that they must send; None if they need none.
        local_port: The port of its local interface, on 127.0.0.1.
        local_token: The token for that.
        arguments: The arguments of the `serve` command that runs it.
        directory: The directory in which it was started, an absolute path.
        log: Its log file; None if it logs to a terminal.
        environment: The `OPENTABS_*` variables that it was started with; None if a version that did
            not record them runs it.
    """

    name: str
    pid: int
    version: str
    started: float
    mcp_url: str
    mcp_token: str | None
    local_port: int
    local_token: str
    arguments: tuple[str, ...]
    directory: str
    log: str | None
    environment: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ServeCommand:
    """The command that runs a server, with which other commands start the same one again.

    Attributes:
        arguments: Its arguments.
        directory: The directory in which it was started.
        log: The file that it logs to; None if that is a terminal.
    """

    arguments: Sequence[str]
    directory: Path
    log: Path | None = None


class AlreadyRunningError(ConfigError):
    """Another server has the name.

    Attributes:
        state: That server; None if it has no record that can be read.
    """

    def __init__(self, name: str, state: ServerState | None) -> None:
        self.state = state
        flag = name_flag(name)
        if state is None:
            what = f"{why_unknown(name)} Stop it (`opentabs stop{flag}`)"
        else:
            what = (
                f"The server {name!r} is already running (pid {state.pid}). Stop it "
                f"(`opentabs stop{flag}`), restart it (`opentabs restart{flag}`)"
            )
        super().__init__(f"{what}, or give this one another name (--name).")


def name_flag(name: str) -> str:
    """Return the option that names a server, after a space; nothing for the default one."""
    return "" if name == DEFAULT_NAME else f" --name {name}"


def read_state(name: str = DEFAULT_NAME) -> ServerState | None:
    """Return the server with this name; None if none is running."""
    state = _read(_file(name))
    # The lock is checked last, because it costs more and usually there is no file.
    return state if state is not None and is_claimed(name) else None


def require_state(name: str) -> ServerState:
    """Return the running server that the user named.

    Raises:
        ConfigError: There is none, or the name is not valid.
    """
    state = read_state(check_name(name, "server name"))
    if state is not None:
        return state
    refuse_unknown(name)
    raise ConfigError(how_to_start(name))


def refuse_unknown(name: str = DEFAULT_NAME) -> None:
    """Refuse a server that runs without a record that can be read.

    Raises:
        ConfigError: This is such a server.
    """
    if is_claimed(name):
        raise ConfigError(f"{why_unknown(name)} Stop it: opentabs stop{name_flag(name)}")


def find_state(name: str | None) -> ServerState | None:
    """Return the server that a command uses: the one that is named, or else the default one.

    Raises:
        ConfigError: One is named, and is not running.
    """
    return read_state() if name is None else require_state(name)


def not_running(name: str) -> str:
    """Return the sentence that says that a server is not running, and which ones are.

    Raises:
        ConfigError: The records may not be read.
    """
    names = recorded_names()
    only = f", only {', '.join(names)}" if names else ""
    return f"No server named {name!r} is running{only}."


def how_to_start(name: str) -> str:
    """Return the text that says that a server is not running, and how to start it.

    Raises:
        ConfigError: The records may not be read.
    """
    return f"{not_running(name)} Start it: opentabs start{name_flag(name)}"


def read_states() -> list[ServerState]:
    """Return all running servers, by name.

    Raises:
        ConfigError: The records may not be read.
    """
    found = [read_state(name) for name in _names_of_records()]
    return [state for state in found if state is not None]


def recorded_names() -> list[str]:
    """Return the names of all running servers that have a record, even one that is unreadable.

    Raises:
        ConfigError: The records may not be read.
    """
    return [name for name in _names_of_records() if is_claimed(name)]


def why_unknown(name: str) -> str:
    """Return a sentence that says why a running server has no state, with its pid if known."""
    pid = find_holder(name)
    who = f"The server {name!r}" if pid is None else f"The server {name!r} (pid {pid})"
    if exists(file := _file(name)) and _read(file) is None:
        return f"{who} runs, but its record {file} cannot be read."
    return f"{who} is just starting, or its record was removed."


def find_holder(name: str) -> int | None:
    """Return the process of a server that lives, whether or not it has a record; None if unknown.

    It is the process that has the lock file open. That holds for a server of another version too,
    and for one whose record was damaged.
    """
    import psutil  # noqa: PLC0415 (only needed here)

    lock = _lock_file(name).resolve()
    for process in psutil.process_iter():
        try:
            if any(Path(each.path) == lock for each in process.open_files()):
                return process.pid
        except psutil.Error:  # somebody else's, or it has ended
            continue
    return None


def is_claimed(name: str) -> bool:
    """Return whether a server with this name lives, even if it is not up yet."""
    if not exists(_lock_file(name)):
        return False  # there has never been a server with this name
    lock = _lock(name)
    try:
        with _probing(name):
            lock.acquire(timeout=0)
            lock.release()
    except Timeout:
        return True
    return False


@contextmanager
def claim(name: str, command: ServeCommand) -> Generator["Claim"]:
    """Claim a name for this process, so that it can record itself as that server.

    Args:
        name: The name.
        command: The command that this process runs.

    Raises:
        AlreadyRunningError: Another server has it.
    """
    create_private(state_dir())
    lock = _lock(name)
    try:
        lock.acquire(timeout=LOCK_WITHIN)
    except Timeout:
        raise AlreadyRunningError(name, _read(_file(name))) from None
    try:
        _file(name).unlink(missing_ok=True)  # a killed server's
        yield Claim(name, command)
    finally:
        # The state directory may have been deleted, and another server have taken the name.
        state = _read(_file(name))
        if state is None or state.pid == os.getpid():
            _file(name).unlink(missing_ok=True)
        lock.release()


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of the server that a command runs to have a name."""

    name: str
    command: ServeCommand

    def publish(self, state: ServerState) -> None:
        """Let other commands find this server."""
        write_whole(_file(self.name), json.dumps(asdict(state)).encode(), mode=0o600)


def own_variables() -> dict[str, str]:
    """Return the `OPENTABS_*` variables of this process that are settings; some are secrets."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("OPENTABS_") and name != "OPENTABS_SERVER"  # which is for commands
    }


def _names_of_records() -> list[str]:
    directory = state_dir()
    try:
        return sorted(file.stem for file in directory.iterdir() if file.suffix == ".json")
    except FileNotFoundError:
        return []  # there has never been a server
    except OSError as error:
        raise ConfigError(f"Cannot look for servers in {directory}: {error.strerror}.") from None


def _file(name: str) -> Path:
    return state_dir() / f"{name}.json"


def _lock_file(name: str) -> Path:
    return state_dir() / f"{name}.lock"


def _lock(name: str) -> FileLock:
    return FileLock(_lock_file(name), mode=0o600, preserve_lock_file=True)


def _probing(name: str) -> FileLock:
    """Return the lock of commands that look: each would take the other's hold for a server."""
    return FileLock(
        _lock_file(name).with_suffix(".probe.lock"),
        mode=0o600,
        preserve_lock_file=True,
        timeout=LOCK_WITHIN,
        poll_interval=PROBE_AGAIN,
    )


def _read(file: Path) -> ServerState | None:
    try:
        document: dict[str, Any] = json.loads(file.read_bytes())
        document["arguments"] = tuple(document["arguments"])
        known = {each.name for each in fields(ServerState)}  # a later version may write more
        return ServerState(**{name: value for name, value in document.items() if name in known})
    except (OSError, ValueError, TypeError, KeyError):  # none, or not of use
        return None
