"""Strings: edge cases, formats, and the patterns of JSON Schema as Python reads them."""

import operator
import re
from math import ceil, floor
from typing import Any, Final

from hypothesis import provisional
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opentabs_py.testing.fuzz.merging import Schema

HUGE_TEXT: Final = 10_000  # characters
_LONG: Final = 1_000  # characters; Hypothesis draws no more than some thousands one by one
# What breaks tools that were only tried with names of people.
EDGES: Final = (
    *("0", "-1", "null", "true", "NaN", "undefined", "[object Object]", "__proto__"),
    *(" ", "\t", "\n", "\x00", "\u200b", "\ufeff", "\u2028", "\u202e", "\xa0"),
    *("\xe9", "e\u0301", "\xdf", "\u0130", "\ufb03", "\u65e5\u672c\u8a9e", "\u05e9\u05dc\u05d5"),
    *("\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\uffff"),
    *("'", '"', "\\", "`", "%00", "%", "&", "<b>", "../..", "{}", "${x}", "' OR 1=1 --"),
)
_ANY: Final = st.characters(exclude_categories=["Cs"])  # JSON in UTF-8 has no lone surrogates

_CLASSES: Final = {
    "L": "A-Za-zÀ-ÖØ-öЀ-я",
    "Letter": "A-Za-zÀ-ÖØ-öЀ-я",
    "Lu": "A-ZÀ-ÖØ-Þ",
    "Ll": "a-zß-öø-ÿ",
    "N": "0-9",
    "P": "!-#%-*,-/:;?@_",
    "Z": " ",
}
_UNICODE: Final = re.compile(r"\\u\{([0-9A-Fa-f]+)\}")
_PROPERTY: Final = re.compile(r"\\p\{([A-Za-z_=]+)\}")


def strings(flat: Schema) -> SearchStrategy[str]:
    """Draw strings that a flat schema allows, or that at least have its format or pattern."""
    least: int = ceil(flat.get("minLength", 0))
    most: int | None = flat.get("maxLength")
    if most is not None and least > most:
        return st.nothing()
    given: str | list[str] = flat.get("pattern", [])
    patterns = [given] if isinstance(given, str) else given
    matched = [each for each in map(matching, patterns) if each is not None]
    if len(matched) > 1:  # often one is about the start, and another about the end
        matched.append(st.tuples(*matched).map("".join))
    if least > 1:  # few matches of `[a-z]+` are long enough
        lengths = st.integers(least, 2 * least if most is None else floor(min(2 * least, most)))
        matched += [st.builds(_stretched, each, lengths) for each in matched]
    in_format = of_format(flat.get("format"))
    guides = matched if in_format is None else [in_format, *matched]
    return st.one_of(guides) if guides else text(least, None if most is None else floor(most))


def text(least: int = 0, most: int | None = None) -> SearchStrategy[str]:
    """Draw a string of any characters, one that is often handled wrongly, or a huge one."""
    largest = max(least, HUGE_TEXT) if most is None else min(most, max(least, HUGE_TEXT))
    if least >= _LONG:
        word = st.text(_ANY, min_size=1, max_size=20)
        return st.builds(_stretched, word, st.integers(least, largest))
    plain = st.text(_ANY, min_size=least, max_size=most)
    edges = [each for each in EDGES if least <= len(each) <= (most or HUGE_TEXT)]
    if most == 0 or (most is not None and most <= 8 and not edges):
        return plain
    huge = st.builds(
        operator.mul,
        st.sampled_from("a\u65e5\U0001f600 "),
        st.integers(min(max(least, 1), largest), largest),
    )
    often = [plain, plain, plain]
    return st.one_of(*often, *([st.sampled_from(edges)] if edges else []), huge)


def matching(pattern: str) -> SearchStrategy[str] | None:
    """Draw strings that match a pattern of JSON Schema; None if Python cannot read it."""
    try:
        return st.from_regex(re.compile(_python_pattern(pattern), re.ASCII), alphabet=_ANY)
    except (re.error, ValueError, NotImplementedError):
        return None


def of_format(name: Any) -> SearchStrategy[str] | None:
    """Draw strings of a format of JSON Schema; None if it is not known."""
    return _FORMATS.get(name) if isinstance(name, str) else None


def _stretched(match: str, length: int) -> str:
    return (match * length)[:length]


def _python_pattern(pattern: str) -> str:
    """Return a pattern of ECMAScript as Python writes it; the rest is the same in both."""

    def letters(match: re.Match[str]) -> str:
        name = match[1].rpartition("=")[2]
        if name not in _CLASSES:
            raise ValueError(name)
        before = pattern[: match.start()]
        is_in_class = before.rfind("[") > before.rfind("]")
        return _CLASSES[name] if is_in_class else f"[{_CLASSES[name]}]"

    written = _PROPERTY.sub(letters, pattern)
    written = _UNICODE.sub(lambda match: re.escape(chr(int(match[1], 16))), written)
    return re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", written)


_FORMATS: Final[dict[str, SearchStrategy[str]]] = {
    "date": st.dates().map(lambda day: day.isoformat()),
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "time": st.times().map(lambda moment: f"{moment.isoformat()}Z"),
    "duration": st.builds("P{}DT{}H{}S".format, *[st.integers(0, 99)] * 3),
    "email": st.emails(),
    "idn-email": st.emails(),
    "hostname": provisional.domains(),
    "idn-hostname": provisional.domains(),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "uri": provisional.urls(),
    "uri-reference": st.one_of(provisional.urls(), st.from_regex(r"\A/[a-z0-9/]{0,20}\Z")),
    "iri": provisional.urls(),
    "iri-reference": provisional.urls(),
    "uuid": st.uuids().map(str),
    "json-pointer": st.from_regex(r"\A(/[a-z0-9~0]{0,8}){0,3}\Z"),
    "regex": st.sampled_from(["", ".", "^a*$", r"\d+", "[a-z]{2,}", "(a|b)?"]),
}
