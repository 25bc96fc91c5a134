"""The arguments of a call, checked against its tool's input schema."""

from typing import Any

import pytest

from opentabs_py.core.arguments import ArgumentReader, is_closed
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
    assert "at curser: there is no such argument (did you mean cursor?)" in said


def test_an_unknown_argument_is_refused_with_the_known_names() -> None:
    said = refusal({"text": "hi", "zzz": 1})
    assert "the tool takes cursor, limit, parent, text" in said


def test_an_unknown_argument_hides_no_other_fault() -> None:
    said = refusal({"curser": "a", "limit": 0})
    assert "at curser" in said
    assert "at limit: 0 is less than the minimum of 1" in said
    assert '"text" is a required property' in said


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


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "allOf": [{}]}])
def test_a_schema_that_declares_nothing_is_open(schema: dict[str, Any]) -> None:
    assert not is_closed(schema)


def test_null_for_an_optional_argument_that_cannot_be_null_counts_as_omitted() -> None:
    given = {"text": "hi", "cursor": None, "limit": None, "parent": None}
    assert read(given) == {"text": "hi", "parent": None}


def test_null_counts_as_omitted_or_not_alike_at_every_call() -> None:
    reader = ArgumentReader("chat_list", SCHEMA, limit=1000)
    given = {"text": "hi", "cursor": None, "parent": None}
    assert [reader.read(given) for _ in range(2)] == [{"text": "hi", "parent": None}] * 2


@pytest.mark.parametrize("name", ["text", "unknown"])
def test_null_for_a_required_or_an_unknown_argument_is_refused(name: str) -> None:
    assert f"at {name}:" in refusal({"text": "hi", name: None})


def test_arguments_over_the_limit_are_refused() -> None:
    assert "100 is the limit" in refusal({"text": "x" * 100}, limit=100)


def test_arguments_that_are_not_json_are_refused() -> None:
    assert "not serializable as JSON" in refusal({"text": {1, 2}, "cursor": object()})
