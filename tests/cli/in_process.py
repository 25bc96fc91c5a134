"""The command line within a test's process, where starting Python costs nothing."""

import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from contextvars import Context
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from opentabs_py import cli
from opentabs_py.calling.plugin_log import PLUGINS


def opentabs_here(*arguments: str, cwd: Path) -> "CompletedProcess[str]":
    """Run a command that starts nothing, and return what it would have printed as a program."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(cwd), _log_levels_kept(), _signals_kept():
        patch.setattr("sys.argv", ["opentabs", *arguments])
        patch.setattr("sys.path", [*sys.path])
        patch.setenv("PWD", os.fspath(cwd))
        patch.setattr(threading.Thread, "start", _refuse_thread)
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            # A program's own context: AnyIO's event loop of other tests may be in this one's.
            Context().run(cli._run)
    for name, module in [*sys.modules.items()]:
        if Path(getattr(module, "__file__", None) or "").is_relative_to(cwd.resolve()):
            del sys.modules[name]  # the user's tools, which would end with the program
    code = ended.value.code
    assert isinstance(code, int | None)
    return CompletedProcess(arguments, code or 0, out.getvalue(), err.getvalue())


def _refuse_thread(thread: threading.Thread) -> None:
    """Fail: a thread may go on importing in the middle of another test."""
    raise AssertionError(f"This command starts {thread}; run it as a program.")


@contextmanager
def _log_levels_kept() -> Generator[None]:
    loggers = [logging.getLogger(name) for name in ("opentabs_py", PLUGINS)]
    levels = [each.level for each in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@contextmanager
def _signals_kept() -> Generator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [*zip(numbers, map(signal.getsignal, numbers), strict=True)]
    yield
    for number, handler in handlers:
        signal.signal(number, handler)
