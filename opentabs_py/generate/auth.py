"""Recognize how a site authenticates users: by cookies, and by headers with values from pages."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from itertools import chain
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

from opentabs_py.core.markup import MarkupReader
from opentabs_py.core.recording.exchange import Headers, Recording, header
from opentabs_py.generate.json_paths import walk
from opentabs_py.generate.samples import Sample

Where = Literal[
    "cookie", "localStorage", "meta", "field", "script", "response", "constant", "random", "unknown"
]

_OF_BROWSER: Final = re.compile(
    r"accept|accept-(encoding|language|charset)|cache-control|connection|content-(length|type)"
    r"|cookie|dnt|expect|host|if-.*|origin|pragma|priority|range|referer|save-data|sec-.*"
    r"|upgrade-insecure-requests|user-agent|:.*|x-request-id|x-correlation-id|traceparent"
    r"|tracestate|baggage|sentry-trace|x-b3-.*"
)
_IDEMPOTENCY: Final = re.compile(r"(x-)?idempotency(-key)?")  # another value in each request
_OVERRIDE: Final = re.compile(r"x-(http-)?method(-override)?")  # says what one request does
_ANYTHING: Final = "*/*"  # what the browser accepts if the page does not say
_SECRET: Final = re.compile(r".*(auth|token|csrf|xsrf|api-?key|session|secret|jwt|sign).*")
_SELF: Final = (
    re.compile(r"me|self|whoami|viewer|current[_-]?user|userinfo|identity"),
    re.compile(r"profile|session|account|user"),
)
_JSON: Final = "application/json"
_LOGOUT: Final = re.compile(r"(log|sign)[-_]?(out|off)", re.IGNORECASE)
_IN_SCRIPT: Final = re.compile(r"""["']?([\w$.-]{2,60})["']?\s*[:=]\s*["']$""")
_SHORTEST: Final = 6  # characters; a shorter value is found by chance


@dataclass(frozen=True, slots=True)
class Header:
    """A header that the site's own pages send.

    Attributes:
        name: In lower case.
        where: Where its value comes from.
        key: The name there: of the cookie, the item, the meta element, the field or the member.
        path: Of a member of JSON, the names that lead to it.
        prefix: What is before the value, such as `Bearer `.
        value: The value, if it is the same for everyone.
        url: The URL of the response, if it is from one.
    """

    name: str
    where: Where
    key: str = ""
    path: Sequence[str] = ()
    prefix: str = ""
    value: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class Auth:
    """How a site authenticates its users.

    Attributes:
        cookies: The names of its cookies.
        headers: The headers of its own requests.
        tokens: What its pages send in queries and bodies, as a header would be; by their names.
        me: The URL of what it returns about the user, if it does.
        logout: Whether a page has a link or a form to sign out.
        without_cookies: The origins of other hosts that may not be sent cookies.
        json_type: The media type with which pages send JSON.
    """

    cookies: Sequence[str] = ()
    headers: Sequence[Header] = ()
    tokens: Mapping[str, Header] = field(default_factory=dict[str, Header])
    me: str = ""
    logout: bool = False
    without_cookies: Sequence[str] = ()
    json_type: str = _JSON

    @property
    def secrets(self) -> Sequence[Header]:
        """The headers whose values a page has."""
        others = ("constant", "random", "unknown")
        return [each for each in self.headers if each.where not in others]

    @property
    def missing(self) -> Sequence[str]:
        """What the site's pages send from an unknown place, such as `the header x`."""
        headers = [f"the header {each.name}" for each in self.headers if each.where == "unknown"]
        return headers + [each for each, found in self.tokens.items() if found.where == "unknown"]


class Secrets:
    """Where the values in requests come from.

    Args:
        recording: What was recorded.
        samples: The requests.
    """

    def __init__(self, recording: Recording, samples: Sequence[Sample]) -> None:
        self.cookies = _cookies(recording)
        self.storage = dict(_storage(recording))
        self._pages = [_Page.read(each.page) for each in samples if each.page]
        self._responses = samples
        self.has_logout = any(page.has_logout for page in self._pages)

    def find(self, name: str, value: str) -> Header | None:
        """Return where a value comes from; None if nothing that a page can read has it."""
        readable = dict.fromkeys((value, unquote(value)))
        places = (self._places(name, each) for each in readable if len(each) >= _SHORTEST)
        return next(chain.from_iterable(places), None)

    def _places(self, name: str, value: str) -> Iterator[Header]:
        for key, cookie in self.cookies.items():
            if unquote(cookie) == value:
                yield Header(name, "cookie", key)
        for key, item in self.storage.items():
            if item == value:
                yield Header(name, "localStorage", key)
            for path in _paths_of(value, item):
                yield Header(name, "localStorage", key, path)
        for page in self._pages:
            yield from page.places(name, value)
        for sample in self._responses:
            if sample.value and sample.request.method == "GET":
                for path, found in walk(sample.value[0]):
                    if found == value and path:
                        yield Header(name, "response", path[-1], path, url=address_of(sample))


def find_auth(
    samples: Sequence[Sample],
    secrets: Secrets,
    replaced: Collection[str],
) -> Auth:
    """Return how a site authenticates its users.

    Args:
        samples: The requests.
        secrets: Where values come from.
        replaced: What the recording has in place of secrets.
    """
    headers: dict[str, Header] = {}
    for sample in samples:
        if sample.style == "page":
            continue
        for given, value in sample.request.headers:
            name = given.lower()
            if name == "accept" and value != _ANYTHING:
                headers.setdefault(name, Header(name, "constant", value=value))
            elif _OF_BROWSER.fullmatch(name):
                continue
            elif name not in headers:
                headers[name] = _header(name, value, secrets, replaced)
            elif headers[name].where == "constant" and headers[name].value != value:
                headers[name] = Header(name, "unknown")
    sent = {each for sample in samples for each in _sent_cookies(sample.request.headers)}
    return Auth(
        sorted(sent | secrets.cookies.keys()),
        [*headers.values()],
        me=_about_self(samples),
        logout=secrets.has_logout,
        without_cookies=_without_cookies(samples),
        json_type=_json_type(samples),
    )


