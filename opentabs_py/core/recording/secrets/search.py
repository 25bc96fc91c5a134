"""Find the secrets of a recording: in headers, cookies, URLs, bodies and messages.

Texts are recognized by the name of what holds them (`Authorization`, `csrf_token`, `phone`), by
their form (an e-mail address, a JSON Web Token), or because they are a name of the user who is
signed in. What none of this recognizes is kept, so read a recording before you publish it.
"""

import base64
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from opentabs_py.core.encodings import encodings_of
from opentabs_py.core.recording.exchange import (
    FORM,
    Exchange,
    Headers,
    RecordedCall,
    RecordedSocket,
    Recording,
    reads_as_text,
)
from opentabs_py.core.recording.gzipped import unzipped
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.forms import looks_random
from opentabs_py.core.recording.secrets.found import FoundSecret, FoundSecrets
from opentabs_py.core.recording.secrets.markup import search_markup
from opentabs_py.core.recording.secrets.names import is_about_self, kind_of
from opentabs_py.core.recording.secrets.values import ValueSearch

_STATIC: Final = frozenset({"script", "stylesheet", "image", "font", "media"})
_PARAMETER: Final = re.compile(r'(\w+)\s*=\s*"([^"]+)"')
_PUBLIC: Final = frozenset(  # parameters of an `Authorization` that are not secrets
    {"realm", "uri", "qop", "algorithm", "oauth_signature_method", "oauth_version"}
)
_OAUTH_SECRETS: Final = frozenset({"code", "code_verifier", "state"})
# A request that signs in by OAuth has two of these.
_OAUTH: Final = _OAUTH_SECRETS | {"client_id", "grant_type", "redirect_uri", "response_type"}
# A message of STOMP: its command, its headers, and an empty line.
_STOMP: Final = re.compile(r"[A-Z]{3,12}\r?\n(?P<headers>(?:[^\n:]+:[^\n]*\n)+)\r?\n")
_LONG: Final = 8  # characters of a parameter that is secret whatever it looks like
_MULTIPART: Final = re.compile(
    rb'\bname=(?P<quote>"?)(?P<name>[^"\r\n]{1,200}?)(?P=quote)(?=[;\r])'
    rb"[^\r\n]*(?:\r\n[^\r\n]+)*\r\n\r\n(?P<value>.*?)\r\n--",
    re.DOTALL | re.IGNORECASE,
)


def find_secrets(
    recording: Recording,
    rules: ScrubRules,
    *,
    replacements: AbstractSet[str] = frozenset(),
    step: Callable[[], object] = lambda: None,
) -> Collection[FoundSecret]:
    """Return all secrets of a recording.

    Args:
        recording: Where to look.
        rules: What users add.
        replacements: What is in the place of secrets already.
        step: Called after each exchange and WebSocket.
    """
    secrets = FoundSecrets(rules, replacements)
    search = _Search(secrets, ValueSearch(secrets, rules.patterns))
    search.search_address(recording.url)  # of which requests have no fragment
    search.search_state(recording.storage_state or {})
    search.search_state(recording.storage_at_end or {})
    for exchange in recording.exchanges:
        search.search_exchange(exchange)
        step()
    for socket in recording.sockets:
        search.search_socket(socket)
        step()
    for call in recording.calls:
        search.search_call(call)
    return secrets.all


