"""Everything in docs/testing.md works as shown, in the order shown."""

import re
from pathlib import Path

import pytest

from e2e.documents import ROOT, Block, read_blocks, run

pytestmark = pytest.mark.timeout(300)  # a fixture runs all commands
BLOCKS = read_blocks((ROOT / "docs" / "testing.md").read_text())
MARKS = {"broken", "install", "shown", "console", "file", "tool", "fails", "failure", "program"}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = tmp_path_factory.mktemp("docs")
    made = run(["opentabs", "new", "chat"], workspace)
    assert made.returncode == 0, made.stderr
    return workspace / "chat"


@pytest.fixture(scope="module")
def told(chat: Path) -> list[tuple[Block, int, str]]:
    """The result of each command, run once the files before it are written."""
    came: list[tuple[Block, int, str]] = []
    for block in BLOCKS:
        if block.mark in ("file", "program"):
            file = chat.parent / block.argument
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.mark == "tool":
            add_tool(chat / "src" / "index.ts", *block.argument.split(), line=block.text)
        elif block.mark in ("broken", "console"):
            command, _ = block.session
            done = run(["bash", "-c", command], chat)
            came.append((block, done.returncode, done.stdout + done.stderr))
    return came


def add_tool(index: Path, name: str, module: str, *, line: str) -> None:
    text = re.sub(
        r"^.*readonly tools = .*\n", lambda _: line, index.read_text(), flags=re.MULTILINE
    )
    index.write_text(f'import {{ {name} }} from "{module}";\n{text}')


def test_every_block_says_how_it_is_run() -> None:
    assert len(BLOCKS) > 12
    assert [block for block in BLOCKS if block.mark not in MARKS] == []


def test_the_first_test_is_the_one_that_a_new_plugin_has(chat: Path) -> None:
    [shown] = [block for block in BLOCKS if block.mark == "shown"]

    assert (chat.parent / shown.argument).read_text() == shown.text


def test_every_command_prints_what_is_shown(told: list[tuple[Block, int, str]]) -> None:
    assert len(told) == 8
    for block, code, output in told:
        command, shown = block.session
        assert code == (1 if block.mark == "broken" else 0), output
        for line in shown.splitlines():
            assert line in output, f"{command}: {line}\n{output}"


@pytest.fixture(scope="module")
def tested(chat: Path, told: list[tuple[Block, int, str]]) -> str:
    """The output of pytest for all examples, one of which is meant to fail."""
    assert told  # their files are there
    [wrong] = [block for block in BLOCKS if block.mark == "fails"]
    (chat.parent / wrong.argument).write_text(wrong.text)

    done = run(["pytest", "-q", "-rA"], chat, 250)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    return done.stdout


def test_every_example_passes(tested: str) -> None:
    [wrong] = [block for block in BLOCKS if block.mark == "fails"]
    examples = [block for block in BLOCKS if block.mark == "file" and "/test_" in block.argument]

    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) tests/([\w.]+)::", tested, re.MULTILINE)

    assert [each for each in outcomes if each[0] != "PASSED"] == [
        ("FAILED", Path(wrong.argument).name)
    ], tested
    for block in examples:
        for name in re.findall(r"def (test_\w+)", block.text):
            assert f"PASSED tests/{Path(block.argument).name}::{name}" in tested


def test_the_failing_example_fails_as_shown(tested: str) -> None:
    [failure] = [block for block in BLOCKS if block.mark == "failure"]

    _, _, shown = tested.partition("= FAILURES =")
    said = [" ".join(line.removeprefix("E").split()) for line in shown.splitlines()]
    at = 0
    for line in failure.text.splitlines():
        words = line.split()
        found = [i for i in range(at, len(said)) if is_within(words, said[i])]
        assert found, f"{line}\n{tested}"
        at = found[0]


def is_within(words: list[str], line: str) -> bool:
    """Return whether these words occur in a line in order, with any times and bars between them."""
    return re.search(".*".join(map(re.escape, words)), line) is not None
