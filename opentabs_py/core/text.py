"""Format paths, values and names for messages."""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import NoneType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # not loaded for commands that need none of it
    from pydantic import ValidationError

HYPHENATED: Final = r"[a-z0-9]+(-[a-z0-9]+)*"
"""A pattern of names in lower case, with single hyphens."""
_COMPARED: Final = 256  # characters; comparing a million takes most of a second
_LEFT_OUT: Final = 50  # characters; what says how much of a text is left out
_KINDS: Final[Mapping[type, str]] = {
    NoneType: "null",
    bool: "a boolean",
    str: "a string",
    list: "an array",
    dict: "an object",
}
_KEPT: Final = "\n\t\u200c\u200d"
# Printable to Python, but shown as nothing or as a space: Unicode's Default_Ignorable_Code_Point,
# and an empty Braille pattern. Without the variation selectors of emoji and of Mongolian.
_BLANK: Final = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
)


def path_text(path: Iterable[int | str]) -> str:
    """Return a path in JavaScript notation: `tools[3].input_schema`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def well_formed(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which neither UTF-8 nor JSON can carry.

    Python has them in the names of files that are not UTF-8, and pages in texts that were cut.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def shorten(text: str, limit: int = 120) -> str:
    """Truncate a string that would overwhelm the message it appears in."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_middle(text: str, limit: int) -> str:
    """Return a text; of one that is too long, its head and tail, and how much is left out between.

    Args:
        text: The text.
        limit: How many characters are returned at most; at least 100.
    """
    if len(text) <= limit:
        return text
    kept = (limit - _LEFT_OUT) // 2
    return f"{text[:kept]}\n… {len(text) - 2 * kept:,} characters left out …\n{text[-kept:]}"


def show_value(value: object) -> str:
    """Return a value as JSON, shortened; what has none, as Python shows it."""
    return shorten(json.dumps(value, ensure_ascii=False, default=repr))


def json_kind(value: object) -> str:
    """Return what JSON calls a value, such as `an array`."""
    return _KINDS.get(type(value), "a number")


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Return the one or two names most similar to one that does not exist; perhaps none."""
    if len(name) > _COMPARED:
        return []
    return get_close_matches(name, list(names), n=2)


def did_you_mean(near: Iterable[str]) -> str:
    """Return `did you mean 'a' or 'b'?`, or an empty string if no name is near."""
    either = " or ".join(map(repr, near))
    return f"did you mean {either}?" if either else ""


def first_problem(error: "ValidationError") -> str:
    """Return the first of what is not valid: the member, and why."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return ": ".join(filter(None, (path_text(first["loc"]), first["msg"])))


def rule_text(message: str) -> str:
    """Return a message of pydantic's; what a validator raised, as the validator worded it."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def visible(text: str) -> str:
    r"""Return an untrusted text made safe for a terminal, escaping characters as `\u001b`.

    That applies to every control and format character (escape sequences, carriage returns,
    bidirectional overrides, zero-width spaces, tags), and to letters and marks that are not seen,
    except newlines, tabs, and the two joiners that some languages need. The escapes are JSON's, so
    JSON keeps its meaning.
    """
    if is_seen(text):
        return text
    # Each kind of character is looked at once, because a text may have millions of them.
    return text.translate(
        {ord(c): c if is_seen(c) or c in _KEPT else _escape(c) for c in set(text)}
    )


def is_seen(text: str) -> bool:
    """Return whether each character of an untrusted text is shown, and none does anything else."""
    return text.isprintable() and (text.isascii() or _BLANK.search(text) is None)


def _escape(character: str) -> str:
    if unicodedata.category(character) == "Zs":
        return " "  # any other kind of space
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def one_line(text: str) -> str:
    """Return an untrusted text on one line, with each character that is not seen as a space."""
    return text.translate({ord(c): c if is_seen(c) else " " for c in set(text)})


def quantity(number: int, what: str) -> str:
    """Return a number of things: `1 call`, `1,200 calls`.

    Args:
        number: How many there are.
        what: What one of them is called; its plural has an s.
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """Return a duration for users: `0.38 ms`, `12 ms`, `1.52 s`, `4 min 05 s`."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.2f} ms" if seconds < 0.00995 else f"{seconds * 1000:.1f} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
