"""Everything that docs/python-tools.md shows works as shown."""

import sys
from functools import partial
from pathlib import Path

import pytest

from e2e.documents import ROOT, Block, find_marked, read_blocks, run

BLOCKS = read_blocks((ROOT / "docs" / "python-tools.md").read_text())
marked = partial(find_marked, BLOCKS)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for block in [*marked("file"), *marked("program")]:
        (tmp_path / block.argument).write_text(block.text)
    return tmp_path


def test_every_block_says_how_it_is_run() -> None:
    assert {block.mark for block in BLOCKS} == {"file", "console", "program", "output"}
    assert [each.argument for each in marked("program")] == [
        each.argument for each in marked("output")
    ]


@pytest.mark.parametrize("block", marked("console"), ids=lambda block: block.session[0].split()[1])
def test_every_command_prints_what_is_shown(block: Block, workspace: Path) -> None:
    command, shown = block.session
    done = run(["bash", "-c", command], workspace)
    assert done.returncode == 0, done.stderr
    for line in shown.splitlines():
        assert " ".join(line.split()) in " ".join(done.stdout.split())


@pytest.mark.parametrize("block", marked("output"), ids=lambda block: block.argument)
def test_every_program_prints_what_the_document_says(block: Block, workspace: Path) -> None:
    done = run([sys.executable, block.argument], workspace)
    assert done.returncode == 0, done.stderr
    assert done.stdout == block.text
