"""Regular expressions that every supported Python matches alike."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import opentabs_py

PACKAGE = Path(opentabs_py.__file__).parent
# As in `(?:a|b)*+`. Python before 3.11.5 gets such a repetition wrong if its group backtracks:
# https://github.com/python/cpython/issues/106052
POSSESSIVE_GROUP = re.compile(r"\(\?.*\)(?:[*+?]|\{\d*,?\d*\})\+", re.DOTALL)


def texts(source: str) -> Iterator[str]:
    """Yield all string literals of a module, with the parts of an f-string as one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode("latin-1")


def test_no_group_is_repeated_possessively_because_an_atomic_group_is_right_everywhere() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}: {text}"
        for file in PACKAGE.rglob("*.py")
        for text in texts(file.read_text())
        if POSSESSIVE_GROUP.search(text)
    ]
    assert found == []
