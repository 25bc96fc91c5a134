"""docs/security.md names only tests that exist."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
DOCUMENT = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", DOCUMENT)


def test_every_promise_names_its_test() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| ")]
    promises = [row for row in rows if "tested by" not in row]

    assert promises
    assert [row for row in promises if "::test_" not in row] == []


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_a_test_that_holds_a_promise_is_there(file: str, test: str) -> None:
    source = (REPOSITORY / file).read_text(encoding="utf-8")

    assert re.search(rf"^(?:async )?def {test}\(", source, re.MULTILINE)
