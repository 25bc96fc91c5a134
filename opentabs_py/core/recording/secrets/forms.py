"""Secrets that are recognized by their form, whatever holds them."""

import html
import re
from collections.abc import Iterator
from typing import Final, Literal

Kind = Literal[
    "authorization",
    "cookie",
    "CSRF token",
    "e-mail address",
    "JSON Web Token",
    "name",
    "phone number",
    "text",
    "token",
]
"""What a secret is."""

_AT: Final = r"(?:@|%40|&#0*64;|&#[xX]0*40;|\\u0040)"
_EMAIL: Final = re.compile(
    rf"(?<![\w.+%-])(?P<user>[\w.+-]{{1,64}}){_AT}(?P<host>(?:[\w-]{{1,63}}\.){{1,8}}(?P<top>[A-Za-z]{{2,24}}))\b"
)
_NOBODY: Final = "example.com"  # of documentation, and of what has been scrubbed
_FILES: Final = frozenset(
    """
    avif css gif html ico jpeg jpg js json map mjs png svg ts tsx webp woff
    """.split()  # noqa: SIM905
)
# What only begins like a token is matched too, so that its parts are not searched again.
_JWT: Final = re.compile(r"\beyJ[\w-]{5,}(?P<rest>\.[\w-]{4,}\.[\w-]*)?")
# Tokens that say what they are: GitHub, Slack, Stripe and OpenAI, AWS, Google.
_TOKEN: Final = re.compile(
    r"\b(?:gh[opsur]_\w{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,}|[spr]k[-_](?:live_|test_)?\w{16,}"
    r"|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,})"
)
_BEARER: Final = re.compile(r"\bbearer\s+(?P<token>[\w.~+/=-]{16,})", re.IGNORECASE)
_PHONE: Final = re.compile(
    r"(?<![\w.+/-])(?:\+\d{1,3}(?:[ .\-/]?\(?\d{1,5}\)?){2,6}"
    r"|\(\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}([ .-])\d{3}\1\d{4})(?![\w-])"
)
_PHONE_DIGITS: Final = range(7, 16)
_RANDOM: Final = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]{16,}")
_WORD_LIKE: Final = 16  # characters; a shorter word in letters of one case may be an ordinary word


def find_tokens(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield the tokens in a text, and what they are."""
    for found in _JWT.finditer(text):
        if found["rest"] is not None:
            yield found[0], "JSON Web Token"
    for found in _TOKEN.finditer(text):
        yield found[0], "token"
    for found in _BEARER.finditer(text):
        if looks_random(found["token"]):
            yield found["token"], "authorization"


def find_addresses(text: str) -> Iterator[tuple[str, Kind]]:
    """Yield the e-mail addresses and phone numbers in a text, and which of them they are."""
    for found in _EMAIL.finditer(text):
        if found["top"].lower() not in _FILES and found["host"].lower() != _NOBODY:
            yield f"{html.unescape(found['user'])}@{found['host']}", "e-mail address"
    for found in _PHONE.finditer(text):
        if may_be_phone(found[0]):
            yield found[0], "phone number"


def name_parts(name: str) -> list[str]:
    """Return the parts of a person's name that are long enough to be recognized elsewhere."""
    return re.findall(r"[^\W\d_]{3,}", name)


def may_be_phone(text: str) -> bool:
    """Return whether a text has as many digits as phone numbers have."""
    return sum(c.isdigit() for c in text) in _PHONE_DIGITS


def looks_random(text: str) -> bool:
    """Return whether a text looks like a token: long, without spaces, of letters and digits."""
    return _RANDOM.fullmatch(text) is not None


def is_distinct(text: str) -> bool:
    """Return whether a text is more than a word or number that may also appear elsewhere."""
    if text.isdigit():
        return len(text) >= 5
    if not text.replace("-", "").replace("_", "").isalnum():
        return True
    is_word = text.isalpha() and (text.islower() or text.istitle() or text.isupper())
    return len(text) >= _WORD_LIKE or (len(text) >= 6 and not is_word)
