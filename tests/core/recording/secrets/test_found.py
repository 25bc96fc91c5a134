"""Which texts are secrets, and which only where they are held."""

import json
from typing import Any

import pytest

from opentabs_py.core.recording.scrub_rules import ScrubRules
from tests.core.recording.secrets.finding import ME, SECRET, URL, answered, asked, found, stored


@pytest.mark.parametrize(("name", "expected"), [("Al", False), ("Ada", True), ("jo5", True)])
def test_a_name_of_two_letters_is_secret_only_where_it_is_held(name: str, expected: bool) -> None:
    own = {name: ("name", "name", expected)}
    assert found(answered({"name": name}, url=ME)) == own


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (json.dumps(SECRET), "authToken"),
        (json.dumps([SECRET]), "authToken"),
        (json.dumps({"value": {"a": [SECRET]}, "expires": 7, "is_valid": True}), "a"),
        (json.dumps({"to": "2026-01-31T10:00:00.5Z", "at": URL, "is": SECRET}), "is"),
        (json.dumps({"day": "2026-01-31", "at": "https://api.site.test/a?b", "is": SECRET}), "is"),
        (json.dumps(json.dumps({"is": SECRET})), "is"),
    ],
)
def test_of_json_that_is_secret_each_string_is(text: str, where: str) -> None:
    storage = [{"name": "authToken", "value": text}]
    state = stored(origins=[{"origin": URL, "localStorage": storage}])
    assert found(state) == {SECRET: ("authorization", where, True)}


def test_in_json_that_is_secret_an_address_with_a_password_is_secret() -> None:
    address = f"https://me:{SECRET}@site.test/"
    secrets = found(asked(headers=[("Cookie", f"at={json.dumps([address])}")]))
    assert address in secrets


def test_in_json_that_is_secret_what_the_rules_keep_is_kept() -> None:
    keeping = ScrubRules(keep=("is",))
    assert found(asked(headers=[("Cookie", f"at={json.dumps({'is': SECRET})}")]), keeping) == {}


@pytest.mark.parametrize("value", [True, None, 1.5, 1234.5, "", "abc", "Undefined", "NULL"])
def test_what_is_short_or_says_nothing_is_not_a_secret(value: Any) -> None:
    assert found(answered({"token": value})) == {}


@pytest.mark.parametrize("mode", ["include", "omit", "same-origin"])
def test_how_a_page_sends_its_credentials_is_not_a_secret(mode: str) -> None:
    assert found(answered({"credentials": mode})) == {}


@pytest.mark.parametrize(
    ("value", "is_distinct"),
    [
        ("abc123", True),
        ("aBcDeF", True),
        ("ab-c!", True),
        ("12345", True),
        ("abcdefghijklmnop", True),
        ("abc12", False),
        ("ab-c", False),
        ("ab_c", False),
        ("abcdef", False),
        ("Abcdef", False),
        ("ABCDEF", False),
        ("abc-def", True),
        ("1234", False),
        ("abcdefghijklmno", False),
    ],
)
def test_a_word_is_secret_only_where_it_is_held(value: str, is_distinct: bool) -> None:
    assert found(answered({"token": value})) == {value: ("token", "token", is_distinct)}


def test_what_users_keep_is_not_a_secret_and_what_they_add_is() -> None:
    rules = ScrubRules(members=("room*",), keep=("token", "about", "k3pt"))
    given = {"token": SECRET, "About": {"pin": SECRET}, "roomKey": "a1b2c3", "room2": "k3pt"}
    secrets = found(answered(given), rules)
    assert secrets == {"a1b2c3": ("token", "roomKey", True)}
