import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from opentabs_py.config.names import check_name
from opentabs_py.config.paths import state_dir
from opentabs_py.daemon.state import (
    AlreadyRunningError,
    claim,
    find_state,
    is_claimed,
    read_state,
    read_states,
    recorded_names,
    require_state,
    why_unknown,
)
from opentabs_py.errors import ConfigError
from tests.daemon.servers import COMMAND, a_server

STATE = a_server()
SERVER = """
import sys, time
from opentabs_py.daemon.state import ServeCommand, ServerState, claim
with claim("work", ServeCommand([], "/")) as claimed:
    claimed.publish(ServerState("work", 1, "1", 1.0, "u", None, 2, "t", (), "/", None))
    print("up", flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_a_published_server_is_found_until_its_claim_ends() -> None:
    with claim("work", COMMAND) as claimed:
        assert read_state("work") is None
        claimed.publish(STATE)
        assert read_state("work") == STATE
        assert read_states() == [STATE]
        assert read_state() is None
    assert read_state("work") is None
    assert read_states() == []


def test_a_second_server_with_the_same_name_is_refused_and_the_first_stays() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        with pytest.raises(
            AlreadyRunningError, match=rf"is already running \(pid {os.getpid()}\)"
        ) as error:
            claim("work", COMMAND).__enter__()
        assert error.value.state == STATE
        assert read_state("work") == STATE


def test_servers_with_other_names_run_beside_each_other() -> None:
    with claim("work", COMMAND) as one, claim("home", COMMAND) as two:
        one.publish(STATE)
        two.publish(replace(STATE, name="home"))
        assert [each.name for each in read_states()] == ["home", "work"]


def test_a_killed_server_is_not_found_and_leaves_its_name_free() -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        assert read_state("work") is not None
        server.send_signal(signal.SIGKILL)
    assert (state_dir() / "work.json").exists()
    assert read_state("work") is None
    assert not is_claimed("work")
    with claim("work", COMMAND) as claimed:
        assert read_state("work") is None
        claimed.publish(STATE)
        assert read_state("work") == STATE


def test_commands_that_look_for_a_killed_server_at_once_do_not_take_each_other_for_it() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        record = (state_dir() / "work.json").read_bytes()
    (state_dir() / "work.json").write_bytes(record)
    with ThreadPoolExecutor(8) as commands:
        found = [*commands.map(lambda _: read_state("work"), range(400))]
    assert found == [None] * 400


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_only_the_owner_can_read_the_token() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        assert (state_dir() / "work.json").stat().st_mode & 0o777 == 0o600
        assert state_dir().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"name": "work"}'])
def test_a_file_that_cannot_be_read_counts_as_no_server(text: str) -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        (state_dir() / "work.json").write_text(text)
        assert read_state("work") is None


def test_what_a_later_version_records_besides_is_ignored() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        (state_dir() / "work.json").write_text(json.dumps({**asdict(STATE), "mood": "good"}))
        assert read_state("work") == STATE


@pytest.fixture
def server() -> Generator["subprocess.Popen[bytes]"]:
    """A server named `work`, in its own process."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
        process.kill()


def test_a_name_held_by_a_server_with_an_unreadable_record_is_refused_with_its_pid(
    server: "subprocess.Popen[bytes]",
) -> None:
    (state_dir() / "work.json").write_text("")
    said = rf"'work' \(pid {server.pid}\) runs, but its record .*work.json cannot be read"
    with pytest.raises(AlreadyRunningError, match=said):
        claim("work", COMMAND).__enter__()


def test_a_name_held_by_a_server_without_a_record_is_refused_with_its_pid(
    server: "subprocess.Popen[bytes]",
) -> None:
    (state_dir() / "work.json").unlink()
    said = rf"'work' \(pid {server.pid}\) is just starting"
    with pytest.raises(AlreadyRunningError, match=said):
        claim("work", COMMAND).__enter__()


def test_a_server_that_has_published_its_record_by_now_is_just_starting() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        assert "is just starting" in why_unknown("work")


def test_a_server_that_a_command_names_is_found_or_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"running\. Start it: opentabs start --name work$"):
        require_state("work")
    with pytest.raises(ConfigError, match=r"running\. Start it: opentabs start$"):
        require_state("default")
    assert find_state(None) is None
    with claim("work", COMMAND) as claimed, claim("default", COMMAND) as other:
        with pytest.raises(ConfigError, match=r"Stop it: opentabs stop --name work$"):
            require_state("work")
        claimed.publish(STATE)
        other.publish(replace(STATE, name="default"))
        assert require_state("work") == find_state("work") == STATE
        assert find_state(None) == replace(STATE, name="default")


def test_a_running_server_has_a_recorded_name_even_if_its_record_cannot_be_read() -> None:
    with claim("work", COMMAND) as claimed:
        claimed.publish(STATE)
        (state_dir() / "work.json").write_text("")
        (state_dir() / "gone.json").write_text("")
        assert recorded_names() == ["work"]
        (state_dir() / "work.json").unlink()
    assert recorded_names() == []


def test_records_that_may_not_be_read_are_not_taken_for_none() -> None:
    state_dir().parent.mkdir(parents=True)
    state_dir().touch()  # which can no more be read as a directory than one of another user
    with pytest.raises(ConfigError, match="Cannot look for servers in "):
        recorded_names()


def test_a_server_that_ends_leaves_the_record_of_another_that_has_its_name_now() -> None:
    other = replace(STATE, pid=1)
    with claim("work", COMMAND):
        shutil.rmtree(state_dir())
        later = claim("work", COMMAND)
        later.__enter__().publish(other)
    assert read_state("work") == other
    later.__exit__(None, None, None)


def test_looking_for_a_server_creates_nothing(tmp_path: Path) -> None:
    assert read_state("work") is None
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", "Work", "-a", "a" * 41])
def test_a_name_that_is_not_a_file_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="not a valid server name"):
        check_name(name, "server name")
