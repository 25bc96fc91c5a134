"""The arguments of a call, checked against its tool's input schema."""

import json
import re
from datetime import UTC, datetime
from math import inf, nan
from typing import Any

import pytest

from opentabs_py.core.arguments import ArgumentReader, check_names, is_closed
from opentabs_py.errors import CallRefusedError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "cursor": {"type": "string"},
        "limit": {"$ref": "#/$defs/limit"},
        "parent": {"type": ["string", "null"]},
    },
    "required": ["text"],
    "$defs": {"limit": {"type": "integer", "minimum": 1}},
}


def read(arguments: dict[str, Any], *, limit: int = 1000, **more: Any) -> dict[str, Any]:
    return ArgumentReader("chat_list", {**SCHEMA, **more}, limit=limit).read(arguments)


def refusal(arguments: dict[str, Any], *, limit: int = 1000, **more: Any) -> str:
    with pytest.raises(CallRefusedError) as caught:
        read(arguments, limit=limit, **more)
    return str(caught.value)


def test_arguments_that_fit_are_read_as_they_are() -> None:
    arguments = {"text": "hi", "cursor": "a", "limit": 5, "parent": None}
    assert read(arguments) == arguments


def test_a_misspelled_argument_is_refused_with_the_closest_name() -> None:
    said = refusal({"text": "hi", "curser": "a"})
    assert "at curser: there is no such argument (did you mean 'cursor'?)" in said


def test_an_unknown_argument_is_refused_with_the_known_names() -> None:
    said = refusal({"text": "hi", "zzz": 1})
    assert "the tool takes cursor, limit, parent, text" in said


def test_an_unknown_argument_hides_no_other_violation() -> None:
    said = refusal({"curser": "a", "limit": 0})
    assert "at curser" in said
    assert "at limit: 0 is less than the minimum of 1" in said
    assert '"text" is a required property' in said


def test_a_refusal_names_the_tool() -> None:
    assert refusal({}).startswith("The arguments of chat_list do not match")
    assert refusal({"text": object()}).startswith("The arguments of chat_list do not match")
    assert refusal({"text": "x" * 100}, limit=100).startswith("The arguments of chat_list are ")


def test_at_most_two_similar_names_are_suggested() -> None:
    said = refusal({"page0": 1}, properties={f"page{n}": {} for n in "123"}, required=[])
    assert re.search(r"\(did you mean 'page\d' or 'page\d'\?\)", said)


@pytest.mark.parametrize(("count", "end"), [(20, "x19."), (21, "x19, ….")])
def test_only_the_first_names_of_many_are_listed(count: int, end: str) -> None:
    names: dict[str, Any] = {f"x{n:02}": {} for n in range(count)}
    said = refusal({"zzz": 1}, properties=names, required=[])
    assert f"the tool takes x00, x01, {', '.join(f'x{n:02}' for n in range(2, 19))}, {end}" in said


def test_a_tool_without_arguments_says_so() -> None:
    said = refusal({"x": 1}, properties={}, required=[])
    assert "at x: there is no such argument; the tool takes no arguments" in said


def test_of_a_thousand_unknown_arguments_a_few_are_named() -> None:
    said = refusal({"text": "hi", **{f"x{n}": n for n in range(1000)}}, limit=100_000)
    assert said.count("there is no such argument") == 5


@pytest.mark.parametrize(
    "more",
    [
        {"additionalProperties": True},
        {"additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^x": {}}},
        {"patternProperties": {"^x": {}}, "additionalProperties": False},
        {"allOf": [{"properties": {"x": {}}}]},
        {"unevaluatedProperties": True},
    ],
)
def test_an_argument_that_the_schema_allows_by_itself_is_read(more: dict[str, Any]) -> None:
    assert read({"text": "hi", "x": 1}, **more) == {"text": "hi", "x": 1}


@pytest.mark.parametrize("more", [{}, {"additionalProperties": False}])
def test_a_schema_that_lists_its_arguments_is_closed(more: dict[str, Any]) -> None:
    assert is_closed({"type": "object", "properties": {"text": {}}, **more})


def test_a_schema_without_properties_accepts_any_argument() -> None:
    assert ArgumentReader("any", {"type": "object"}, limit=100).read({"a": 1}) == {"a": 1}


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "allOf": [{}]}])
def test_a_schema_that_declares_nothing_is_open(schema: dict[str, Any]) -> None:
    assert not is_closed(schema)


