"""Select the tests that `opentabs test` names, and the arguments that go to pytest."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import typer

from opentabs_py.plugins.load import find_plugin

UNIT_TESTS = ("*.test.ts", "*.test.js", "*.test.mjs")
PYTHON_TESTS = ("test_*.py", "*_test.py")  # pytest's own default
_SUFFIXES = (".py", *(pattern.removeprefix("*") for pattern in UNIT_TESTS))
# Options of pytest and its plugins whose value may look like a path to tests.
_TAKES_VALUE = {
    *("-c", "-k", "-m", "-o", "-p", "--basetemp", "--confcutdir", "--config-file", "--cov"),
    *("--deselect", "--ignore", "--ignore-glob", "--output", "--rootdir"),
}


@dataclass(frozen=True, slots=True)
class ChosenTests:
    """The selected tests.

    Attributes:
        directory: The directory of the plugin under test.
        paths: Directories, files, and pytest node ids.
        pytest_args: The other arguments.
        shard: The part of the tests to run, such as `1/4`.
        fuzz: The options with which the tools are checked instead; empty if they are not.
        reports: Whether a report is to be written of the tests that pytest runs.
    """

    directory: Path
    paths: Sequence[str]
    pytest_args: Sequence[str]
    shard: str | None = None
    fuzz: Sequence[str] = ()
    reports: bool = False

    @property
    def everything(self) -> str:
        """The directory of all tests."""
        return str(self.directory / "tests")

    def for_node(self) -> list[str]:
        """Return the files that Node runs."""
        files: list[str] = []
        if self.fuzz:
            return files
        for path in map(Path, self.paths):
            if path.is_dir():
                found = [file for pattern in UNIT_TESTS for file in path.rglob(pattern)]
                files += sorted(map(str, found))
            elif _is_unit(path):
                files.append(str(path))
        return list(dict.fromkeys(files))

    def for_pytest(self) -> list[str]:
        """Return the paths that contain tests for pytest."""
        return [path for path in self.paths if self.fuzz or _has_python_tests(path)]


def choose(arguments: Sequence[str]) -> ChosenTests:
    """Parse the arguments of `opentabs test`; without a path, all tests of the plugin are selected.

    Raises:
        typer.BadParameter: A path does not exist.
    """
    chosen: list[str] = []
    others: list[str] = []
    for before, argument in pairwise(["", *arguments]):
        is_path = not argument.startswith("-") and before not in _TAKES_VALUE
        (chosen if is_path and (not others or _names_tests(argument)) else others).append(argument)
    for path in chosen:
        if not _file(path).exists():
            raise typer.BadParameter(
                f"{_file(path)} does not exist. Name a plugin's directory or its tests."
            )
    first = _file(chosen[0]) if chosen else Path()
    directory = find_plugin(first.absolute()) or (first if first.is_dir() else Path())
    everything = str(directory / "tests")
    paths = [everything if _file(path).samefile(directory) else path for path in chosen]
    return ChosenTests(directory, paths or [everything], others)


def _file(path: str) -> Path:
    return Path(path.partition("::")[0])


def _names_tests(argument: str) -> bool:
    return _file(argument).name.endswith(_SUFFIXES) or Path(argument).is_dir()


def _is_unit(path: Path) -> bool:
    return any(path.match(pattern) for pattern in UNIT_TESTS)


def _has_python_tests(path: str) -> bool:
    if not Path(path).is_dir():
        return _file(path).suffix == ".py"
    return any(any(Path(path).rglob(pattern)) for pattern in PYTHON_TESTS)
