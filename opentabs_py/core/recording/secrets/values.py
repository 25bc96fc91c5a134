"""Find secrets in strings and in JSON values, which may contain each other."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final, cast
from urllib.parse import unquote

from opentabs_py.core.recording.secrets.forms import (
    find_addresses,
    find_tokens,
    looks_random,
    may_be_phone,
)
from opentabs_py.core.recording.secrets.found import FoundSecrets
from opentabs_py.core.recording.secrets.names import is_content, is_self, kind_of

_DEEPEST: Final = 100  # objects and arrays within each other
# A member of JSON, of an object in JavaScript, or an argument in GraphQL.
_MEMBER: Final = re.compile(
    r"""(?<![\w.-])(?P<quote>["'])?(?P<name>(?>[\w.-]{2,60}))(?(quote)["'])\s*:\s*"""
    r"""(?:'(?P<text>[^'\\\n]{1,4000})'|(?P<json>"(?:[^"\\]|\\.){1,4000}\""""
    r"""|(?(quote)(?:-?\d{5,18}(?![\w.])|\[[^\[\]{}]{1,4000}\])|(?!))))"""
)
# A parameter of a URL, or one with which a message of an event stream begins. Its value has a
# digit: a program's `a?token=read():b` is not a URL.
_PARAMETER: Final = re.compile(
    r"(?:\A|^data: ?|[?&#]|&amp;|\\u0026|;(?=jsessionid))(?P<name>[\w.%\[\]-]{2,60})="
    r"(?=[^\s&#\"'(]{0,200}\d)(?P<value>(?>[\w.~%+/=|!*-]{4,4000}))(?!\()",
    re.IGNORECASE | re.MULTILINE,
)
# A variable of a program. Its value has a digit, unlike that of `tokenUrl = "/token"`.
_VARIABLE: Final = re.compile(
    r"""(?<![\w.$-])(?P<name>(?>[\w.$]{2,60}))\s*=\s*(?P<quote>["'`])"""
    r"""(?=[^\d\s"'`]*\d)(?P<value>[\w.~+/=|!*-]{6,4000})(?P=quote)"""
)
_JSON: Final = re.compile(r"\s*(?:[{\[]|(?P<encoded>%7B|%5B))", re.IGNORECASE)
# JSON that a program assigns or passes, or that is in a line, perhaps after a short prefix: that of
# an event stream, of Socket.IO, or one that keeps a response from being run as a program.
_LITERAL: Final = re.compile(r"(?:[=(]\s*|^[^\[{\n\"']{0,60})[{\[](?=\s*[\"\[{\d])", re.MULTILINE)
# It begins with `{"`, `{ ` or a new line after the brace.
_BASE64_OBJECT: Final = re.compile(r"(?:eyJ|eyA|ewo|ew0K)[\w+/-]{8,4000}={0,2}")
_SCHEME: Final = re.compile(r"(?:basic|bearer|token)\s+(?=\S+$)", re.IGNORECASE)
_LONGEST_INTEGER: Final = 1000  # digits; Python refuses those with over 4300


class ValueSearch:
    """Collects the secrets of strings and of JSON values.

    A secret is recognized by its form, or by the name of the member that holds it. A string may be
    JSON, or contain some, and JSON has strings; so the methods call each other.

    Args:
        secrets: Where to note them.
        patterns: What is secret besides.
    """

    def __init__(self, secrets: FoundSecrets, patterns: Sequence[re.Pattern[str]]) -> None:
        self._secrets = secrets
        self._patterns = patterns

    # --- strings ---

    def search_text(self, text: str, *, is_own: bool = False) -> None:
        """Collect the secrets of a string, which may be JSON or contain some.

        Args:
            text: The string.
            is_own: Whether it is about the user who is signed in.
        """
        self.search_forms(text)
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            for name, value in _members(text):
                self.search_member(name, value)
            self._search_literals(text, is_own=is_own)
        else:
            self.search_value(parsed, is_own=is_own)

    def search_forms(self, text: str) -> None:
        """Collect what is secret by its form, by its name in a URL, or by the user's patterns."""
        self.search_tokens(text)
        self._search_parameters(text)
        for found, kind in find_addresses(text):
            self._secrets.add(found, kind, "text")
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                self._secrets.add(match[0], "text", f"pattern {pattern.pattern}", always=True)

    def search_tokens(self, text: str) -> None:
        """Collect the tokens that say what they are, and the secrets in their claims."""
        for found, kind in find_tokens(text):
            is_new = found not in self._secrets
            self._secrets.add(found, kind, "text")
            if kind == "JSON Web Token" and is_new:
                self._search_claims(found)

    def _search_claims(self, token: str) -> None:
        payload = token.split(".")[1]
        with suppress(ValueError):  # which binascii.Error and UnicodeDecodeError are
            claims = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            self.search_value(claims.decode(), is_own=True)

    def _search_parameters(self, text: str) -> None:
        """Collect the secrets of the URLs in a text, or of a form."""
        for found in _PARAMETER.finditer(text):
            name = unquote(found["name"])
            if self._secrets.holds(name) == "secret":
                self._secrets.add(unquote(found["value"]), kind_of(name), name)

    def _search_literals(self, text: str, *, is_own: bool) -> None:
        """Collect the secrets of the JSON values in a program, or in the lines of a text."""
        text, at = _Unnumbered(text), 0
        while (found := _LITERAL.search(text, at)) is not None:
            start = found.end() - 1
            try:
                value, at = _DECODER.raw_decode(text, start)
            except json.JSONDecodeError as error:
                at = max(found.end(), error.pos)  # up to there, it may be long
            except RecursionError:
                at = found.end() + _deepest_read()
            else:
                is_program = found[0][:-1].rstrip().endswith(("=", "("))
                self.search_value(value, is_own=is_own and not is_program)

    def search_base64(self, name: str, value: str) -> None:
        """Collect a parameter, such as `state`, if it is a JSON object in base64 with a secret.

        The whole, for only a part of its characters stands for the secret.
        """
        if _BASE64_OBJECT.fullmatch(value) is None:
            return
        noted = self._secrets.noted
        with suppress(ValueError, RecursionError):  # it is not base64, UTF-8 or JSON
            padded = value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4)
            self.search_value(json.loads(base64.b64decode(padded, altchars="-_")))
        if self._secrets.noted > noted:
            self._secrets.add(value, "token", name)

    # --- JSON ---

    def search_value(
        self, value: Any, *, is_own: bool = False, depth: int = 0, holder: str = ""
    ) -> None:
        """Collect the secrets of a JSON value.

        Args:
            value: Where to look.
            is_own: Whether it is about the user who is signed in.
            depth: How many objects and arrays it is within.
            holder: The name of what holds it, which is also that of what is in a list.
        """
        if depth > _DEEPEST:
            return
        if isinstance(value, str):
            self._search_string(value, is_own=is_own, depth=depth)
        elif isinstance(value, dict):
            self._search_object(cast("dict[str, Any]", value), holder, is_own=is_own, depth=depth)
        elif isinstance(value, list):
            # A list about oneself is of other things.
            for each in cast("Sequence[Any]", value):
                if isinstance(each, dict):
                    self.search_value(each, depth=depth + 1, holder=holder)
                else:
                    self.search_member(holder, each, depth=depth + 1)

    def _search_object(
        self, members: Mapping[str, Any], holder: str, *, is_own: bool, depth: int
    ) -> None:
        named = members.get("name", members.get("key"))
        if isinstance(named, str) and isinstance(members.get("value"), str):
            self.search_member(named, members["value"], depth=depth + 1)
        if self._secrets.holds(holder) == "secret":
            self._add_contents(members, holder)
        for name, each in members.items():
            self.search_member(str(name), each, is_own=is_own, depth=depth + 1)

    def _add_contents(self, members: Mapping[str, Any], holder: str) -> None:
        for name, each in members.items():
            is_secret = is_content(str(name)) or (isinstance(each, str) and looks_random(each))
            is_scalar = type(each) in (str, int)
            if is_secret and is_scalar and self._secrets.holds(str(name)) != "kept":
                self._secrets.add(str(each), kind_of(holder), str(name))

    def search_member(self, name: str, value: Any, *, is_own: bool = False, depth: int = 0) -> None:
        """Collect the secrets of a member of an object, or of a field.

        Args:
            name: Its name.
            value: Its JSON value.
            is_own: Whether what contains it is about the user who is signed in.
            depth: How many objects and arrays it is within.
        """
        holds = self._secrets.holds(name)
        if holds == "kept":
            return
        if isinstance(value, (dict, list)):
            about_self = is_self(name, within_own=is_own)
            self.search_value(value, is_own=about_self, depth=depth, holder=name)
            return
        if isinstance(value, (bool, float)) or value is None:
            return
        text = str(value)
        self._search_string(text, is_own=is_own, depth=depth)
        if holds == "secret":
            self._secrets.add(_SCHEME.sub("", text), kind_of(name), name)
        elif holds == "phone number":
            if may_be_phone(text):
                self._secrets.add(text, "phone number", name)
        elif holds == "person" and is_own and isinstance(value, str):
            self._secrets.add_name(value, name)

    def _search_string(self, text: str, *, is_own: bool, depth: int) -> None:
        """Collect the secrets of a string in a JSON value; it may be JSON, also percent-encoded."""
        self.search_forms(text)
        for name, value in _members(text):
            if self._secrets.holds(name) == "secret":
                self.search_member(name, value, depth=depth + 1)
        if (begin := _JSON.match(text)) is not None:
            plain = unquote(text) if begin["encoded"] else text
            with suppress(ValueError, RecursionError):
                self.search_value(json.loads(plain), is_own=is_own, depth=depth + 1)


@cache
def _deepest_read() -> int:
    """Return how many levels of nesting can be read; what has more is at least as many characters.

    Python 3.14 reads as many as the stack has room for, a hundred times as many as before.
    """
    depth = 125
    with suppress(RecursionError):
        while True:
            json.loads("[" * 2 * depth + "]" * 2 * depth)
            depth *= 2
    return depth


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else digits


_DECODER: Final = json.JSONDecoder(parse_int=_integer)


class _Unnumbered(str):
    """A text that has no lines, for a decoder's errors, which count all that come before them."""

    __slots__ = ()

    def count(self, *_args: Any) -> int:
        return 0

    def rfind(self, *_args: Any) -> int:
        return -1


def _members(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of an object's members, or variables, in what may be a program."""
    for found in _MEMBER.finditer(text):
        if found["text"] is not None:
            yield found["name"], found["text"]
        else:
            with suppress(ValueError):
                yield found["name"], json.loads(found["json"])
    for found in _VARIABLE.finditer(text):
        yield found["name"], found["value"]