def _json_type(samples: Sequence[Sample]) -> str:
    """Return the media type with which pages send JSON; JSON:API, for example, has its own."""
    sent = Counter(
        each.request.mime or "text/plain"  # as the browser sends a string
        for each in samples
        if each.request.body and each.style != "page" and not (each.is_form or each.has_other_body)
    )
    return next((mime for mime, _ in sent.most_common(1)), _JSON)


def _without_cookies(samples: Sequence[Sample]) -> Sequence[str]:
    """Return the origins that do not allow it; to send them cookies makes the browser refuse."""
    answered = [
        (each.origin, header(response.headers, "access-control-allow-credentials"))
        for each in samples
        if each.origin and (response := each.exchange.response) is not None
    ]
    allowing = {origin for origin, allows in answered if allows == "true"}
    return sorted({origin for origin, _ in answered} - allowing)


def _header(name: str, value: str, secrets: Secrets, replaced: Collection[str]) -> Header:
    scheme, separator, token = value.partition(" ")
    prefix = f"{scheme}{separator}" if separator and name == "authorization" else ""
    plain = token if prefix else value
    if (found := secrets.find(name, plain)) is not None:
        return Header(name, found.where, found.key, found.path, prefix, url=found.url)
    if _IDEMPOTENCY.fullmatch(name):
        return Header(name, "random")
    is_replaced = any(each in value for each in replaced)
    if is_replaced or _SECRET.fullmatch(name) or _OVERRIDE.fullmatch(name):
        return Header(name, "unknown", prefix=prefix)
    return Header(name, "constant", value=value)


def _about_self(samples: Sequence[Sample]) -> str:
    """Return the URL of what the site returns about the user; empty if there is none."""
    for pattern in _SELF:
        for sample in samples:
            is_object = bool(sample.value) and isinstance(sample.value[0], dict)
            if (
                (sample.style, sample.request.method) == ("rest", "GET")
                and sample.works
                and is_object
                and pattern.fullmatch(sample.path[-1].lower())
            ):
                return address_of(sample)
    return ""


def address_of(sample: Sample) -> str:
    """Return the URL of a request, without the page's own origin."""
    if sample.origin:
        return sample.request.url
    parts = urlsplit(sample.request.url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _cookies(recording: Recording) -> dict[str, str]:
    """Return the cookies that scripts can read."""
    found: dict[str, str] = {}
    hidden: set[str] = set()
    for state in (recording.storage_state, recording.storage_at_end):
        for cookie in (state or {}).get("cookies", ()):
            if cookie.get("httpOnly"):
                hidden.add(cookie["name"])
            else:
                found[cookie["name"]] = cookie["value"]
    for exchange in recording.exchanges:
        if exchange.response is None:
            continue
        for name, value in exchange.response.headers:
            if name.lower() == "set-cookie":
                for line in value.splitlines():
                    pair, _, attributes = line.partition(";")
                    key, _, text = pair.strip().partition("=")
                    if "httponly" in attributes.lower():
                        hidden.add(key)
                    else:
                        found[key] = text
    return {name: value for name, value in found.items() if name not in hidden}


def _sent_cookies(headers: Headers) -> Sequence[str]:
    try:
        return [*SimpleCookie(header(headers, "cookie") or "")]
    except CookieError:
        return []


def _storage(recording: Recording) -> Iterator[tuple[str, str]]:
    for state in (recording.storage_state, recording.storage_at_end):
        for origin in (state or {}).get("origins", ()):
            for item in origin.get("localStorage", ()):
                yield str(item["name"]), str(item["value"])


def _paths_of(value: str, text: str) -> Iterator[Sequence[str]]:
    if text[:1] != "{":
        return
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return
    for path, found in walk(held):
        if found == value:
            yield path


class _Page(MarkupReader):
    """What a page holds besides its text."""

    def __init__(self) -> None:
        super().__init__()
        self.metas: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        self.has_logout = False
        self._scripts: list[str] = []
        self._is_script = False

    @classmethod
    def read(cls, html: str) -> "_Page":
        page = cls()
        page.feed(html)
        page.close()
        return page

    def places(self, name: str, value: str) -> Iterator[Header]:
        """Yield where the page has a value."""
        for key, text in self.metas.items():
            if text == value:
                yield Header(name, "meta", key)
        for key, text in self.fields.items():
            if text == value:
                yield Header(name, "field", key)
        if (member := self._name_in_script(value)) is not None:
            yield Header(name, "script", member)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named: Mapping[str, Any] = dict(attrs)
        self._is_script = tag == "script"
        if tag == "meta" and named.get("name") and named.get("content"):
            self.metas[named["name"]] = named["content"]
        elif tag == "input" and named.get("name") and named.get("value"):
            self.fields[named["name"]] = named["value"]
        elif tag in ("a", "form") and _LOGOUT.search(
            named.get("href") or named.get("action") or ""
        ):
            self.has_logout = True

    def handle_endtag(self, tag: str) -> None:
        self._is_script &= tag != "script"

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self._scripts.append(data)

    def _name_in_script(self, value: str) -> str | None:
        """Return the name that a script of the page gives a value."""
        for text in self._scripts:
            before, found, _ = text.partition(value)
            if found and (named := _IN_SCRIPT.search(before[-80:])) is not None:
                return named[1]
        return None
