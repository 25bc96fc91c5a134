"""What is said about a value that does not match a pattern."""

from typing import Any

import pytest

from opentabs_py.core.schemas.checker import Checker

Json = dict[str, Any]

# As Zod writes them
EMAIL: Json = {
    "type": "string",
    "format": "email",
    "pattern": "^(?:[A-Za-z0-9_'+\\-]+\\.)*[A-Za-z0-9_'+\\-]*[A-Za-z0-9_+-]@"
    "(?:[A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
}
UUID: Json = {
    "type": "string",
    "format": "uuid",
    "pattern": "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-"
    "[0-9a-fA-F]{12}|00000000-0000-0000-0000-000000000000)$",
}
BASE64: Json = {
    "type": "string",
    "format": "base64",
    "pattern": "^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$",
}
LONG = f"^({'|'.join(f'color-{number}' for number in range(20))})$"


@pytest.mark.parametrize(("schema", "name"), [(EMAIL, "email"), (UUID, "uuid"), (BASE64, "base64")])
def test_a_format_is_named_in_place_of_its_long_pattern(schema: Json, name: str) -> None:
    assert Checker(schema).violations("me !") == [("", f'"me !" is not a valid "{name}"')]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"to": EMAIL}},
        {"properties": {"to": {"$ref": "#/$defs/email"}}, "$defs": {"email": EMAIL}},
        {"properties": {"to": {"allOf": [{"minLength": 1}, EMAIL]}}},
        {"properties": {"to": {"anyOf": [EMAIL, {"type": "null"}]}}},
        {"properties": {"to": {"$ref": "#/$defs/~1~0"}}, "$defs": {"/~": EMAIL}},
        {"properties": {"to": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"$id": "urn:x", **EMAIL}}},
    ],
)
def test_a_format_is_named_wherever_it_is_in_a_schema(schema: Json) -> None:
    assert Checker(schema).violations({"to": "me"}) == [("to", '"me" is not a valid "email"')]


def test_a_format_is_named_without_the_value_if_that_is_masked() -> None:
    checker = Checker(EMAIL, mask="the value")
    assert checker.violations("me") == [("", 'the value is not a valid "email"')]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^#[0-9a-f]{6}$", "format": "color"}, "red"),
        ({"pattern": LONG}, "red"),
        # Valid, but the pattern allows less
        ({"pattern": f"^({'x' * 60}|[a-z]+@example\\.com)$", "format": "email"}, "me@site.org"),
        ({"pattern": UUID["pattern"], "format": "uuid"}, "12345678-1234-0234-0234-123456789012"),
    ],
)
def test_a_pattern_is_quoted_if_no_format_explains_it(schema: Json, value: str) -> None:
    [(_, said)] = Checker(schema).violations(value)
    assert said.startswith(f'"{value}" does not match "')


def test_a_format_that_all_alternatives_have_is_named_once() -> None:
    schema: Json = {"anyOf": [EMAIL, {**EMAIL, "maxLength": 20}]}
    assert Checker(schema).violations("me") == [("", '"me" is not a valid "email"')]
