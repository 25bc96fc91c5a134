"""Pauses at a failure."""

from types import SimpleNamespace
from typing import Any, cast

from opentabs_py.testing.runs.pause import NOBODY, pause


class Terminal:
    """Pytest's reporter."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def ensure_newline(self) -> None: ...

    def section(self, title: str, _separator: str) -> None:
        self.lines.append(title)

    def write_line(self, line: str, **_: bool) -> None:
        self.lines.append(line)


def test_a_failure_is_shown_although_pytest_captures_no_output() -> None:
    plugins = {"terminalreporter": Terminal()}  # as with -p no:capture
    config = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=plugins.get))
    report = SimpleNamespace(nodeid="test_a.py::test_b", longreprtext="it failed")
    nobody = cast(Any, None)

    pause(cast(Any, config), nobody, cast(Any, report))

    assert plugins["terminalreporter"].lines == ["test_a.py::test_b", "it failed", NOBODY]
