"""Pause at a failure: the browser stays open until the user continues."""

import os
import select
import sys
from typing import Any

import pytest

from opentabs_py.config.settings import STARTED_BY
from opentabs_py.testing.people import People

GO_ON = "The browser stays open. Press Enter to continue, or Ctrl-C to stop the tests."
NOBODY = "The browser is not kept open: stdin is not a terminal, so nobody could press Enter."


def pause(
    config: pytest.Config, people: People, report: pytest.CollectReport | pytest.TestReport
) -> None:
    """Show a failure, and wait until Enter is pressed or the browser's window is closed."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None:
        return  # a pytest-xdist worker, which has no terminal
    capture.suspend(in_=True)
    try:
        terminal.ensure_newline()
        terminal.section(report.nodeid, "-")
        terminal.write_line(report.longreprtext)
        if not sys.stdin.isatty():
            terminal.write_line(NOBODY, yellow=True)
            return
        terminal.write_line(GO_ON, bold=True)
        people.stay(lambda: _enter_is_pressed() or _is_orphan())
    finally:
        capture.resume()
    if _is_orphan():
        pytest.exit("the process that started the tests has exited")


def _is_orphan() -> bool:
    parent = os.environ.get(STARTED_BY)
    return parent is not None and os.getppid() != int(parent)


def _enter_is_pressed() -> bool:
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    sys.stdin.readline()
    return True
