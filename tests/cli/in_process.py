"""The command line within a test's process, where starting Python costs nothing."""

import io
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from opentabs_py import cli


def opentabs_here(*arguments: str, cwd: Path) -> "CompletedProcess[str]":
    """Run a command that starts nothing, and return what it would have printed as a program."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(cwd):
        patch.setattr("sys.argv", ["opentabs", *arguments])
        patch.setenv("PWD", os.fspath(cwd))
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            cli._run()
    code = ended.value.code
    assert isinstance(code, int | None)
    return CompletedProcess(arguments, code or 0, out.getvalue(), err.getvalue())
