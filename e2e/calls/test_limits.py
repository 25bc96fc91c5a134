"""Limits of the system: no disk space, too little memory to start a browser."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.waiting import PATIENT
from opentabs_py.demo import demo_plugin_dir

OPENTABS = [sys.executable, "-m", "opentabs_py"]
PLUGIN = str(demo_plugin_dir())
TOOLS = """
from opentabs_py import tool

@tool
async def say():
    \"\"\"Say something.\"\"\"
    return {"said": "x" * 100_000}
"""


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["--version"],
        ["tools", "--plugin", PLUGIN],
        ["tools", "--plugin", PLUGIN, "--json"],
        ["inspect", PLUGIN],
        ["inspect", PLUGIN, "--json"],
        ["config", "--client", "cursor"],
        ["call", "say", "--tools", "TOOLS"],
        ["call", "say", "--tools", "TOOLS", "--json"],
    ],
)
def test_output_that_cannot_be_written_is_one_line_and_an_exit_code(
    tmp_path: Path, args: list[str]
) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(TOOLS)
    args = [str(tools) if each == "TOOLS" else each for each in args]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*OPENTABS, *args],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=50,
            check=False,
        )
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "error: Cannot write: No space left on device. Free some space there."
    )
    assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_ends_a_command_without_a_word(tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(TOOLS)
    with subprocess.Popen(
        [*OPENTABS, "call", "say", "--tools", str(tools)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(PATIENT) == 0


def test_a_browser_without_the_memory_to_start_is_reported_as_such() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    command = ["call", "demo_list_channels", "--plugin", PLUGIN, "--json"]
    done = subprocess.run(
        [*OPENTABS, *command],
        capture_output=True,
        text=True,
        timeout=50,
        preexec_fn=limit,
        check=False,
    )
    assert done.returncode == 3
    message = json.loads(done.stdout)["error"]["message"]
    assert "Only 4.0 GiB of memory may be reserved" in message
    assert "ulimit -v unlimited" in message
    assert "Is it a Chromium?" not in message
