"""The paths in the documents exist in this repository."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
TOP = {"opentabs_py", "adapter_js", "extension", "tests", "e2e", "docs", ".ci"}
# Paths in docs/architecture.md are relative to one of these.
ROOMS = ("", "opentabs_py", "extension", "adapter_js")
_PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w-]+\.(?:py|js|ts|md))?)`")


def missing(text: str, rooms: tuple[str, ...]) -> list[str]:
    """Return the paths in a document that exist in none of these directories."""
    return [
        path
        for path in _PATH.findall(text)
        if not any((REPOSITORY / room / path).exists() for room in rooms)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_that_starts_at_the_top_level_exists(document: Path) -> None:
    paths = missing(document.read_text(), ("",))
    assert [path for path in paths if path.split("/")[0] in TOP] == []


def test_every_path_in_the_architecture_exists() -> None:
    assert missing((REPOSITORY / "docs" / "architecture.md").read_text(), ROOMS) == []


def test_a_path_that_is_not_there_is_found() -> None:
    assert missing("`server/listing.py`, `core/` and `core/dispatch.py`", ROOMS) == [
        "server/listing.py"
    ]
