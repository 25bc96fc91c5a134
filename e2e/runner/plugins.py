"""Plugins with tests of each kind, and how the tests of the page wait for their runs."""

import re
import shutil
from pathlib import Path

from playwright.async_api import expect

from e2e.processes import command_line, descendants
from e2e.runner.tests_page import Shown
from e2e.waiting import until_file

# Each test adds a line to a file, so that the run itself says what ran.
CONFTEST = """
import os
import pytest

@pytest.fixture(autouse=True)
def note(request):
    with open(os.environ["RAN"], "a") as file:
        file.write(request.node.name.partition("[")[0] + "\\n")
"""

GOOD = """
import pytest

def test_one(opentabs):
    opentabs.open_start_page()
    assert opentabs.call("chat_hello", name="Ada")["greeting"] == "Hello, Ada!"

@pytest.mark.skip(reason="not yet")
def test_two():
    pass
"""

OTHER = """
def test_three():
    pass
"""

# Like `GOOD` and `BAD`, but without a browser: for tests that are only about which tests run.
QUICK = """
import pytest

def test_one():
    pass

@pytest.mark.skip(reason="not yet")
def test_two():
    pass
"""

WRONG = """
def test_bad():
    assert "morning" == "evening"
"""

BAD = """
from opentabs_py.testing import expect

def test_bad(opentabs, page):
    opentabs.open_start_page()
    opentabs.call("chat_hello", name="Ada")
    page.evaluate("document.body.style.background = 'rgb(200, 0, 0)'")
    expect(opentabs.start("chat_hello", name="Bob")).to_return({"greeting": "Good morning, Bob!"})
"""


def plugin_with(template: Path, directory: Path, **tests: str) -> Path:
    plugin = directory / "chat"
    shutil.copytree(template, plugin, symlinks=True)
    (plugin / "tests").mkdir()
    (plugin / "tests" / "conftest.py").write_text(CONFTEST)
    for name, text in tests.items():
        (plugin / "tests" / f"test_{name}.py").write_text(text)
    return plugin


def ran(plugin: Path) -> list[str]:
    file = plugin.parent / "ran"
    return file.read_text().split() if file.exists() else []


def environment(plugin: Path) -> dict[str, str]:
    (plugin.parent / "tmp").mkdir(exist_ok=True)
    return {"RAN": str(plugin.parent / "ran"), "TMPDIR": str(plugin.parent / "tmp")}


async def ended(shown: Shown) -> None:
    """Wait for the end of the run."""
    await expect(shown.summary).to_contain_text(re.compile(r"· in \d"))


async def until_ran(plugin: Path, count: int) -> None:
    await until_file(plugin.parent, lambda: len(ran(plugin)) >= count)


def chromiums(shown: Shown) -> set[int]:
    """The browsers of the tests."""
    return {
        pid
        for pid in descendants(shown.terminal.process.pid)
        if any(word.startswith("--load-extension=") for word in command_line(pid))
    }
