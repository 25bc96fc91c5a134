"""Programs that run tests, and how they are stopped."""

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from opentabs_py.runner.process import PYTEST, _stop


class Ended:
    """A program that has ended, of which its owner has not been told yet."""

    returncode: int | None = None

    def __init__(self) -> None:
        with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as program:
            self.pid = program.pid

    async def wait(self) -> int:
        self.returncode = 0
        return 0


@pytest.mark.anyio
async def test_a_program_that_ends_just_before_it_is_stopped_has_stopped() -> None:
    ended = Ended()

    await _stop(cast(Any, ended))

    assert ended.returncode == 0


def run_in(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [*PYTEST, *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_ctrl_c_while_pytest_is_loaded_ends_it_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")

    ended = run_in(tmp_path, "-p", "plugin")

    assert (ended.returncode, ended.stdout, ended.stderr) == (pytest.ExitCode.INTERRUPTED, "", "")


def test_pytest_is_run_as_with_python_m(tmp_path: Path) -> None:
    (tmp_path / "helper.py").touch()
    tests = tmp_path / "inner" / "test_sample.py"
    tests.parent.mkdir()
    tests.write_text(
        "import helper, sys\ndef test_argv():\n    assert sys.argv[0].endswith('__main__.py')\n"
    )

    ended = run_in(tmp_path, "-q", "-W", "error", str(tests))

    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