def test_null_for_an_optional_argument_that_cannot_be_null_counts_as_omitted() -> None:
    given = {"text": "hi", "cursor": None, "limit": None, "parent": None}
    assert read(given) == {"text": "hi", "parent": None}


def test_null_is_treated_the_same_at_every_call() -> None:
    reader = ArgumentReader("chat_list", SCHEMA, limit=1000)
    given = {"text": "hi", "cursor": None, "parent": None}
    assert [reader.read(given) for _ in range(2)] == [{"text": "hi", "parent": None}] * 2


@pytest.mark.parametrize("name", ["text", "unknown"])
def test_null_for_a_required_or_an_unknown_argument_is_refused(name: str) -> None:
    assert f"at {name}:" in refusal({"text": "hi", name: None})


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (5, "its type is int; pass a dict of arguments by name"),
        ({"text": "hi", 1: 2}, "the name 1 is not a string"),
    ],
)
def test_arguments_without_names_are_refused(arguments: object, what: str) -> None:
    with pytest.raises(CallRefusedError, match=what):
        check_names("chat_list", arguments)


def test_arguments_by_name_are_not_refused_for_their_form() -> None:
    check_names("chat_list", {})
    check_names("chat_list", {"text": "hi"})


def test_arguments_over_the_limit_are_refused() -> None:
    assert "the limit is 100" in refusal({"text": "x" * 100}, limit=100)


def test_arguments_of_just_the_limit_in_characters_are_read() -> None:
    arguments = {"text": "ä" * 20}
    assert read(arguments, limit=len('{"text":""}') + 20) == arguments


@pytest.mark.parametrize("value", [object(), {1, 2}, datetime(2026, 1, 1, tzinfo=UTC)])
def test_arguments_that_are_not_json_are_refused(value: object) -> None:
    said = refusal({"text": value})
    assert "at the top: not serializable as JSON: " in said
    assert type(value).__name__ in said.partition("JSON: ")[2]


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (2**53 + 1, "id"),
        (2**60, "id"),  # a page writes 1152921504606847000
        (-(2**53) - 1, "id"),
        (10**400, "id"),
        ({"ids": [1, {"x": 2**64 - 1}]}, "id.ids[1].x"),
        (json.loads("1e400"), "id"),
        ([-inf, "Infinity"], "id[0]"),
        ({"x": nan}, "id.x"),
    ],
)
def test_a_number_that_a_page_would_not_receive_as_it_is_is_refused(
    value: object, where: str
) -> None:
    reader = ArgumentReader("chat_list", {"type": "object"}, limit=1000, in_page=True)
    with pytest.raises(CallRefusedError, match="this number exactly; pass it as a") as caught:
        reader.read({"id": value})
    assert f"at {where}: " in str(caught.value)


@pytest.mark.parametrize(
    "value", [2**53, 1152921504606847000, -(10**21), 1 / 3, "1234567890123456789", [True], "NaN"]
)
def test_values_that_a_page_reads_exactly_are_not_refused(value: object) -> None:
    reader = ArgumentReader("chat_list", {"type": "object"}, limit=1000, in_page=True)
    assert reader.read({"id": value}) == {"id": value}


def test_a_number_that_is_not_exact_hides_no_other_violation() -> None:
    reader = ArgumentReader("chat_list", SCHEMA, limit=1000, in_page=True)
    with pytest.raises(CallRefusedError) as caught:
        reader.read({"limit": 2**53 + 1, "curser": "a"})
    said = str(caught.value)
    for path in ("at limit: the page would not", "at curser: there is no", '"text" is a required'):
        assert path in said


def test_a_number_that_json_does_not_have_is_refused_for_that_reason_only() -> None:
    reader = ArgumentReader("chat_list", SCHEMA, limit=1000, in_page=True)
    with pytest.raises(CallRefusedError) as caught:
        reader.read({"text": nan, "limit": 0})
    said = str(caught.value)
    assert said.count("at text: ") == said.count("at limit: ") == 1
    assert "null" not in said


def test_a_python_tool_gets_integers_of_any_size() -> None:
    given = {"text": "hi", "x": 2**64 - 1}
    assert read(given, additionalProperties=True) == given
