"""Excerpts of values are short, and do not contain their secrets."""

import base64
import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.excerpts import LONGEST, LONGEST_NAME, MASK, Excerpts, is_secret_name

SECRET = "s3cr3t-of-a-setting"


def excerpt(value: object, *secrets: str, longest: int = LONGEST) -> Any:
    return json.loads(Excerpts(lambda: secrets, longest=longest).of_value(value))


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "user_password",
        "newPasswd",
        "client-secret",
        "token",
        "accessToken",
        "Authorization",
        "Set-Cookie",
        "api_key",
        "apiKey",
        "X-API-Key",
        "private_key",
        "credentials",
        "csrfmiddlewaretoken",
        "session_id",
        "otp",
        "PIN",
        "pass",
    ],
)
def test_what_has_the_name_of_a_secret_is_masked_wherever_it_is(name: str) -> None:
    assert is_secret_name(name)
    value = [{"a": {name: "x" * 10, "b": 1}}]
    assert excerpt(value) == [{"a": {name: MASK, "b": 1}}]
    assert excerpt({name: ["x", {"y": "z"}]}) == {name: MASK}


@pytest.mark.parametrize(
    "name", ["author", "passage", "bypass", "compass", "pinned", "key", "name", "spin", "shipping"]
)
def test_another_name_is_not_of_a_secret(name: str) -> None:
    assert not is_secret_name(name)
    assert excerpt({name: "x" * 10}) == {name: "x" * 10}


def test_of_a_name_only_the_beginning_is_read() -> None:
    long = "x" * LONGEST_NAME
    assert is_secret_name(f"token{long}")
    assert not is_secret_name(f"{long}token")
    assert excerpt({f"max_tokens{long}": 500}) == {f"max_tokens{long}": MASK}


@pytest.mark.parametrize("value", [{"hasPassword": True, "token": None}, {"max_tokens": 500}])
def test_what_cannot_be_a_secret_is_kept(value: object) -> None:
    assert excerpt(value) == value


def test_a_number_may_be_a_secret() -> None:
    assert excerpt({"pin": 1234}) == {"pin": MASK}


@pytest.mark.parametrize("named", ["name", "key"])
def test_the_value_of_a_pair_with_the_name_of_a_secret_is_masked(named: str) -> None:
    headers = [{named: "Authorization", "value": "x"}, {named: "Accept", "value": "y"}]
    assert excerpt(headers) == [{named: "Authorization", "value": MASK}, headers[1]]


def test_a_known_secret_is_masked_in_texts_and_names() -> None:
    value = {"url": f"https://x/{SECRET}/y", SECRET: [SECRET]}
    assert excerpt(value, SECRET) == {"url": f"https://x/{MASK}/y", MASK: [MASK]}


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: quote(text, safe=""),
        lambda text: json.dumps(text)[1:-1],
        lambda text: base64.b64encode(text.encode()).decode(),
    ],
)
def test_a_known_secret_is_masked_in_urls_json_and_base64(encode: Callable[[str], str]) -> None:
    secret = 'k+y/"q\\z=='
    assert excerpt(f"({encode(secret)})", secret) == f"({MASK})"


def test_of_two_known_secrets_the_longer_one_is_masked_whole() -> None:
    assert excerpt(f"{SECRET}-more", SECRET, f"{SECRET}-more") == MASK


def test_a_short_setting_is_not_a_secret() -> None:
    assert excerpt("a general room", "a", "room") == "a general room"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("curl -H 'Authorization: Bearer abcdefgh.ijk'", f"curl -H 'Authorization: Bearer {MASK}'"),
        ("https://ann:pw@host/path", f"https://{MASK}@host/path"),
        ("/p?a=1&access_token=abc&b=2", f"/p?a=1&access_token={MASK}&b=2"),
        ("/p?new-password-again=abc&b=2", f"/p?new-password-again={MASK}&b=2"),
        ("https://host/@ann?page=2", "https://host/@ann?page=2"),
    ],
)
def test_a_text_is_kept_without_the_secrets_that_it_shows(text: str, kept: str) -> None:
    assert excerpt(text) == kept
    assert Excerpts().of_text(text) == kept


def test_the_end_of_a_long_text_is_left_out() -> None:
    kept = Excerpts().of_value("x" * 1_000_000)
    assert LONGEST * 0.99 < len(kept) <= LONGEST
    assert kept.endswith("…")


@pytest.mark.parametrize("value", [["x"] * 1_000_000, {str(n): n for n in range(1_000_000)}])
def test_of_a_large_value_only_the_beginning_is_looked_at(value: Any) -> None:
    text = Excerpts().of_value(value)
    assert LONGEST / 3 < len(text) <= LONGEST
    assert "…" in text[-12:]


def test_a_deep_value_is_cut() -> None:
    value: Any = "bottom"
    for _ in range(5000):
        value = [value]
    assert "…" in Excerpts().of_value(value)


def test_a_value_of_another_type_is_kept_as_json_or_as_python_shows_it() -> None:
    @dataclass
    class Output:
        content: tuple[str, ...]
        password: str

    assert excerpt(Output(("a",), "b")) == {"content": ["a"], "password": MASK}
    assert excerpt({1: object}) == {"1": repr(object)}


def test_a_lone_surrogate_becomes_a_question_mark() -> None:
    assert excerpt("a\ud800b") == "a?b"


@given(
    before=st.text(alphabet=string.ascii_letters, max_size=60),
    after=st.text(alphabet=string.ascii_letters, max_size=60),
    longest=st.integers(0, 80),
)
def test_no_part_of_a_known_secret_is_left_at_the_end(
    before: str, after: str, longest: int
) -> None:
    secret = "0123456789"
    text = Excerpts(lambda: [secret], longest=longest).of_text(before + secret + after)
    assert not any(digit in text for digit in secret)
