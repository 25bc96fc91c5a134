"""The patterns that find secrets in a text, in whatever encoding it has."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

# A word, whose letters may be encoded, and what separates words: %22 is a quotation mark.
_WORD: Final = r"""(?:[^"'&;,\\\s<>{}\[\]%]|%[89A-F][0-9A-F]|\\u[0-9A-F]{4}){1,200}"""
WORDS: Final = re.compile(rf"%[0-7][0-9A-F]|{_WORD}", re.IGNORECASE)

_HEAD: Final = 32  # characters; a pattern of longer texts takes long to make, and may be too deep


def continues(text: str, index: int) -> bool:
    """Return whether a character belongs to the word or number that follows it."""
    if not text[index].isalnum():
        return False
    # The n of an escaped line feed, and the last digit of a percent-encoded character, do not.
    is_escape = text[index] in "nrtbf" and index > 0 and text[index - 1] == "\\"
    return not (is_escape or re.search(r"%[0-9A-Fa-f]{2}$", text[max(0, index - 2) : index + 1]))


class AnyOf:
    """Finds any of these strings, at each place the longest.

    A pattern finds where one may begin. It branches at each character rather than at each text,
    because there can be thousands.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = {*texts}
        heads = {each[:_HEAD] for each in self._texts}
        self._pattern = _any_of(heads)
        # How long the texts are that have this head or are the beginning of it, the longest first.
        lengths = {head: {n for n in range(1, _HEAD) if head[:n] in self._texts} for head in heads}
        for each in self._texts:
            lengths[each[:_HEAD]].add(len(each))
        self._lengths = {head: sorted(each, reverse=True) for head, each in lengths.items()}

    def replace(self, text: str, new: Callable[[str, int, int], str]) -> str:
        """Return a text with the strings replaced.

        Args:
            text: The text.
            new: Returns what replaces a string, from the text and where it begins and ends there.
        """
        parts: list[str] = []
        done = at = 0
        while self._pattern is not None and (found := self._pattern.search(text, at)):
            start = found.start()
            ends = (start + length for length in self._lengths[found[0]])
            end = next((each for each in ends if text[start:each] in self._texts), None)
            if end is None:
                at = start + 1
            else:
                parts += (text[done:start], new(text, start, end))
                done = at = end
        return "".join([*parts, text[done:]])


def _any_of(texts: Iterable[str]) -> "re.Pattern[str] | None":
    """Return a pattern that finds any of these strings, the longest one first."""
    root: dict[str, Any] = {}
    for text in texts:
        node = root
        for char in text:
            node = node.setdefault(char, {})
        node[""] = {}
    return re.compile(_branches(root)) if root else None


def _branches(node: dict[str, Any]) -> str:
    """Return the expression for what can follow."""
    literal = ""
    while len(node) == 1:  # without recursion, for tokens are long
        [(char, node)] = node.items()
        if not char:
            return literal
        literal += re.escape(char)
    ends = "" in node
    options = [re.escape(char) + _branches(below) for char, below in node.items() if char]
    return f"{literal}(?:{'|'.join(options)}){'?' if ends else ''}"


def values_of(names: set[str]) -> "Sequence[re.Pattern[str]]":
    """Return what finds what has one of these names, and its value, or the list of its values.

    That is a member, a pair of name and value in either order, an element, a form's field or a part
    of one, a parameter, or a line's header. The patterns are apart, because one's match may contain
    another's. JSON may be percent-encoded.
    """
    name = f"(?P<name>{'|'.join(re.escape(each) for each in sorted(names, key=len, reverse=True))})"
    value = f"(?P<value>{_WORD})"
    # All begin with one of four characters, which the patterns are quick to find.
    quote = r"""(?:"|'|\\"|\\'|%22|%27|%5C%22|%5C%27)"""
    space = r"(?:\s|%20|\+)"
    colon = rf"{space}*(?::|%3A){space}*"
    # Atomic: Python before 3.11.5 matches possessive repetitions of groups wrongly (gh-106052).
    text = rf"(?P<quote>{quote})(?>(?:(?!(?P=quote))(?:\\.|%5C%?.|[^\\]))*)(?P=quote)"
    # It ends at the object's next name, or its end, so brackets need not be counted.
    items = rf"(?:\[|%5B)(?>(?:{space}|[\[\],]|%5[BD]|%2C|[\w.-]|{text}(?!{colon}))*)"
    named = rf"{quote}(?:name|key){quote}{colon}{quote}{name}{quote}"
    valued = rf"{quote}value{quote}{colon}{quote}"
    between = rf"{space}*(?:,|%2C)(?:(?!%7[BD])[^{{}}]){{0,500}}?"  # the object's other members
    attributes = r"[^<>]{0,1000}?"  # the element's other ones
    field = rf"\b(?:name|id|property)=(?:{quote})?{name}(?![\w-])"
    content = rf"\b(?:value|content)=(?:{quote})?"
    patterns = (
        rf"(?P<before>{quote}{name}{quote}{colon}(?:{quote})?){value}",
        rf"(?P<before>{quote}{name}{quote}{colon})(?P<value>{items})",
        rf"(?P<before>{named}{between}{valued}){value}",
        rf"(?P<before>{valued}){value}(?={quote}{between}{named})",
        rf"(?P<before>{field}{attributes}(?:{content}|>\s*)){value}",
        rf"(?P<before>{content}){value}(?={attributes}\s{field})",
        rf"(?P<before>(?<![\w.-])(?:data-)?{name}(?:=(?:{quote})?|{colon}{quote})){value}",
        rf"(?P<before><(?:\w+:)?{name}\b{attributes}>\s*){value}",
        rf"(?P<before>^{name}:){value}(?=\r?$)",
        rf'(?P<before>\bname="?{name}"?(?=[;\r])[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n){value}',
    )
    return [re.compile(each, re.IGNORECASE | re.MULTILINE) for each in patterns]
