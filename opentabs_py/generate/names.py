"""Names of tools, arguments and variables, from those that a site uses."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from opentabs_py.core.shapes.texts import is_id

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NOT_PLURAL: Final = re.compile(r"(?:.*(?:ss|us|is|news|series|status|settings|analytics))$")
_RESERVED: Final = frozenset(
    """
    arguments await break case catch class const context continue debugger default delete do else
    enum eval export extends false finally for function if implements import in instanceof
    interface let new null package private protected public return static super switch this throw
    true try typeof var void while with yield tabId __proto__
    """.split()  # noqa: SIM905 (a list has one line per word)
)
_IMPORTED: Final = frozenset(
    """
    call defineTool details graphql hasSession heading link nextPage notice openPage request rows
    sendForm z
    """.split()  # noqa: SIM905
)
_LONGEST: Final = 48  # characters of a tool's name
MAX_PAGES: Final = "maxPages"
"""The argument of a tool that reads page after page."""
HAS_MORE: Final = "hasMore"
"""The member of its result that says whether it has read all."""


def words_of(text: str) -> Sequence[str]:
    """Return the words of a name in lower case, such as `send` and `message` of `sendMessage`."""
    plain = text.encode("ascii", "ignore").decode()
    return [each.lower() for each in _WORDS.findall(plain)]


def snake(*texts: str) -> str:
    """Return a tool's name, such as `list_messages`."""
    words = [word for text in texts for word in words_of(text)]
    while words and words[0].isdecimal():
        words.pop(0)
    return "_".join(words)[:_LONGEST].rstrip("_") or "call"


def camel(*texts: str) -> str:
    """Return the name of a variable, such as `channelId`."""
    name = re.sub(r"_([a-z])|(?<=[a-z])_", lambda at: (at[1] or "").upper(), snake(*texts))
    return f"{name}_" if name in _RESERVED else name


def list_member(text: str, others: Collection[str] = ()) -> str:
    """Return the name of the member of a result that holds its list, which no other member has.

    Args:
        text: What it should be called.
        others: The names of the other members, besides `hasMore`.
    """
    name = camel(text)
    # A shape takes a member whose name looks like an id for one of many.
    return "items" if name in (HAS_MORE, *others) or is_id(name) else name


def export_name(tool: str) -> str:
    """Return the name of the variable that holds a tool; its module imports nothing so named."""
    name = camel(tool)
    return f"{name}_" if name in _IMPORTED else name


def pascal(*texts: str) -> str:
    """Return the name of a schema, such as `Message`."""
    return "".join(each.capitalize() for each in snake(*texts).split("_"))


def title(text: str) -> str:
    """Return a name as words, such as `List messages`."""
    return " ".join(words_of(text)).capitalize()


def singular(word: str) -> str:
    """Return the name of one of several things."""
    lower = word.lower()
    if len(word) < 4 or not lower.endswith("s") or _NOT_PLURAL.fullmatch(lower):
        return word
    if lower.endswith("ies"):
        return f"{word[:-3]}y"
    if lower.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def is_plural(word: str) -> bool:
    """Return whether a name is that of several things."""
    return singular(word) != word


def is_identifier(text: str) -> bool:
    """Return whether a string may name a variable or a member as it is."""
    return re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", text) is not None and text not in _RESERVED


def unique(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken, with a number if need be."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}_{number}" if "_" in name else f"{name}{number}"
    return found
