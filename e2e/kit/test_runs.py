"""`opentabs test` with tests that are repeated, sharded, or limited to those that failed."""

import re
from pathlib import Path
from shutil import copyfile

import pytest

from e2e.documents import run
from e2e.kit.runs import UNSTABLE


@pytest.fixture
def plugin(short_path: Path) -> Path:
    """A plugin's directory with tests that need no browser, in both languages."""
    (short_path / "package.json").write_text('{"name": "opentabs-plugin-x", "opentabs": {}}')
    tests = short_path / "tests"
    tests.mkdir()
    copyfile(UNSTABLE, tests / "test_it.py")
    (tests / "test_more.py").write_text("def test_more(): ...\n")
    for name in "ab":
        (tests / f"{name}.test.js").write_text(f'console.log("file {name}");\n')
    return short_path


def outcome_of(plugin: Path, *arguments: str) -> tuple[int, str]:
    done = run(["opentabs", "test", "--color=no", *arguments], plugin)
    return done.returncode, done.stdout + done.stderr


def test_the_command_runs_only_what_failed_last(plugin: Path) -> None:
    first_code, first = outcome_of(plugin)
    second_code, second = outcome_of(plugin, "--last-failed")

    assert (first_code, second_code) == (1, 1)
    assert "2 failed, 2 passed, 1 skipped, 1 error" in first
    assert "2 failed, 1 error" in second  # in a new process the first attempt fails again
    third_code, third = outcome_of(plugin, "--last-failed", "--retries", "1")
    assert third_code == 1
    assert "1 failed, 2 flaky" in third
    _, fourth = outcome_of(plugin, "--last-failed")
    assert "1 failed" in fourth
    assert "error" not in fourth.splitlines()[-1]


def test_the_command_repeats_and_retries(plugin: Path) -> None:
    code, output = outcome_of(plugin, "--repeat", "2", "--retries", "1", "-k", "flaky or more")

    assert code == 0, output
    assert re.search(r"3 passed, \d+ deselected, 1 flaky", output)


def test_the_command_divides_the_tests_of_both_languages(plugin: Path) -> None:
    (plugin / "tests" / "test_it.py").write_text("def test_it(): ...\n")

    _, first = outcome_of(plugin, "--shard", "1/2")
    code, second = outcome_of(plugin, "--shard", "2/2")

    assert code == 0, second
    assert "This was part 1 of 2: 1 of 2 tests." in first
    assert "This was part 2 of 2: 1 of 2 tests." in second
    assert ("file a" in first, "file b" in first) != ("file a" in second, "file b" in second)
    assert outcome_of(plugin, "--shard", "3/2")[0] == 2
