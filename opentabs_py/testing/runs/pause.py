"""Pause at a failure: the browser stays open until the user continues."""

import select
import sys
from contextlib import ExitStack
from typing import Any

import pytest

from opentabs_py.testing.people import People
from opentabs_py.testing.reports.watching import Watching
from opentabs_py.testing.runs.orphan import exit_if_orphan, is_orphan

IN_PAGE = "The browser stays open. Press Continue in the page of the tests."
GO_ON = "The browser stays open. Press Enter to continue, or Ctrl-C to stop the tests."
NOBODY = "The browser is not kept open: stdin is not a terminal, so Enter cannot be pressed."


def pause(
    config: pytest.Config,
    people: People,
    report: pytest.TestReport,
    watching: Watching | None = None,
) -> None:
    """Show a failure, and wait until the user continues or the browser's window is closed.

    Enter in the terminal continues, or the button in the page of `opentabs test --ui`.
    """
    if watching is not None and not watching.is_to_pause():
        return
    capture: Any = config.pluginmanager.getplugin("capturemanager")  # None: -p no:capture
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None:
        return  # a pytest-xdist worker, which has no terminal
    with ExitStack() as stack:
        if capture is not None:
            capture.suspend(in_=True)
            stack.callback(capture.resume)
        terminal.ensure_newline()
        terminal.section(report.nodeid, "-")
        terminal.write_line(report.longreprtext)
        can_press = sys.stdin.isatty()
        if watching is None and not can_press:
            terminal.write_line(NOBODY, yellow=True)
            return
        terminal.write_line(GO_ON if can_press else IN_PAGE, bold=True)
        signs = [is_orphan, *([_enter_is_pressed] if can_press else [])]
        if watching is not None:
            signs.append(stack.enter_context(watching.pause(report)))
        people.pause(lambda: any(is_over() for is_over in signs))
    exit_if_orphan()


def _enter_is_pressed() -> bool:
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    sys.stdin.readline()
    return True
