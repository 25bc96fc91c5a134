"""Everything that docs/webmcp.md shows page developers works as shown."""

from pathlib import Path

import pytest

from e2e.documents import ROOT, read_blocks, run

BLOCKS = [each for each in read_blocks((ROOT / "docs" / "webmcp.md").read_text()) if each.mark]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the files that precede the first command."""
    directory = tmp_path_factory.mktemp("page")
    for block in BLOCKS:
        if block.mark == "console":
            break
        (directory / block.argument).write_text(block.text)
    return directory


def test_the_first_test_passes_as_shown(project: Path) -> None:
    [shown] = [block for block in BLOCKS if block.mark == "console"]
    command, said = shown.session
    done = run(["bash", "-c", command], project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said.strip() in done.stdout


@pytest.mark.parametrize("kind", ["native", "polyfill"])
def test_every_example_passes_with_either_interface(kind: str, tmp_path: Path) -> None:
    for block in BLOCKS:
        if block.mark == "file":
            (tmp_path / block.argument).write_text(block.text)
    switch = {"OPENTABS_WEBMCP_POLYFILL": "true"} if kind == "polyfill" else {}
    done = run(["pytest", "-q"], tmp_path, **switch)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ('to_offer_tool("subtract"', "expected to offer the tool 'subtract', within 0.1 s"),
        ('not_to_offer_tool("add"', "expected not to offer the tool 'add', within 0.1 s"),
    ],
)
def test_a_tool_that_is_missing_or_too_many_fails_with_those_that_are_there(
    wrong: str, expected: str, tmp_path: Path
) -> None:
    for block in BLOCKS:
        if block.mark == "file" and not block.argument.startswith("test_"):
            (tmp_path / block.argument).write_text(block.text)
    [test] = [block.text for block in BLOCKS if block.argument == "test_page.py"]
    broken = test.replace('to_offer_tool("add"', f"{wrong}, within=0.1")
    (tmp_path / "test_wrong.py").write_text(broken)
    done = run(["pytest", "-q"], tmp_path)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert expected in done.stdout
    assert "got: it offers add" in done.stdout


def test_without_the_setting_the_error_says_what_to_write(tmp_path: Path) -> None:
    [test] = [block.text for block in BLOCKS if block.argument == "test_page.py"]
    (tmp_path / "test_page.py").write_text(test)
    done = run(["pytest", "-q"], tmp_path)
    assert 'set webmcp = ["http://127.0.0.1/*"]' in " ".join(done.stdout.split())
