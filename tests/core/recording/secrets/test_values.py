"""Secrets in strings, and in JSON that contains others."""

import base64
import json
from typing import Any
from urllib.parse import quote

import pytest

from opentabs_py.core.recording.scrub_rules import ScrubRules
from tests.core.recording.secrets.finding import SECRET, TOKEN, answered, asked, found


def test_of_an_object_under_a_secrets_name_only_what_is_the_secret_is_one() -> None:
    token = {"value": SECRET, "kind": "Personal9Token", "uses": 123456, "current": True}
    assert found(answered({"token": token})) == {SECRET: ("token", "value", True)}
    assert found(answered({"token": [{"Plain_Text": SECRET}]})).keys() == {SECRET}
    assert found(answered({"pin": {"old": 4729}})) == {"4729": ("token", "old", False)}
    assert found(answered({"token": token}), ScrubRules(keep=("value",))) == {}
    assert found(answered({"title": {"value": SECRET}})) == {}


@pytest.mark.parametrize("value", [["+1 555 123 4567"], [5551234567]])
def test_a_number_in_a_list_of_phones_is_a_phone_number(value: Any) -> None:
    assert [kind for kind, _, _ in found(answered({"phones": value})).values()] == ["phone number"]


def test_json_that_is_not_percent_encoded_may_have_percent_signs() -> None:
    assert [*found(answered({"a": '{"token": "k3y%41Of%22"}'}))] == ["k3y%41Of%22"]


def test_a_string_that_only_begins_like_json_is_searched_for_forms() -> None:
    expected = {"ada@lovelace.org": ("e-mail address", "text", True)}
    assert found(answered({"say": "[hello ada@lovelace.org"})) == expected
    assert found(answered(["[" * 100_000, "{ada@lovelace.org}"])) == expected


def test_secrets_are_found_beside_an_integer_that_python_does_not_read() -> None:
    text = f'{{"n": {"9" * 5000}, "a": {{"token": "{SECRET}"}}}}'
    assert found(answered(text.encode())).keys() == {SECRET}
    assert found(answered({"text": text})).keys() == {SECRET}


def test_json_that_is_too_deep_is_secret_too() -> None:
    deep = '{"a":' * 99_999
    token = f"eyJhbGciOiJub25lIn0.{base64.urlsafe_b64encode(deep.encode()).decode()}.x"
    given = asked(
        headers=[("Cookie", f"sid={deep}"), ("X-A", token), ("X-B", deep)],
        body=f"data: {deep}".encode(),
    )
    assert [kind for kind, _, _ in found(given).values()] == ["cookie", "JSON Web Token"]


def test_lists_within_each_other_are_searched_to_some_depth() -> None:
    deep = json.dumps({"token": SECRET})
    assert found(answered(f"{'[' * 50}{deep}{']' * 50}".encode())) == {SECRET: TOKEN}
    assert found(answered(f"{'[' * 450}{deep}{']' * 450}".encode())) == {}


@pytest.mark.parametrize("length", range(3, 9))
def test_claims_of_any_length_say_who_is_signed_in(length: int) -> None:
    name = "Abcdefgh"[:length]
    claims = base64.urlsafe_b64encode(json.dumps({"name": name}).encode()).decode().rstrip("=")
    assert name in found(answered({"t": f"eyJhbGciOiJub25lIn0.{claims}.x"}))


@pytest.mark.parametrize(
    ("value", "is_secret"),
    [
        ("abcdef1234567890", True),
        ("eW91/c2Vl+dGhpcw12==", True),
        ("abcdef123456789", False),  # too short
        ("abcdefghijklmnopq", False),  # no digit
        ("2026-01-31 10:00:00", False),
        ("12345678901234567", False),  # a number's name says whether it is one
    ],
)
def test_in_an_object_of_a_secret_name_what_looks_random_is_secret(
    value: str, is_secret: bool
) -> None:
    assert (value in found(answered({"token": {"access": value}}))) is is_secret


@pytest.mark.parametrize(
    ("number", "is_found"),
    [
        (5551234567, True),
        ("555 1234", True),
        ("555 123", False),
        ("+49 30 1234567890123", False),  # more than any number has
    ],
)
def test_a_phone_number_has_7_to_15_digits(number: Any, is_found: bool) -> None:
    expected = {str(number): ("phone number", "mobilePhone", True)}
    assert found(answered({"mobilePhone": number})) == (expected if is_found else {})


def test_an_address_of_few_letters_is_secret_everywhere() -> None:
    assert found(answered({"by": "a@b.io"})) == {"a@b.io": ("e-mail address", "text", True)}


@pytest.mark.parametrize("text", ["Bearer {}", "Authorization: bearer {}", 'f("Bearer {}")'])
def test_what_follows_bearer_is_a_secret_if_it_looks_like_one(text: str) -> None:
    token = "Zx9Kq2Lm7Pw4Tn8Rv1"
    expected = {token: ("authorization", "text", True)}
    assert found(answered([text.format(token)])) == expected
    assert found(answered([text.format("authentication-by-token")])) == {}


def test_a_scheme_is_not_part_of_a_token() -> None:
    expected = {SECRET: ("authorization", "Authorization", True)}
    assert found(answered({"Authorization": f"Bearer {SECRET}"})) == expected


@pytest.mark.parametrize(
    "program",
    [
        "a?token=read():b",
        "f(a)&token=b.c2.value2()",
        'url + "&token=" + token1',
        "url + `&token=${token1}`",
        "a();token=b1.c",
        "&page_token=k3yOfSomeone9",
        "token = read1",
        "tokenUrl = '/api/token'",
        "if (token == 'k3yOfSomeone9') {}",
        "token = 'an old key of 2 people'",
    ],
)
def test_what_a_program_calls_a_token_is_not_a_parameter(program: str) -> None:
    assert found(answered(program.encode(), mime="text/plain")) == {}


@pytest.mark.parametrize("unit", ["[\n", '[{"a":\n', "=[[", '["a"\n,'])
def test_lines_that_only_begin_json_are_not_read_again_from_each(unit: str) -> None:
    # It would take longer than a test may.
    assert found(answered(unit.encode() * 1_000_000, mime="text/plain")) == {}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_parameter_that_is_json_in_base64_with_a_secret_is_one(
    encode: Any, known: bool, indent: int | None
) -> None:
    state = json.dumps({"redirect": "/ÿ?>", "token": SECRET}, indent=indent, ensure_ascii=False)
    encoded = encode(state.encode()).decode()
    for value in (encoded, encoded.rstrip("=")):
        url = f"https://site.test/?{'token=' + SECRET + '&' if known else ''}state={quote(value)}"
        assert found(asked(url))[value] == ("token", "state", True)


@pytest.mark.parametrize(
    "state", [b'{"redirect": "/inbox?page=12"}', b'{"token": "k3yOfSomeone9"', b'{"t": "\xff"}']
)
def test_a_parameter_in_base64_without_a_secret_or_json_is_kept(state: bytes) -> None:
    assert found(asked(f"https://site.test/?state={base64.b64encode(state).decode()}")) == {}
