"""What is secret by its form: addresses, numbers and tokens."""

import base64
import json
import re

import pytest

from opentabs_py.core.recording.secrets.forms import find_tokens
from tests.core.recording.scrubbing import answer, body, page, scrubbed, text


def test_the_same_address_is_the_same_person_in_every_encoding() -> None:
    [one] = scrubbed(
        answer(
            b"ada@lovelace.org ada%40lovelace.org ada&#64;lovelace.org ada\\u0040lovelace.org",
            mime="text/plain",
        )
    )
    assert text(one) == (
        "person1@example.com person1%40example.com person1&#64;example.com "
        "person1\\u0040example.com"
    )


@pytest.mark.parametrize("kept", ["icon@2x.png", "a@b", "lodash@4.17.21", "x@example.com"])
def test_what_only_looks_like_an_address_is_kept(kept: str) -> None:
    assert page(f"<p>{kept}") == f"<p>{kept}"


@pytest.mark.parametrize(
    "number", ["+44 20 7946 0958", "(415) 555-2671", "415-555-2671", "+14155552671", "415.555.2671"]
)
def test_phone_numbers_keep_their_form(number: str) -> None:
    after = page(f"<p>{number}</p>")
    assert number not in after
    assert re.sub(r"\d", "0", after) == re.sub(r"\d", "0", f"<p>{number}</p>")


@pytest.mark.parametrize(
    "kept", ["2026-11-23 10:00:00", "1795474025183", "12-345-6789", "+1 2", "+1 2 3"]
)
def test_what_only_looks_like_a_phone_number_is_kept(kept: str) -> None:
    assert page(f"<p>{kept}</p>") == f"<p>{kept}</p>"


def test_no_two_numbers_become_the_same() -> None:
    numbers = {"phone": "+14155552671", "mobile": "+14155552672", "pin": "1234", "passcode": "5678"}
    [one] = scrubbed(answer(numbers))
    assert set(body(one).values()).isdisjoint(numbers.values())
    assert len(set(body(one).values())) == len(numbers)


def test_hundreds_of_numbers_stay_different_numbers_of_as_many_digits() -> None:
    pins = [{"pin": 1000 + i, "otp": 1_234_000 + i} for i in range(300)]
    [one] = scrubbed(answer(pins))
    after = body(one)
    assert len({each["pin"] for each in after}) == len({each["otp"] for each in after}) == 300
    assert {(len(str(each["pin"])), len(str(each["otp"]))) for each in after} == {(4, 7)}


def test_a_number_that_is_called_a_phone_is_replaced_by_a_number() -> None:
    [one] = scrubbed(answer({"mobile": 4479460958, "phone": "12", "other": 4479460958}))
    after = body(one)
    assert isinstance(after["mobile"], int)
    assert after["mobile"] != 4479460958
    assert after["other"] == after["mobile"]
    assert after["phone"] == "12"


def test_a_short_number_that_is_secret_is_replaced_where_it_is_held() -> None:
    [one] = scrubbed(answer({"pin": 1234, "year": 1234, "otp": -123456}))
    after = body(one)
    assert after["year"] == 1234
    assert after["pin"] != 1234
    assert len(str(after["pin"])) == 4
    assert after["otp"] != -123456
    assert isinstance(after["otp"], int)


def test_a_token_is_replaced_by_one_that_does_not_expire() -> None:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    token = f"{part({'alg': 'HS256'})}.{part({'name': 'Ada Lovelace', 'exp': 1})}.c2lnbmF0dXJl"
    [one] = scrubbed(answer({"t": token, "say": "Hello Ada"}))

    after = body(one)
    header, claims, signature = after["t"].split(".")
    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none", "typ": "JWT"}
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["exp"] > 4_000_000_000
    assert signature == ""
    assert after["say"] == "Hello Robin"  # the claims name the user


def test_a_token_whose_claims_cannot_be_read_is_replaced() -> None:
    [one] = scrubbed(answer({"t": "eyJhbGciOi.!!!!.x", "u": "eyJhbGciOiJ.aaaaa.x"}))
    assert "aaaaa" not in text(one)


@pytest.mark.parametrize(
    "before",
    [
        "",
        "session-",
        "a.",
        "-eyJ",
        "eyJ.",
        "eyJhbGciOi.abc.",
        "eyJhbGciOiJIUzI1NiJ9 ",
        "-eyJ" * 9 + ".",
    ],
)
def test_a_token_is_found_after_what_resembles_one(before: str) -> None:
    [one] = scrubbed(answer({"t": f"{before}eyJhbGciOi.c3RvbGVu.c2ln"}))
    assert "c3RvbGVu" not in text(one)


def test_what_only_begins_like_a_token_is_not_searched_from_each_of_its_parts() -> None:
    parts = "-eyJ" * 200_000  # which took longer than a test may
    assert not [*find_tokens(parts)]


@pytest.mark.parametrize(
    "token",
    [
        "ghp_" + "a1" * 18,
        "xoxb-1234567890-abc",
        "sk-" + "Ab1" * 8,
        "AKIA" + "A1" * 8,
        "AIza" + "x" * 35,
    ],
)
def test_tokens_that_say_what_they_are_are_replaced_even_in_scripts(token: str) -> None:
    script = f'const key = "{token}"; // by ada@lovelace.org'.encode()
    [one] = scrubbed(answer(script, mime="text/javascript", kind="script"))
    assert text(one) == 'const key = "token-1"; // by ada@lovelace.org'


def test_a_script_loses_what_is_secret_elsewhere() -> None:
    one, _ = scrubbed(
        answer(b'f("s3cr3t_v4lue")', mime="text/javascript", kind="script"),
        answer({"secret": "s3cr3t_v4lue"}),
    )
    assert text(one) == 'f("token-1")'
