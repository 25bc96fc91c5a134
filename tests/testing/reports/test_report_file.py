"""After which directory the report of a run is named."""

from pathlib import Path

import pytest

from opentabs_py.testing.reports.report_file import find_tested


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory with two plugins, and with tests of its own."""
    for name in ("chat", "mail"):
        (tmp_path / name / "tests").mkdir(parents=True)
        (tmp_path / name / "tests" / "test_it.py").touch()
        (tmp_path / name / "package.json").write_text('{"name": "x", "opentabs": {}}')
    (tmp_path / "tests").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("chosen", "invoked_in", "tested"),
    [
        (["chat/tests"], ".", "chat"),
        (["tests/test_it.py::test_one", "tests"], "chat", "chat"),
        (["../chat/tests/test_it.py"], "mail", "chat"),
        (["chat/tests", "mail/tests"], ".", "."),
        (["chat/tests", "tests"], ".", "."),
        (["not.there"], ".", "."),
        ([], ".", "."),
    ],
)
def test_a_report_is_named_after_the_plugin_that_contains_all_tests(
    workspace: Path, chosen: list[str], invoked_in: str, tested: str
) -> None:
    found = find_tested(chosen, workspace / invoked_in, root=workspace)
    assert found == workspace / tested


def test_absolute_paths_of_tests_are_found_wherever_pytest_is_started(workspace: Path) -> None:
    chosen = [str(workspace / "chat" / "tests")]
    root = workspace / "chat" / "tests"
    assert find_tested(chosen, Path("/"), root) == workspace / "chat"
