"""What is said about a value that matches none of a schema's alternatives."""

from typing import Any

import pytest

from opentabs_py.core.schemas.checker import Checker

Json = dict[str, Any]

STRING: Json = {"type": "string"}
NULLABLE: Json = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}


def kind(name: str, **members: Json) -> Json:
    properties: Json = {"kind": {"type": "string", "const": name}, **members}
    return {"type": "object", "properties": properties, "required": [*properties]}


def closed(schema: Json) -> Json:
    return {**schema, "additionalProperties": False}


TITLE = kind("title", text={"type": "string", "minLength": 1})
DUE = kind("due", before=STRING)
SORT: Json = {
    "anyOf": [
        {"type": "string", "enum": ["title", "author"]},
        {"type": "array", "prefixItems": [{"const": "due"}, {"type": "boolean"}]},
    ]
}


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("close", [dict, closed])
@pytest.mark.parametrize(
    ("value", "path", "said"),
    [
        ({"kind": "title", "text": ""}, "text", '"" is shorter than 1 character'),
        ({"kind": "due", "before": 3}, "before", '3 is not of type "string"'),
        ({"kind": "due"}, "", '"before" is a required property'),
        ({"kind": "size"}, "kind", '"title" or "due" was expected'),
        ({"kind": None}, "kind", '"title" or "due" was expected'),
        ({}, "", '"kind" is a required property'),
        ("title", "", "an object was expected"),
    ],
)
def test_a_literal_selects_the_alternative(
    keyword: str, close: Any, value: Any, path: str, said: str
) -> None:
    schema: Json = {keyword: [close(TITLE), close(DUE)]}
    assert Checker(schema).violations(value) == [(path, said)]


@pytest.mark.parametrize(
    ("schema", "value", "path", "said"),
    [
        (NULLABLE, "x", "", "an integer or null was expected"),
        (NULLABLE, 0, "", "0 is less than the minimum of 1"),
        (SORT, "size", "", '"title", "author" or an array was expected'),
        (SORT, ["due", 1], "[1]", '1 is not of type "boolean"'),
        ({"anyOf": [False, NULLABLE]}, 0, "", "0 is less than the minimum of 1"),
        ({"anyOf": [STRING, {"type": "number"}]}, [], "", "a string or a number was expected"),
    ],
)
def test_the_type_selects_the_alternative(schema: Json, value: Any, path: str, said: str) -> None:
    assert Checker(schema).violations(value) == [(path, said)]


def test_an_alternative_within_an_alternative_is_explained_too() -> None:
    schema: Json = {
        "anyOf": [{"type": "null"}, {"type": "array", "items": {"oneOf": [TITLE, DUE]}}]
    }
    value: Any = [{"kind": "due", "before": ""}, {"kind": "title", "text": ""}, {"kind": "x"}]
    assert Checker(schema).violations(value) == [
        ("[1].text", '"" is shorter than 1 character'),
        ("[2].kind", '"title" or "due" was expected'),
    ]


@pytest.mark.parametrize(
    ("alternatives", "value"),
    [
        # Either may be meant.
        ([{"required": ["id"]}, {"required": ["name"]}], {}),
        # The second one has no such member, so its name does not speak for it.
        ([closed(TITLE), closed({"properties": {"x": STRING}, "required": ["x"]})], {"kind": "y"}),
        ([False, False], {}),
    ],
)
def test_where_nothing_selects_an_alternative_all_are_meant(
    alternatives: list[Any], value: Json
) -> None:
    [(path, said)] = Checker({"anyOf": alternatives}).violations(value)
    assert path == ""
    assert said.endswith("is not valid under any of the schemas listed in the 'anyOf' keyword")


def test_of_many_literals_the_first_ones_are_named() -> None:
    schema: Json = {"anyOf": [{"const": number} for number in range(30)]}
    [(_, said)] = Checker(schema).violations("x")
    assert said.startswith("0, 1, 2, ")
    assert said.endswith("18, 19 or … was expected")


def test_what_is_masked_stays_masked() -> None:
    schema: Json = {"anyOf": [TITLE, DUE, {"type": "null"}]}
    values: list[Any] = ["secret", {"kind": "secret"}, {"kind": "due", "before": ["secret"]}]
    for value in values:
        assert "secret" not in str(Checker(schema, mask="it").violations(value))


def test_a_value_that_breaks_alternatives_in_many_places_is_explained_in_some() -> None:
    lists: list[Any] = [{"type": "array", "items": {"anyOf": [TITLE, DUE]}}, {"type": "null"}]
    value: list[Any] = [3] * 100
    said = Checker({"anyOf": lists}).violations(value)
    assert said == [(f"[{at}]", "an object was expected") for at in range(20)]
