"""The encodings in which a text appears in URLs, JSON, HTML and headers."""

import base64
import html
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final
from urllib.parse import quote, quote_plus

Encoding = Callable[[str], str]

_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_UNICODE: Final = re.compile(r"\\u[0-9a-f]{4}")


def encodings_of(text: str) -> Sequence[Encoding]:
    """Return the encodings in which to look for a text; the first leaves it as it is.

    A short text in base64 would be found by chance.
    """
    return _ALL if len(text) >= 8 else _READABLE


def base64url(text: str) -> str:
    """Return it in base64 for URLs (RFC 4648, section 5), without padding."""
    return base64.urlsafe_b64encode(text.encode("utf-8", "replace")).decode().rstrip("=")


def _same(text: str) -> str:
    return text


# --- URLs. A cut text may have half a character, a lone surrogate. ---


def _percent(text: str) -> str:
    return quote(text, safe="", errors="surrogatepass")


def _path(text: str) -> str:
    return quote(text, errors="surrogatepass")


def _plus(text: str) -> str:
    return quote_plus(text, errors="surrogatepass")


def _uri_component(text: str) -> str:
    """Encode as JavaScript's `encodeURIComponent`."""
    return quote(text, safe="!'()*~", errors="surrogatepass")


def _form(text: str) -> str:
    """Encode as browsers do in forms, and `URLSearchParams`."""
    return quote_plus(text, safe="*", errors="surrogatepass").replace("~", "%7E")


def _twice(encode: Encoding, text: str) -> str:
    """Encode as a URL does that is a parameter of another URL."""
    return encode(encode(text))


def _lower(encode: Encoding, text: str) -> str:
    return _PERCENT.sub(lambda found: found[0].lower(), encode(text))


_UPPER: Final[Sequence[Encoding]] = (_percent, _path, _plus, _uri_component, _form)
_IN_URLS: Final[Sequence[Encoding]] = (*_UPPER, *(partial(_lower, encode) for encode in _UPPER))


# --- JSON, as the serializers of various languages write it ---


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


def _go(text: str) -> str:
    return _spelled(_readable(text), "&<>")


def _gson(text: str) -> str:
    return _spelled(_readable(text), "&<>='")


def _net(text: str) -> str:
    spelled = _spelled(_escaped(text).replace('\\"', "\\u0022"), "&<>+'`")
    return _UNICODE.sub(lambda found: f"\\u{found[0][2:].upper()}", spelled)


def _net_equals(text: str) -> str:
    return _net(text).replace("=", "\\u003D")


def _spelled(text: str, characters: str) -> str:
    for each in characters:
        text = text.replace(each, f"\\u{ord(each):04x}")
    return text


# --- HTML and headers ---


def _entities(text: str) -> str:
    return html.escape(text)


def _entity_at(text: str) -> str:
    return html.escape(text).replace("@", "&#64;")


def _hexadecimal_at(text: str) -> str:
    return html.escape(text).replace("@", "&#x40;")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _json_in(encode: Encoding, text: str) -> str:
    return encode(_readable(text))


_READABLE: Final[Sequence[Encoding]] = (
    _same,
    *_IN_URLS,
    *(partial(_json_in, encode) for encode in _IN_URLS),
    *(partial(_twice, encode) for encode in _IN_URLS),
    _readable,
    _escaped,
    _escaped_twice,
    _slashes,
    _unicode_at,
    _go,
    _gson,
    _net,
    _net_equals,
    _entities,
    _entity_at,
    _hexadecimal_at,
)
_ALL: Final[Sequence[Encoding]] = (*_READABLE, _base64, base64url)
