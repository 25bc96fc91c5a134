"""Tools written in Python in the kit's fixtures, with plugins and without any."""

from pathlib import Path

from e2e.kit.runs import prepare, run, run_kit


def test_tools_in_python_are_tested_beside_those_of_plugins(tmp_path: Path) -> None:
    ran = run_kit(tmp_path, "tools")

    assert len(ran.cases) == 7, ran.output
    assert set(ran.outcomes.values()) == {"passed"}, ran.output


def test_tools_in_python_need_no_plugin(tmp_path: Path) -> None:
    (prepare(tmp_path, "tools") / "conftest.py").unlink()

    ran = run(tmp_path)

    assert len(ran.cases) == 7, ran.output
    assert set(ran.outcomes.values()) == {"passed"}, ran.output
