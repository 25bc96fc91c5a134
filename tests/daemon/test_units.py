import configparser
import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from opentabs_py.daemon.units import unit

ARGUMENTS = ["--plugin", "my plugins/100% <&>", "--set", "chat.token=$HOME"]


def expected(name: str) -> list[str]:
    return [sys.executable, "-m", "opentabs_py", "serve", *ARGUMENTS, "--name", name]


def test_a_systemd_unit_starts_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    parsed = configparser.RawConfigParser()
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit("work", ARGUMENTS, Path("/a/b")))
    assert parsed["Service"]["WorkingDirectory"] == "/a/b"
    line = parsed["Service"]["ExecStart"]
    assert "%%" in line
    assert "$$HOME" in line
    command = shlex.split(line.replace("%%", "%").replace("$$", "$"))
    assert command[: len(expected("work"))] == expected("work")


def test_a_launchd_agent_starts_the_same_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    parsed = plistlib.loads(unit("work", ARGUMENTS, Path("/a/b & c")).encode())
    assert parsed["Label"] == "opentabs.work"
    assert parsed["WorkingDirectory"] == "/a/b & c"
    assert parsed["ProgramArguments"][: len(expected("work"))] == expected("work")
