"""Kinds of strings in a site's responses: dates, ids, words of a fixed set."""

import re
from typing import Final, Literal

Format = Literal["date-time", "date", "uuid", "uri", "email"]

_FORMATS: Final[tuple[tuple[Format, re.Pattern[str]], ...]] = (
    (
        "date-time",
        re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)?"),
    ),
    ("date", re.compile(r"\d{4}-\d\d-\d\d")),
    ("uuid", re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")),
    ("uri", re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#]\S*")),
    ("email", re.compile(r"[^\s@]+@[^\s@.]+(\.[^\s@.]+)+")),
)
_LONGEST: Final = 2_000  # characters; no text of a format is longer
_WORD: Final = re.compile(r"[a-z][a-z0-9]*([_.-][a-z0-9]+)*|[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
_CAMEL: Final = re.compile(r"[a-z]+([A-Z][a-z0-9]*)*")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_HEX: Final = re.compile(r"(?=.*\d)(?=.*[a-fA-F])[0-9a-fA-F]{8,}")
_TOKEN: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w~-]{12,}")
_CODE: Final = re.compile(r"[A-Za-z]{1,4}[_-]?\d{2,}|[CDGTUW][A-Z0-9]{8,11}")
_GENERATED: Final = re.compile(r".*\d.*|(css|sc|jss|jsx)-.*|.*__(?=[a-z]*[A-Z])[A-Za-z]{5,8}")
_LONGEST_WORD: Final = 40
_LONGEST_ID: Final = 200


def format_of(text: str) -> Format | None:
    """Return the JSON Schema format that a string has; None if it has none that is known."""
    if len(text) > _LONGEST:
        return None
    return next((name for name, pattern in _FORMATS if pattern.fullmatch(text)), None)


def is_word(text: str) -> bool:
    """Return whether a string looks like one of a fixed set, such as `open` or `IN_REVIEW`."""
    if len(text) > _LONGEST_WORD:
        return False
    return bool(_WORD.fullmatch(text) or _CAMEL.fullmatch(text)) and not is_id(text)


def is_number(text: str) -> bool:
    """Return whether a string is a decimal number."""
    return _NUMBER.fullmatch(text) is not None


def is_generated(name: str) -> bool:
    """Return whether a build has made the name of a class, such as `css-1x2y3z`."""
    return _GENERATED.fullmatch(name) is not None


def is_id(text: str) -> bool:
    """Return whether a string looks like an id, such as `4711` or a UUID."""
    if len(text) > _LONGEST_ID:
        return False
    return (
        text.isdecimal()
        or format_of(text) == "uuid"
        or any(pattern.fullmatch(text) for pattern in (_HEX, _TOKEN, _CODE))
    )
