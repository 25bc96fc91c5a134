"""What docs/hands.md shows is what happens."""

import re
import sys
from pathlib import Path

from e2e.documents import ROOT, read_blocks, run
from e2e.hands.saved_pages import PAGES

TEXT = (ROOT / "docs" / "hands.md").read_text()


def test_the_program_prints_what_is_shown(tmp_path: Path) -> None:
    program, output = (block for block in read_blocks(TEXT) if block.mark in ("program", "output"))
    (tmp_path / program.argument).write_text(program.text)
    done = run([sys.executable, program.argument], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == output.text


def test_the_test_passes_as_shown(tmp_path: Path) -> None:
    shown = [block for block in read_blocks(TEXT) if block.mark in ("file", "console")]
    for block in shown[:-1]:
        (tmp_path / block.argument).write_text(block.text)
    command, said = shown[-1].session
    done = run(["bash", "-c", command], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said.strip() in done.stdout


def test_the_table_of_sizes_has_every_page() -> None:
    rows = re.findall(
        r"^\| (\w+) \| \d+ KB \| \d+ \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", TEXT, re.MULTILINE
    )
    assert [name for name, *_ in rows] == [*PAGES]
    for name, playwright, _, sent in rows:
        assert int(sent.replace(",", "")) * 2 <= int(playwright.replace(",", "")), name
