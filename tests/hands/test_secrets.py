"""Secrets are hidden from agents, in whatever form they come back."""

import json
import re
from urllib.parse import quote, quote_plus

import pytest

from opentabs_py.errors import ToolError
from opentabs_py.hands.secrets import Secrets

VALUE = 'p@ss w!"rd\\é/'


@pytest.mark.parametrize(
    "shown",
    [
        VALUE,
        quote(VALUE, safe=""),
        quote(VALUE),
        quote_plus(VALUE),
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
    ],
)
def test_a_secret_is_hidden_in_every_encoding(shown: str) -> None:
    assert Secrets({"PW": VALUE}).mask(f"a={shown}&b") == "a=<secret PW>&b"


KEY = "-----BEGIN KEY-----\nMIIBab\n\tcdef==\n-----END KEY-----\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("correct  horse\tstaple", "correct horse staple"),
        (" lead trail ", "lead trail"),
        (KEY, " ".join(KEY.split())),
        (KEY, KEY.replace("\n", "")),
        (KEY, KEY.replace("\n", "\r\n")),
        (KEY, quote_plus(KEY.replace("\n", "\r\n"))),
    ],
)
def test_a_secret_is_hidden_however_its_whitespace_is_shown(value: str, shown: str) -> None:
    masked = Secrets({"PW": value}).mask(f"a{shown}b")
    assert re.fullmatch(r"a\s*<secret PW>\s*b", masked)


def test_a_secret_of_nothing_but_whitespace_hides_nothing() -> None:
    assert Secrets({"PW": " \n"}).mask("a \n b") == "a \n b"


def test_of_two_secrets_that_begin_alike_the_longer_is_hidden_whole() -> None:
    secrets = Secrets({"SHORT": "hunter", "LONG": "hunter2"})
    assert secrets.mask("hunter2 hunter") == "<secret LONG> <secret SHORT>"


def test_the_name_of_a_secret_is_not_a_value_of_another() -> None:
    secrets = Secrets({"A": "secret", "B": "A"})
    assert secrets.mask("secret A") == "<secret A> <secret B>"


def test_without_secrets_nothing_is_hidden() -> None:
    assert Secrets({}).mask("text") == "text"


def test_a_value_that_is_not_unicode_is_hidden_where_it_can_appear() -> None:
    assert Secrets({"A": "\udcff1"}).mask("\udcff1") == "<secret A>"


BOUND = Secrets({"PW": VALUE}, {"PW": ["https://*.shop.example/*", "https://pay.example/*"]})


@pytest.mark.parametrize("url", ["https://shop.example/", "https://www.shop.example/login?a=b"])
def test_a_secret_may_be_typed_in_the_pages_that_are_named(url: str) -> None:
    assert BOUND.value("PW", url) == VALUE


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("https://shop.example.evil.example/", "shop.example.evil.example"),
        ("http://shop.example/", "shop.example"),
        ("https://shop.example@evil.example/", "evil.example"),
        ("about:blank", "about:blank"),
        ("", "an empty page"),
    ],
)
def test_a_secret_may_not_be_typed_elsewhere(url: str, where: str) -> None:
    with pytest.raises(ToolError) as caught:
        BOUND.value("PW", url)
    assert caught.value.detail.code == "SECRET_NOT_ALLOWED"
    message = str(caught.value)
    assert "only on https://*.shop.example/*, https://pay.example/*, and this field" in message
    assert where in message
    assert VALUE not in message


def test_a_secret_for_every_page_may_be_typed_where_there_is_no_site() -> None:
    assert Secrets({"PW": VALUE}, {"PW": ()}).value("PW", "about:blank") == VALUE
