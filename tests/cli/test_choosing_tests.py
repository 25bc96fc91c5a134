"""`opentabs test`: which tests its arguments choose, and its exit codes, as a program."""

import re
import subprocess
from pathlib import Path

import pytest

from opentabs_py.cli.chosen_tests import choose
from tests.cli.test_authoring import opentabs

PYTHON = """
def test_this():
    pass

def test_that():
    pass
"""
NODE = 'import test from "node:test";\ntest("in Node", () => {});\n'


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin without source, so that there is nothing to build."""
    tests = tmp_path / "chat" / "tests"
    (tests / "more").mkdir(parents=True)
    (tests.parent / "package.json").write_text('{"type": "module", "opentabs": {}}')
    (tests / "test_first.py").write_text(PYTHON)
    (tests / "more" / "test_second.py").write_text(PYTHON)
    (tests / "chat.test.js").write_text(NODE)
    return tests.parent


def ran(done: "subprocess.CompletedProcess[str]") -> tuple[bool, int]:
    """Return whether Node's tests ran, and how many of pytest's passed."""
    passed = re.search(r"(\d+) passed", done.stdout)
    return "In Node" in done.stderr, int(passed[1]) if passed else 0


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], (True, 4)),
        (["tests/test_first.py"], (False, 2)),
        (["tests/test_first.py::test_that"], (False, 1)),
        (["-q", "tests/test_first.py", "tests/more"], (False, 4)),
        (["tests/chat.test.js"], (True, 0)),
        (["tests/chat.test.js", "tests/more/test_second.py", "-k", "this"], (True, 1)),
        (["--ignore", "tests/more"], (True, 2)),
    ],
)
def test_only_the_tests_that_are_named_run(
    plugin: Path, arguments: list[str], wanted: tuple[bool, int]
) -> None:
    done = opentabs("test", *arguments, cwd=plugin)

    assert (done.returncode, *ran(done)) == (0, *wanted), done.stdout + done.stderr


def test_a_named_file_is_of_the_plugin_that_it_lies_in(plugin: Path) -> None:
    assert choose([str(plugin / "tests" / "test_first.py")]).directory == plugin
    assert choose([str(plugin)]).directory == plugin
    assert choose([str(plugin / "tests" / "more")]).directory == plugin


@pytest.mark.parametrize("arguments", [["-k", "nothing"], ["tests/more", "-k", "nothing"]])
def test_a_run_that_selects_no_test_exits_with_5(plugin: Path, arguments: list[str]) -> None:
    assert opentabs("test", *arguments, cwd=plugin).returncode == 5


def test_a_folder_without_tests_exits_with_5(tmp_path: Path) -> None:
    done = opentabs("test", str(tmp_path), cwd=tmp_path.parent)

    assert done.returncode == 5
    assert f"There are no tests in {tmp_path / 'tests'}." in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "arguments", [["--no-such-option"], ["tests/missing.py"], ["tests/test_first.py::test_other"]]
)
def test_what_pytest_cannot_understand_exits_with_2(plugin: Path, arguments: list[str]) -> None:
    assert opentabs("test", *arguments, cwd=plugin).returncode == 2


def test_a_test_file_that_cannot_be_imported_exits_with_1(plugin: Path) -> None:
    (plugin / "tests" / "test_first.py").write_text("import nowhere_to_be_found")

    assert opentabs("test", cwd=plugin).returncode == 1
