"""The schema of a page without the patterns that would take long to compile."""

from typing import Any

import pytest

from opentabs_py.core.schemas.checker import Checker, check_schema
from opentabs_py.core.schemas.patterns import (
    MOST_CHARACTERS,
    with_patterns,
    with_small_patterns,
    with_supported_patterns,
)

Json = dict[str, Any]
DATE = r"^\d{4}-\d{2}-\d{2}$"
EMAIL = (
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[a-z]{2,}$"
)
LARGE = r"(?=a)\p{L}{200}"
ONLY_JAVASCRIPT = "^[^]$"


def kept(*patterns: str) -> list[str]:
    """Return which of several patterns are checked."""
    schema: Json = {"properties": {f"p{i}": {"pattern": each} for i, each in enumerate(patterns)}}
    found: Any = with_small_patterns(schema)["properties"]
    return [part["pattern"] for part in found.values() if part]


def test_small_patterns_are_checked_and_the_others_left_to_the_page() -> None:
    assert kept(DATE, LARGE, EMAIL, ONLY_JAVASCRIPT, DATE) == [DATE, EMAIL, DATE]


def test_no_more_patterns_are_checked_than_are_quick_to_compile() -> None:
    many = [f"^{number:03}$" for number in range(MOST_CHARACTERS)]
    assert len(kept(*many)) == MOST_CHARACTERS // len(many[0])


def test_members_whose_names_match_no_pattern_that_is_left_are_allowed() -> None:
    schema: Json = {
        "properties": {"a": {"type": "null"}},
        "patternProperties": {DATE: {"type": "null"}, LARGE: {"type": "null"}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    assert Checker(schema).violations({"b": 1}) != []
    left = with_small_patterns(schema)
    assert Checker(left).violations({"b": 1, "2026-01-01": 1}) == []
    assert Checker(left).violations({"a": 1}) != []


def test_escaped_angle_brackets_are_characters_as_in_javascript() -> None:
    schema: Json = {
        "properties": {"tag": {"pattern": r"^\<b\>$"}, "other": {"pattern": r"^[\<\>]\\<\d$"}},
        "patternProperties": {r"^\<": {"type": "null"}},
    }
    check_schema(schema)
    for checked in (schema, with_small_patterns(schema)):
        checker = Checker(checked)
        assert checker.violations({"tag": "<b>", "other": r"<\<1", "<x": None}) == []
        assert sorted(checker.violations({"tag": "b", "other": "<1", "<x": 1})) == [
            ("<x", '1 is not of type "null"'),
            ("other", r'"<1" does not match "^[<>]\\<\d$"'),
            ("tag", r'"b" does not match "^<b>$"'),
        ]


def test_patterns_that_only_javascript_supports_are_left_out() -> None:
    schema: Json = {
        "properties": {"a": {"type": "string", "pattern": ONLY_JAVASCRIPT}, "b": {"pattern": LARGE}}
    }
    assert with_supported_patterns(schema) == {
        "properties": {"a": {"type": "string"}, "b": {"pattern": LARGE}}
    }


def test_a_schema_without_large_patterns_stays_as_it_is() -> None:
    schema: Json = {"patternProperties": {DATE: {"items": [{"pattern": EMAIL}, True]}}}
    assert with_small_patterns(schema) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {"const": {"pattern": "x"}},
        {"enum": [{"pattern": "x", "patternProperties": {"x": 1}}]},
        {"properties": {"pattern": {"type": "string"}, "patternProperties": {"const": {}}}},
        {"$defs": {"const": {"default": {"pattern": "x"}}}},
        {"pattern": 7},
    ],
)
def test_what_only_looks_like_a_pattern_is_kept(schema: Json) -> None:
    assert with_patterns(schema, lambda _: False) == schema


def test_a_property_may_be_named_like_a_keyword() -> None:
    schema: Json = {"properties": {"const": {"pattern": "x"}}}
    assert with_patterns(schema, lambda _: False) == {"properties": {"const": {}}}
