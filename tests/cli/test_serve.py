"""What `opentabs serve` says of how it was started."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SERVE = [sys.executable, "-m", "opentabs_py", "serve"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--idle-timeout", "2s"], "idle_timeout: write a number without a unit, as in 2.5"),
        (["--ceiling", "5 min"], "ceiling: write a number without a unit, as in 2.5"),
        (["--keepalive", "0"], "keepalive: write more than 0"),
        (["--port", "http"], "port: write a whole number, as in 2"),
    ],
)
def test_a_number_that_cannot_be_used_is_refused_in_plain_words(
    options: list[str], said: str, tmp_path: Path
) -> None:
    run = subprocess.run(
        [*SERVE, *options], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 2
    assert run.stderr.startswith(f"error: A setting cannot be used. {said}, not ")


def start(*options: str, cwd: Path) -> str:
    """Start a server without a browser, and stop it; gives its log until then."""
    command = [*SERVE, "--port", "0", "--browser", "none", *options]
    places = {"XDG_DATA_HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=cwd, env={**os.environ, **places}
    ) as serve:
        assert serve.stderr is not None
        said = ""
        while "MCP at " not in said:
            line = serve.stderr.readline()
            assert line, f"it ended by itself: {said}"
            said += line
        serve.send_signal(signal.SIGTERM)
        serve.wait(timeout=20)
    return said


def test_serving_nothing_is_a_warning_that_says_what_to_give(tmp_path: Path) -> None:
    said = " ".join(start(cwd=tmp_path).split())
    assert "Nothing is served: there is no plugin and no tool." in said
    assert "--plugin DIR" in said
    assert "--tools FILE" in said


def test_serving_a_tool_is_no_warning(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "from opentabs_py import tool\n\n\n@tool\ndef one() -> int:\n    return 1\n"
    )
    assert "Nothing is served" not in start("--tools", "tools.py", cwd=tmp_path)