class _Search:
    """Collects the secrets of a recording's parts."""

    def __init__(self, secrets: FoundSecrets, values: ValueSearch) -> None:
        self._secrets = secrets
        self._values = values

    def search_state(self, state: Mapping[str, Any]) -> None:
        for cookie in state.get("cookies", []):
            self._search_cookie(str(cookie["name"]), str(cookie["value"]))
        for origin in state.get("origins", []):
            for item in origin.get("localStorage", []):
                self._values.search_member(str(item["name"]), str(item["value"]))
                self._values.search_text(str(item["value"]))

    def search_exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        self.search_address(request.url)
        self._search_headers(request.headers)
        is_own = is_about_self(urlsplit(request.url).path)
        is_static = request.kind in _STATIC
        if not is_static:
            mime = FORM if request.is_form else request.mime
            self._search_body(request.body, mime, is_own=is_own)
        if response is not None:
            self._search_headers(response.headers)
            self._search_body(
                response.body or b"", response.mime, is_own=is_own, is_static=is_static
            )

    def search_socket(self, socket: RecordedSocket) -> None:
        self.search_address(socket.url)
        for frame in socket.frames:
            data = frame.data
            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            self._values.search_text(text)
            if (stomp := _STOMP.match(text)) is not None:
                for header in stomp["headers"].splitlines():
                    name, _, value = header.partition(":")
                    self._values.search_member(name, value)

    def search_call(self, call: RecordedCall) -> None:
        is_own = is_about_self(call.tool.replace("_", "/"))
        for value in (call.arguments, call.value, call.error):
            self._values.search_value(value, is_own=is_own)

    def search_address(self, url: str) -> None:
        try:
            parts = urlsplit(url)
        except ValueError:
            return
        user, _, _ = parts.netloc.rpartition("@")
        for each in user.split(":"):
            self._secrets.add(unquote(each), "authorization", "address")
        for each in re.split("[/;]", parts.path):  # a path has parameters, too: /me;token=...
            name, _, value = each.partition("=")
            self._values.search_member(unquote(name), unquote(value))
        self._search_pairs(parts.query)
        self._search_pairs(parts.fragment)
        self._values.search_forms(url)

    def _search_pairs(self, text: str, *, is_own: bool = False) -> None:
        """Collect the secrets of a query or a form."""
        pairs = parse_qsl(text)
        self._search_sign_in(pairs)
        for name, value in pairs:
            self._values.search_member(name, value, is_own=is_own)
            self._values.search_base64(name, value)
        self._values.search_value(text, is_own=is_own)

    def _search_sign_in(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Collect the secrets of a query or a form by which OAuth signs a user in."""
        if len(_OAUTH.intersection(name for name, _ in pairs)) < 2:
            return
        for name, value in pairs:
            is_secret = name in _OAUTH_SECRETS and self._secrets.holds(name) != "kept"
            is_path = value.startswith("/")  # to which the user returns
            if is_secret and looks_random(value) and not is_path:
                self._secrets.add(value, "authorization", name)

    def _search_headers(self, headers: Headers) -> None:
        for name, value in headers:
            lower = name.lower()
            if lower == "cookie":
                for pair in value.split(";"):
                    key, _, text = pair.strip().partition("=")
                    self._search_cookie(key, text)
            elif lower == "set-cookie":
                for line in value.splitlines():
                    key, _, text = line.partition(";")[0].partition("=")
                    self._search_cookie(key.strip(), text)
            elif lower in ("authorization", "proxy-authorization"):
                self._search_authorization(value)
            elif self._secrets.holds(lower) == "secret":
                self._secrets.add(value, kind_of(lower), lower)
            else:
                self._values.search_value(value)
                if "/" in value and "=" in value:
                    self.search_address(value)

    def _search_cookie(self, name: str, value: str) -> None:
        if self._secrets.holds(name) == "kept":
            return
        value = value.strip().strip('"')
        plain = unquote(value)
        is_json = plain[:1] in ("{", "[")  # which is replaced as a whole
        if plain != value and not is_json and value in {e(plain) for e in encodings_of(plain)}:
            self._secrets.add(plain, "cookie", name)  # a page sends it decoded, too
        else:
            self._secrets.add(value, "cookie", name)
        self._values.search_value(plain, is_own=True)

    def _search_authorization(self, value: str) -> None:
        scheme, _, token = value.strip().partition(" ")
        # Digest and OAuth 1 have parameters; Google has several tokens, each after its scheme.
        parameters = [each for each in _PARAMETER.findall(token) if each[0] not in _PUBLIC]
        tokens = [("authorization", each) for each in token.split() or [scheme]]
        found: Sequence[tuple[str, str]] = parameters or tokens
        for name, each in found:
            is_secret = len(found) < 2 or len(each) >= _LONG
            self._secrets.add(each, "authorization", name, always=is_secret)
        if scheme.lower() == "basic":
            with suppress(ValueError):  # which binascii.Error and UnicodeDecodeError are
                user, _, password = base64.b64decode(token).decode().partition(":")
                self._secrets.add_name(user, "authorization")
                self._secrets.add(password, "authorization", "authorization", always=True)

    def _search_body(
        self, body: bytes, mime: str, *, is_own: bool, is_static: bool = False
    ) -> None:
        body = unzipped(body)
        if not body:
            return
        if mime.startswith("multipart/"):
            for found in _MULTIPART.finditer(body):
                name, value = (found[each].decode("utf-8", "replace") for each in ("name", "value"))
                self._values.search_member(name, value, is_own=is_own)
        if not reads_as_text(body, mime):
            return
        text = body.decode("utf-8", "surrogateescape")  # as it is scrubbed
        if is_static:  # of a program's own texts, only those count that say that they are tokens
            self._values.search_tokens(text)
            return
        if mime == FORM:
            self._search_pairs(text, is_own=is_own)
        self._values.search_text(text, is_own=is_own)
        if "html" in mime or "xml" in mime:
            search_markup(text, self._secrets, self._values)
