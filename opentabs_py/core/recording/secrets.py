"""Find the secrets of a recording: in headers, cookies, URLs, bodies and messages.

Texts are recognized by the name of what holds them (`Authorization`, `csrf_token`, `phone`), by
their form (an e-mail address, a JSON Web Token), or because they are a name of the user who is
signed in. What none of this recognizes is kept, so read a recording before you publish it.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from html.parser import HTMLParser
from typing import Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from opentabs_py.core.recording.exchange import FORM, Headers, Recording, reads_as_text
from opentabs_py.core.recording.rules import Rules
from opentabs_py.core.recording.secret_forms import (
    Kind,
    find_addresses,
    find_tokens,
    is_distinct,
    looks_random,
    may_be_phone,
    name_parts,
)
from opentabs_py.core.recording.secret_names import (
    holds,
    is_about_self,
    is_content,
    is_self,
    kind_of,
)

SHORTEST: Final = 4  # characters of a secret that is known by the name of what holds it
_SHORTEST_NAME: Final = 2  # characters of the user's name
_DEEPEST: Final = 100  # objects and arrays within each other
_STATIC: Final = frozenset({"script", "stylesheet", "image", "font", "media"})

_REMEMBERED: Final = 4096  # names; those of a site's members recur
_IN_TEXT: Final = re.compile(
    r"""["'](?P<name>[\w.-]{2,60})["']\s*:\s*"""
    r"""(?P<value>"(?:[^"\\]|\\.){1,4000}"|-?\d{5,18}(?![\w.])|\[[^\[\]{}]{1,4000}\])"""
)
_JSON: Final = re.compile(r"\s*(?:[{\[]|(?P<encoded>%7B|%5B))", re.IGNORECASE)
_JSON_BEGINS: Final = ("{", "[", '"')
# A URL without a password, or a time: in a secret's JSON, these are not secret.
_HARMLESS: Final = re.compile(r"https?://[^@]*|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?")
_LITERAL: Final = re.compile(r"[=(]\s*[{\[](?=\s*[\"\[{])")
_DECODER: Final = json.JSONDecoder()
_NO_NAMES: Final = frozenset(
    """
    account admin anonymous anyone demo example general guest home login me main name none null
    owner public root self session system team test true false undefined unknown user you
    """.split()  # noqa: SIM905
)
_NO_SECRETS: Final = frozenset(
    """
    basic bearer cookie disabled enabled false full none null password required same-origin true
    undefined
    """.split()  # noqa: SIM905
)
_PARAMETER: Final = re.compile(r'(\w+)\s*=\s*"([^"]+)"')
_PUBLIC: Final = frozenset(  # parameters of an `Authorization` that are not secrets
    {"realm", "uri", "qop", "algorithm", "oauth_signature_method", "oauth_version"}
)
_LONG: Final = 8  # characters of a parameter that is secret whatever it looks like
_MULTIPART: Final = re.compile(
    rb'\bname=(?P<quote>"?)(?P<name>[^"\r\n]{1,200}?)(?P=quote)(?=[;\r])'
    rb"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n(?P<value>.*?)\r\n--",
    re.DOTALL | re.IGNORECASE,
)


@dataclass(slots=True)
class FoundSecret:
    """A string that a recording must not contain.

    Attributes:
        text: The text.
        kind: What it is.
        where: The name of what held it first.
        holders: The names of all that held it, if it is secret only there: elsewhere, the same
            text may be an ordinary word.
    """

    text: str
    kind: Kind
    where: str
    holders: set[str] = field(default_factory=set[str])

    @property
    def is_distinct(self) -> bool:
        """Whether it is secret wherever it appears."""
        return not self.holders


