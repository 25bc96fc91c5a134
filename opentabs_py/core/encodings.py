"""The encodings in which a text appears in URLs, JSON, HTML and headers."""

import base64
import html
import json
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote, quote_plus


def encodings_of(text: str) -> Sequence[Callable[[str], str]]:
    """Return the encodings in which to look for a text; the first leaves it as it is.

    A short text in base64 would be found by chance.
    """
    return _ALL if len(text) >= 8 else _READABLE


def _same(text: str) -> str:
    return text


def _percent(text: str) -> str:
    return quote(text, safe="")


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]


def _escaped_twice(text: str) -> str:
    return _escaped(_escaped(text))


def _readable(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _slashes(text: str) -> str:
    return _readable(text).replace("/", "\\/")


def _unicode_at(text: str) -> str:
    return _escaped(text).replace("@", "\\u0040")


def _entities(text: str) -> str:
    return html.escape(text)


def _entity_at(text: str) -> str:
    return html.escape(text).replace("@", "&#64;")


def _hexadecimal_at(text: str) -> str:
    return html.escape(text).replace("@", "&#x40;")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def base64url(text: str) -> str:
    """Return it in base64 for URLs (RFC 4648, section 5), without padding."""
    return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


_READABLE: Final[Sequence[Callable[[str], str]]] = (
    _same,
    _percent,
    quote,
    quote_plus,
    _readable,
    _escaped,
    _escaped_twice,
    _slashes,
    _unicode_at,
    _entities,
    _entity_at,
    _hexadecimal_at,
)
_ALL: Final[Sequence[Callable[[str], str]]] = (*_READABLE, _base64, base64url)
