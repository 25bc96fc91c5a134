"""What `opentabs serve` says of how it was started."""

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