class Finder:
    """Collects the secrets of a recording.

    Args:
        rules: What users add.
        replacements: What is in the place of secrets already.

    Attributes:
        found: The secrets by their text.
    """

    def __init__(self, rules: Rules, replacements: AbstractSet[str] = frozenset()) -> None:
        self._rules = rules
        self._public = {*_NO_SECRETS, *rules.keep, *replacements}
        self._holds = lru_cache(maxsize=_REMEMBERED)(partial(holds, rules))
        self.found: dict[str, FoundSecret] = {}
        for text in rules.texts:
            self.add(text, "text", "texts", always=True)

    def add(self, text: str, kind: Kind, where: str, *, always: bool = False) -> None:
        """Note a secret.

        Args:
            text: The secret.
            kind: What it is.
            where: The name of what holds it.
            always: It is secret wherever it appears, whatever it looks like.
        """
        text = text.strip()
        if not always and text[:1] in _JSON_BEGINS and self._add_json(text, kind, where):
            return
        is_short = len(text) < (_SHORTEST_NAME if kind == "name" else SHORTEST) and not always
        if not text or is_short or not self._public.isdisjoint((text, text.lower())):
            return
        distinct = always or is_distinct(text)
        known = self.found.get(text)
        if known is None:
            known = self.found[text] = FoundSecret(text, kind, where)
            if not distinct:
                known.holders.add(where)
        elif distinct:
            known.holders.clear()
        elif not known.is_distinct:
            known.holders.add(where)

    def _add_json(self, text: str, kind: Kind, where: str) -> bool:
        """Note each string in JSON as a secret, and return whether it is JSON.

        Not the whole: with that replaced, a body that contains the same value would not be JSON.
        """
        try:
            self._add_strings(json.loads(text), kind, where)
        except (ValueError, RecursionError):
            return False
        return True

    def _add_strings(self, value: Any, kind: Kind, where: str) -> None:
        if isinstance(value, str):
            if _HARMLESS.fullmatch(value) is None:
                self.add(value, kind, where)
        elif isinstance(value, dict):
            for name, each in cast("dict[str, Any]", value).items():
                if self._holds(name) != "kept":
                    self._add_strings(each, kind, name)
        elif isinstance(value, list):
            for each in cast("Sequence[Any]", value):
                self._add_strings(each, kind, where)

    # --- a recording's parts ---

    def search(self, recording: Recording, *, step: Callable[[], object] = lambda: None) -> None:
        """Collect all secrets of a recording.

        Args:
            recording: Where to look.
            step: Called after each exchange.
        """
        self._search_address(recording.url)  # of which requests have no fragment
        self._search_state(recording.storage_state or {})
        self._search_state(recording.storage_at_end or {})
        for each in recording.exchanges:
            request, response = each.request, each.response
            self._search_address(request.url)
            self._search_headers(request.headers)
            is_own = is_about_self(urlsplit(request.url).path)
            if request.kind not in _STATIC:
                self.search_body(request.body, request.mime, is_own=is_own)
            if response is not None:
                self._search_headers(response.headers)
                is_static = request.kind in _STATIC
                self.search_body(
                    response.body or b"", response.mime, is_own=is_own, is_static=is_static
                )
            step()
        for socket in recording.sockets:
            self._search_address(socket.url)
            for frame in socket.frames:
                data = frame.data
                self.search_text(data if isinstance(data, str) else data.decode("utf-8", "replace"))
            step()
        for call in recording.calls:
            is_own = is_about_self(call.tool.replace("_", "/"))
            for value in (call.arguments, call.value, call.error):
                self._search_value(value, is_own=is_own)

    def _search_state(self, state: Mapping[str, Any]) -> None:
        for cookie in state.get("cookies", []):
            self._add_cookie(str(cookie["name"]), str(cookie["value"]))
        for origin in state.get("origins", []):
            for item in origin.get("localStorage", []):
                self._search_member(str(item["name"]), str(item["value"]), is_own=False, depth=0)
                self.search_text(str(item["value"]))

    def _search_headers(self, headers: Headers) -> None:
        for name, value in headers:
            lower = name.lower()
            if lower == "cookie":
                for pair in value.split(";"):
                    key, _, text = pair.strip().partition("=")
                    self._add_cookie(key, text)
            elif lower == "set-cookie":
                for line in value.splitlines():
                    key, _, text = line.partition(";")[0].partition("=")
                    self._add_cookie(key.strip(), text)
            elif lower in ("authorization", "proxy-authorization"):
                self._add_authorization(value)
            elif self._holds(lower) == "secret":
                self.add(value, kind_of(lower), lower)
            else:
                self._search_value(value, is_own=False)
                if "/" in value and "=" in value:
                    self._search_address(value)

    def _add_cookie(self, name: str, value: str) -> None:
        if self._holds(name) == "kept":
            return
        value = value.strip().strip('"')
        self.add(value, "cookie", name)
        self._search_value(unquote(value), is_own=True)

    def _add_authorization(self, value: str) -> None:
        scheme, _, token = value.strip().partition(" ")
        # Digest and OAuth 1 have parameters; Google has several tokens, each after its scheme.
        parameters = [each for each in _PARAMETER.findall(token) if each[0] not in _PUBLIC]
        tokens = [("authorization", each) for each in token.split() or [scheme]]
        found: Sequence[tuple[str, str]] = parameters or tokens
        for name, each in found:
            is_secret = len(found) < 2 or len(each) >= _LONG
            self.add(each, "authorization", name, always=is_secret)
        if scheme.lower() == "basic":
            with suppress(ValueError):  # which binascii.Error and UnicodeDecodeError are
                user, _, password = base64.b64decode(token).decode().partition(":")
                self._add_name(user, "authorization")
                self.add(password, "authorization", "authorization", always=True)

    def _search_address(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError:
            return
        user, _, _ = parts.netloc.rpartition("@")
        for each in user.split(":"):
            self.add(unquote(each), "authorization", "address")
        self._search_pairs(parts.query)
        self._search_pairs(parts.fragment)
        self._search_forms(url)

    def _search_pairs(self, text: str, *, is_own: bool = False) -> None:
        """Collect the secrets of a query or a form."""
        for name, value in parse_qsl(text):
            self._search_member(name, value, is_own=is_own, depth=0)
        self._search_nested(text, is_own=is_own, depth=0)

    def search_body(
        self, body: bytes, mime: str, *, is_own: bool = False, is_static: bool = False
    ) -> None:
        """Collect the secrets of a body."""
        if not body:
            return
        if mime.startswith("multipart/"):
            for found in _MULTIPART.finditer(body):
                name, value = (found[each].decode("utf-8", "replace") for each in ("name", "value"))
                self._search_member(name, value, is_own=is_own, depth=0)
        if not reads_as_text(body, mime):
            return
        text = body.decode("utf-8", "replace")
        if is_static:  # of a program's own texts, only those count that say that they are tokens
            self._search_tokens(text)
            return
        if mime == FORM:
            self._search_pairs(text, is_own=is_own)
        self.search_text(text, is_own=is_own)
        if "html" in mime or "xml" in mime:
            page = _Page(self)
            with suppress(AssertionError):  # html.parser's answer to a malformed declaration
                page.feed(text)

    def search_text(self, text: str, *, is_own: bool = False) -> None:
        """Collect the secrets of a string, which may be JSON or contain some."""
        self._search_forms(text)
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            for found in _IN_TEXT.finditer(text):
                with suppress(ValueError):
                    value = json.loads(found["value"])
                    self._search_member(found["name"], value, is_own=False, depth=0)
            self._search_literals(text)
            for line in text.splitlines():  # of an event stream
                if line.startswith("data:"):
                    with suppress(ValueError, RecursionError):
                        self._search_value(json.loads(line[5:]), is_own=is_own)
        else:
            self._search_value(parsed, is_own=is_own)

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
                self._search_value(value, is_own=False)

    # --- values ---

    def _search_value(self, value: Any, *, is_own: bool, depth: int = 0, holder: str = "") -> None:
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
            self._search_forms(value)
            self._search_nested(value, is_own=is_own, depth=depth)
        elif isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            named = members.get("name", members.get("key"))
            if isinstance(named, str) and isinstance(members.get("value"), str):
                self._search_member(named, members["value"], is_own=False, depth=depth + 1)
            if self._holds(holder) == "secret":
                self._add_contents(members, holder)
            for name, each in members.items():
                self._search_member(str(name), each, is_own=is_own, depth=depth + 1)
        elif isinstance(value, list):
            # A list about oneself is of other things.
            for each in cast("Sequence[Any]", value):
                if isinstance(each, dict):
                    self._search_value(each, is_own=False, depth=depth + 1, holder=holder)
                else:
                    self._search_member(holder, each, is_own=False, depth=depth + 1)

    def _add_contents(self, members: Mapping[str, Any], holder: str) -> None:
        for name, each in members.items():
            is_secret = is_content(str(name)) or (isinstance(each, str) and looks_random(each))
            if is_secret and type(each) in (str, int) and self._holds(str(name)) != "kept":
                self.add(str(each), kind_of(holder), str(name))

    def _search_nested(self, text: str, *, is_own: bool, depth: int) -> None:
        """Collect the secrets of JSON that a value contains as a string, or percent-encoded."""
        if (begin := _JSON.match(text)) is not None:
            plain = unquote(text) if begin["encoded"] else text
            with suppress(ValueError, RecursionError):
                self._search_value(json.loads(plain), is_own=is_own, depth=depth + 1)

    def _search_member(self, name: str, value: Any, *, is_own: bool, depth: int) -> None:
        holds = self._holds(name)
        if holds == "kept":
            return
        if isinstance(value, (dict, list)):
            about_self = is_self(name, within_own=is_own)
            self._search_value(value, is_own=about_self, depth=depth, holder=name)
            return
        if isinstance(value, (bool, float)) or value is None:
            return
        text = str(value)
        self._search_forms(text)
        self._search_nested(text, is_own=is_own, depth=depth)
        if holds == "secret":
            self.add(text, kind_of(name), name)
        elif holds == "phone number":
            if may_be_phone(text):
                self.add(text, "phone number", name)
        elif holds == "person" and is_own and isinstance(value, str):
            self._add_name(value, name)

    def _add_name(self, value: str, where: str) -> None:
        if _SHORTEST_NAME <= len(value) <= 80 and value.lower() not in _NO_NAMES:
            self.add(value, "name", where, always=len(value) > 2)
            for part in name_parts(value):
                if part.lower() not in _NO_NAMES:
                    self.add(part, "name", where, always=True)

    def _search_forms(self, text: str) -> None:
        self._search_tokens(text)
        for found, kind in find_addresses(text):
            self.add(found, kind, "text")
        for pattern in self._rules.patterns:
            for match in pattern.finditer(text):
                self.add(match[0], "text", f"pattern {pattern.pattern}", always=True)

    def _search_tokens(self, text: str) -> None:
        for found, kind in find_tokens(text):
            is_new = found not in self.found
            self.add(found, kind, "text")
            if kind == "JSON Web Token" and is_new:
                self._search_claims(found)

    def _search_claims(self, token: str) -> None:
        payload = token.split(".")[1]
        with suppress(ValueError):  # which binascii.Error and UnicodeDecodeError are
            claims = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            self._search_value(claims.decode(), is_own=True)

    def search_field(self, name: str, value: str) -> None:
        """Collect the secret of an HTML field, if it is one."""
        self._search_member(name, value, is_own=False, depth=0)


class _Page(HTMLParser):
    """Reads a page's fields, its `meta` elements and its scripts."""

    def __init__(self, finder: Finder) -> None:
        super().__init__(convert_charrefs=True)
        self._finder = finder
        self._is_script = False
        self._field: str | None = None  # the name of a field that is written in what follows

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script, self._field = tag == "script", None
        attributes = {name: value or "" for name, value in attrs}
        if tag == "meta":
            name = attributes.get("name") or attributes.get("property") or ""
            self._finder.search_field(name, attributes.get("content", ""))
        elif tag in ("input", "button", "textarea"):
            name = attributes.get("name") or attributes.get("id") or ""
            self._finder.search_field(name, attributes.get("value", ""))
            self._field = name if tag == "textarea" else None
            if attributes.get("type") == "password":
                self._finder.add(
                    attributes.get("value", ""), "token", name or "password", always=True
                )
        for name, value in attributes.items():
            if name.startswith("data-"):
                self._finder.search_field(name.removeprefix("data-"), value)
            elif name == "href" and value.startswith("tel:"):
                self._finder.search_field("tel", unquote(value[4:]))

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self._is_script = False
            self._finder.search_text(data)
        elif self._field is not None:
            self._finder.search_field(self._field, data)
            self._field = None
