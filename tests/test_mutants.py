"""The tests of core/ run in the copy of the repository that `make mutants` breaks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPTIONS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]
SELECTION: list[str] = OPTIONS["pytest_add_cli_args_test_selection"]
LEFT_OUT = [each.partition("=")[2] for each in SELECTION if each.startswith("--")]


def test_the_tests_that_are_left_out_exist() -> None:
    for each in LEFT_OUT:
        file, _, name = each.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(), each


def test_the_files_that_the_others_read_are_copied() -> None:
    read = {
        found
        for file in (ROOT / "tests/core").rglob("test_*.py")
        if str(file.relative_to(ROOT)) not in LEFT_OUT
        for found in re.findall(r'"((?:adapter_js|extension|docs)/[\w./-]+)"', file.read_text())
    }
    copied = [ROOT / each for each in OPTIONS["also_copy"]]
    missing = [each for each in read if not any((ROOT / each).is_relative_to(of) for of in copied)]
    assert read
    assert missing == []
