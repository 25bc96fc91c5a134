"""`opentabs test`: which tests its arguments choose, and its exit codes."""

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


@pytest.mark.parametrize(
    ("arguments", "in_node", "by_pytest", "options"),
    [
        ([], ["chat.test.js"], ["tests"], []),
        (["tests/test_first.py"], [], ["tests/test_first.py"], []),
        (["tests/test_first.py::test_that"], [], ["tests/test_first.py::test_that"], []),
        (["-q", "tests/test_first.py", "tests/more"], [],
         ["tests/test_first.py", "tests/more"], ["-q"]),
        (["tests/chat.test.js"], ["chat.test.js"], [], []),
        (["tests/chat.test.js", "tests/more/test_second.py", "-k", "this"], ["chat.test.js"],
         ["tests/more/test_second.py"], ["-k", "this"]),
        (["--ignore", "tests/more"], ["chat.test.js"], ["tests"], ["--ignore", "tests/more"]),
    ],
)  # fmt: skip
def test_only_the_tests_that_are_named_are_chosen(
    plugin: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    in_node: list[str],
    by_pytest: list[str],
    options: list[str],
) -> None:
    monkeypatch.chdir(plugin)

    chosen = choose(arguments)

    assert [Path(file).name for file in chosen.for_node()] == in_node
    assert [Path(path).absolute() for path in chosen.for_pytest()] == [
        Path(path).absolute() for path in by_pytest
    ]
    assert list(chosen.pytest_args) == options


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [([], 4), (["tests/chat.test.js", "tests/more/test_second.py", "-k", "this"], 1)],
)
def test_the_chosen_tests_run_in_node_and_in_pytest(
    plugin: Path, arguments: list[str], passed: int
) -> None:
    done = opentabs("test", *arguments, cwd=plugin)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "In Node" in done.stderr
    assert f" {passed} passed" in done.stdout


def test_a_named_file_is_of_the_plugin_that_it_lies_in(plugin: Path) -> None:
    assert choose([str(plugin / "tests" / "test_first.py")]).directory == plugin
    assert choose([str(plugin)]).directory == plugin
    assert choose([str(plugin / "tests" / "more")]).directory == plugin


def test_a_run_that_selects_no_test_exits_with_5(plugin: Path) -> None:
    assert opentabs("test", "tests/more", "-k", "nothing", cwd=plugin).returncode == 5


def test_a_folder_without_tests_exits_with_5(tmp_path: Path) -> None:
    done = opentabs("test", str(tmp_path), cwd=tmp_path.parent)

    assert done.returncode == 5
    assert f"There are no tests in {tmp_path / 'tests'}." in " ".join(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["tests/missing.py"]])
def test_what_pytest_cannot_understand_exits_with_2(plugin: Path, arguments: list[str]) -> None:
    assert opentabs("test", *arguments, cwd=plugin).returncode == 2


def test_a_test_file_that_cannot_be_imported_exits_with_1(plugin: Path) -> None:
    (plugin / "tests" / "test_first.py").write_text("import nowhere_to_be_found")

    assert opentabs("test", cwd=plugin).returncode == 1
