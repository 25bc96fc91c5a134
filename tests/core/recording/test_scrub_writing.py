"""A secret is replaced however it is written."""

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from tests.core.recording.scrubbing import answer, scrubbed, text

SECRET = 'k3y/é"<@Ω'
JSON = json.dumps(SECRET)[1:-1]
READABLE = json.dumps(SECRET, ensure_ascii=False)[1:-1]


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        JSON,
        json.dumps(JSON)[1:-1],
        READABLE,
        READABLE.replace("/", "\\/"),
        html.escape(SECRET),
        html.escape(SECRET).replace("@", "&#64;"),
        html.escape(SECRET).replace("@", "&#x40;"),
        JSON.replace("@", "\\u0040"),
    ],
)
def test_a_secret_is_replaced_however_it_is_written(written: str) -> None:
    _, other = scrubbed(
        answer({"token": SECRET}), answer(f"is ({written})".encode(), mime="text/plain")
    )
    assert text(other) == "is (token-1)"


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def base64url_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("encode", [base64_of, base64url_of])
def test_a_secret_in_base64_is_replaced_in_base64(encode: Callable[[str], str]) -> None:
    _, other = scrubbed(
        answer({"token": SECRET}), answer(f"is ({encode(SECRET)})".encode(), mime="text/plain")
    )
    assert text(other) == f"is ({encode('token-1')})"
