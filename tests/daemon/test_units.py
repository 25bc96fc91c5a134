import ast
import configparser
import os
import plistlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from opentabs_py.daemon.units import unit

ARGUMENTS = ["--plugin", "my plugins/100% <&>", "--set", "chat.token=$HOME\\n", 'it\'s "a"\n\tb']
ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"|[^\s"\'\\]+')
VARIABLES = {
    "OPENTABS_TOKEN": "s3cr3t&",
    "OPENTABS_IDLE": "5",
    "OPENTABS_SCRUB": '{"patterns": ["\\\\d$`x`"], "texts": [\n"it\'s"]}\nOPENTABS_PORT=1',
}


def expected(name: str) -> list[str]:
    return [sys.executable, "-P", "-m", "opentabs_py", "serve", *ARGUMENTS, "--name", name]


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
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    file = tmp_path / "opentabs-work.service"
    file.write_text(unit("work", ARGUMENTS, Path("/a/50% b"), VARIABLES))
    verify = ["systemd-analyze", "--user", "verify", str(file)]
    # Where the paths of sockets are short enough, which it checks for the system's own units.
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:
        environment = {**os.environ, "XDG_RUNTIME_DIR": runtime}
        shown = subprocess.run(verify, env=environment, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")


def items(line: str) -> list[str]:
    """Return what systemd reads in a command line: systemd.syntax(7), "Quoting"."""
    found = [(each[0], each[1]) for each in ITEM.finditer(line)]
    assert " ".join(whole for whole, _ in found) == line
    plain = [ast.literal_eval(f'"{quoted}"') if quoted else whole for whole, quoted in found]
    for each in plain:
        assert "$" not in each.replace("$$", ""), "a variable"
        assert "%" not in each.replace("%%", ""), "a specifier"
    return [each.replace("%%", "%").replace("$$", "$") for each in plain]


@pytest.mark.usefixtures("_on_linux")
def test_a_systemd_unit_starts_the_same_server() -> None:
    service = parse(unit("work", ARGUMENTS, Path("/a/50% b"), {}))
    assert service["WorkingDirectory"] == "/a/50%% b"
    command = items(service["ExecStart"])
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
    # The quotes are those of a shell.
    shown = ["sh", "-c", f"set -a; . '{file}'; env -0"]
    read = subprocess.run(shown, env={}, capture_output=True, check=True).stdout.decode()
    variables = dict(each.split("=", 1) for each in read.split("\0") if each)
    assert {name: variables.get(name) for name in VARIABLES} == VARIABLES
    assert "OPENTABS_PORT" not in variables
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
