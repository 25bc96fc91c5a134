import configparser
import os
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from opentabs_py.daemon.units import unit

ARGUMENTS = ["--plugin", "my plugins/100% <&>", "--set", r"chat.token=$HOME\n"]
VARIABLES = {"OPENTABS_TOKEN": "s3cr3t&", "OPENTABS_IDLE": "5"}


def expected(name: str) -> list[str]:
    return [sys.executable, "-m", "opentabs_py", "serve", *ARGUMENTS, "--name", name]


@pytest.fixture
def _on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/50%/my config")


def parse(text: str) -> configparser.SectionProxy:
    """Return the service section as systemd would read it."""
    parsed = configparser.RawConfigParser()
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(text)
    return parsed["Service"]


@pytest.mark.usefixtures("_on_linux")
def test_a_systemd_unit_starts_the_same_server() -> None:
    service = parse(unit("work", ARGUMENTS, Path("/a/50% b"), {}))
    assert service["WorkingDirectory"] == "/a/50%% b"
    line = service["ExecStart"]
    assert "%%" in line
    assert r"$$HOME\\n" in line
    command = shlex.split(line.replace("%%", "%").replace("$$", "$").replace(r"\\", "\\"))
    assert command[: len(expected("work"))] == expected("work")
    assert "EnvironmentFile" not in service


@pytest.mark.usefixtures("_on_linux")
def test_a_systemd_unit_has_the_variables_in_a_file_and_says_how_to_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    text = unit("work", ARGUMENTS, Path("/a/b"), VARIABLES)
    assert "s3cr3t" not in text
    [write] = [line for line in text.splitlines() if "umask" in line]
    command = ["sh", "-c", write.removeprefix("# ")]
    environment = {**os.environ, **VARIABLES, "OPENTABS_SERVER": "x"}
    subprocess.run(command, env=environment, check=True)
    file = Path(parse(text)["EnvironmentFile"])
    assert sorted(file.read_text().splitlines()) == ["OPENTABS_IDLE=5", "OPENTABS_TOKEN=s3cr3t&"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("_on_linux")
def test_the_path_of_the_variables_file_is_escaped() -> None:
    service = parse(unit("work", ARGUMENTS, Path("/a/b"), VARIABLES))
    assert service["EnvironmentFile"] == "/50%%/my config/opentabs/work.env"


def test_a_launchd_agent_starts_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    parsed = plistlib.loads(unit("work", ARGUMENTS, Path("/a/b & c"), VARIABLES).encode())
    assert parsed["Label"] == "opentabs.work"
    assert parsed["WorkingDirectory"] == "/a/b & c"
    assert parsed["EnvironmentVariables"] == VARIABLES
    assert parsed["ProgramArguments"][: len(expected("work"))] == expected("work")
