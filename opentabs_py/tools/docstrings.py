"""What a docstring in Google's style says to those who call."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import cleandoc

_ARGUMENTS = frozenset({"args", "arguments", "parameters", "params"})
_FOR_PROGRAMMERS = _ARGUMENTS | {"raises", "returns", "return", "yields", "yield", "attributes"}
_HEADING = re.compile(r"(\w+):\s*")
_ARGUMENT = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in parts.

    Attributes:
        text: All but the sections that speak to programmers.
        arguments: What is said of each argument.
    """

    text: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])


def parse_docstring(docstring: str | None) -> Docstring:
    """Take a docstring apart; one in another style is all text."""
    text: list[str] = []
    arguments: dict[str, str] = {}
    lines = cleandoc(docstring or "").splitlines()
    while lines:
        line = lines.pop(0)
        heading = _HEADING.fullmatch(line)
        name = heading[1].lower() if heading is not None else ""
        if name not in _FOR_PROGRAMMERS:
            text.append(line)
            continue
        section: list[str] = []
        while lines and (not lines[0].strip() or lines[0][0].isspace()):
            section.append(lines.pop(0))
        if name in _ARGUMENTS:
            arguments |= _read_arguments(section)
    # Two blank lines are left where a section was.
    return Docstring(re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip(), arguments)


def _read_arguments(section: Sequence[str]) -> dict[str, str]:
    parts: dict[str, list[str]] = {}
    indent: int | None = None
    current: list[str] = []
    for line in section:
        stripped = line.strip()
        depth = len(line) - len(line.lstrip())
        if not stripped:
            continue
        indent = depth if indent is None else indent
        match = _ARGUMENT.fullmatch(stripped) if depth <= indent else None
        if match is not None:
            current = parts.setdefault(match[1], [])
            stripped = match[2]
        current.append(stripped)
    return {name: " ".join(part for part in text if part) for name, text in parts.items()}
