"""The fenced blocks of a document, each with the comment that says how to run it."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Hypothesis's plugin takes long to load, and no test here uses it.
PLUGINS = {"PYTEST_ADDOPTS": "-p no:hypothesispytest"}
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
    **PLUGINS,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}
_BLOCK = re.compile(
    r"(?:^<!-- runs: (?P<mark>\S+) ?(?P<argument>.*) -->\n)?"
    r"^(?P<fence>`{3,})(?P<language>.*)\n(?P<text>(?:.*\n)*?)(?P=fence)$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block and its mark, `<!-- runs: MARK ARGUMENT -->`; without one, "" for both."""

    mark: str
    argument: str
    language: str
    text: str

    @property
    def session(self) -> tuple[str, str]:
        """The command after `$ `, and its output as shown."""
        match = re.fullmatch(r"\$ ((?:.*\\\n)*.*\n)((?:.*\n)*)", self.text)
        assert match is not None, self.text
        return match[1], match[2]


def read_blocks(text: str) -> list[Block]:
    return [
        Block(match["mark"] or "", match["argument"] or "", match["language"], match["text"])
        for match in _BLOCK.finditer(text)
    ]


def find_marked(blocks: Sequence[Block], mark: str) -> list[Block]:
    """Return the blocks with a mark."""
    return [block for block in blocks if block.mark == mark]


def run(
    command: list[str], cwd: Path, within: float = 100, /, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command; `within` is in seconds, and `more` are environment variables."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**ENVIRONMENT, **more},
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
