"""A difference between what values look like and what they looked like before."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from opentabs_py.core.shapes.shape import Shape

What = Literal[
    "went", "came", "renamed", "moved", "type", "null", "optional", "format", "choice", "value",
    "empty",
]  # fmt: skip
_WORDS: Final[Mapping[What, str]] = {
    "went": "{} is gone (was {was})",
    "came": "{} is new ({now})",
    "renamed": "{} is now called {now}",
    "moved": "{} has moved to {now}",
    "type": "{} was {was}, and is now {now}",
    "null": "{} was {was}, and may be null",
    "optional": "{} was always present, and may now be missing",
    "format": "{} was a {was}, and no longer is",
    "choice": "{} has a new value, {now} (was {was})",
    "value": "{} was always {was}, and is now {now}",
    "empty": "{} had items, and is now empty",
}
_PLAIN: Final = re.compile(r"[\w$-]+")


@dataclass(frozen=True, slots=True)
class Change:
    """A difference.

    Attributes:
        path: Where, such as `messages[].author`; an empty string is the value itself.
        what: `went`, `came`, `renamed` and `moved` are of members; `type`, `null`, `optional` and
            `format` say that values are of another type, may be null, may be missing, or have lost
            their format; `choice` is a string that is new in a fixed set; `value` another value
            where it was always the same; `empty` an array that had items and has none.
        was: What was there, in words.
        now: What is there, in words; the new path of a member that was renamed or moved.
    """

    path: str
    what: What
    was: str = ""
    now: str = ""

    def __str__(self) -> str:
        return _WORDS[self.what].format(self.path or "the value", was=self.was, now=self.now)


def in_words(shape: Shape) -> str:
    """Return what a shape's values are, such as `string (date-time) or null`."""
    words = [
        f"string ({shape.format})" if kind == "string" and shape.format is not None else kind
        for kind in shape.kinds
        if kind != "null"
    ]
    return " or ".join([*sorted(words), *(["null"] if shape.is_nullable else [])])


def below(path: str, name: str) -> str:
    """Return the path of a member of an object."""
    if not _PLAIN.fullmatch(name):
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name
