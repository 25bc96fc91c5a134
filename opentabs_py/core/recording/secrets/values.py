"""Find secrets in strings and in JSON values, which may contain each other."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
_IN_TEXT: Final = re.compile(
    r"""["'](?P<name>[\w.-]{2,60})["']\s*:\s*"""
    r"""(?P<value>"(?:[^"\\]|\\.){1,4000}"|-?\d{5,18}(?![\w.])|\[[^\[\]{}]{1,4000}\])"""
)
_JSON: Final = re.compile(r"\s*(?:[{\[]|(?P<encoded>%7B|%5B))", re.IGNORECASE)
_LITERAL: Final = re.compile(r"[=(]\s*[{\[](?=\s*[\"\[{])")
_DECODER: Final = json.JSONDecoder()


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
            for found in _IN_TEXT.finditer(text):
                with suppress(ValueError):
                    self.search_member(found["name"], json.loads(found["value"]))
            self._search_literals(text)
            for line in text.splitlines():  # of an event stream
                if line.startswith("data:"):
                    with suppress(ValueError, RecursionError):
                        self.search_value(json.loads(line[5:]), is_own=is_own)
        else:
            self.search_value(parsed, is_own=is_own)

    def search_forms(self, text: str) -> None:
        """Collect what is secret by its form, or by a pattern of the user's."""
        self.search_tokens(text)
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

    def _search_literals(self, program: str) -> None:
        """Collect the secrets of the JSON values that a program assigns or passes."""
        at = 0
        while (found := _LITERAL.search(program, at)) is not None:
            start = found.end() - 1
            try:
                value, at = _DECODER.raw_decode(program, start)
            except (ValueError, RecursionError):
                at = found.end()
            else:
                self.search_value(value)

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
            self.search_forms(value)
            self._search_nested(value, is_own=is_own, depth=depth)
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
        self.search_forms(text)
        self._search_nested(text, is_own=is_own, depth=depth)
        if holds == "secret":
            self._secrets.add(text, kind_of(name), name)
        elif holds == "phone number":
            if may_be_phone(text):
                self._secrets.add(text, "phone number", name)
        elif holds == "person" and is_own and isinstance(value, str):
            self._secrets.add_name(value, name)

    def _search_nested(self, text: str, *, is_own: bool, depth: int) -> None:
        """Collect the secrets of JSON that a value contains as a string, or percent-encoded."""
        if (begin := _JSON.match(text)) is not None:
            plain = unquote(text) if begin["encoded"] else text
            with suppress(ValueError, RecursionError):
                self.search_value(json.loads(plain), is_own=is_own, depth=depth + 1)
