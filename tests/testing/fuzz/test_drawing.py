"""Values drawn from a JSON Schema: only valid ones, and all kinds of them."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample, Unsatisfiable

from opentabs_py.core.schemas.checker import Checker, check_schema
from opentabs_py.testing.fuzz.drawing import DEEP, DEEPEST, HUGE, undrawn, values_of
from opentabs_py.testing.fuzz.numeric import LARGEST
from opentabs_py.testing.fuzz.patterns import EDGES, HUGE_TEXT

# Hypothesis notes by its repr which strategy it draws from again.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "maxLength": 3},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            },
            "required": ["name", "children", "next"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}
ZOD_EMAIL = (
    r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@"
    r"([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
)
SCHEMAS: dict[str, Any] = {
    "nothing said": {},
    "a bound integer": {"type": "integer", "minimum": 3, "exclusiveMaximum": 7},
    "an old exclusive bound": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "type": "integer",
        "minimum": 3,
        "exclusiveMinimum": True,
        "maximum": 4,
    },
    "a multiple": {"type": "integer", "multipleOf": 7, "minimum": 1},
    "a huge multiple": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": LARGEST},
    "a multiple of any size": {"type": "number", "multipleOf": 0.5, "minimum": -LARGEST},
    "a multiple of something tiny": {"type": "number", "multipleOf": 5e-324, "maximum": 1e9},
    "a bound that no float reaches": {"type": "number", "exclusiveMaximum": 10**400},
    "a decimal multiple": {"type": "number", "multipleOf": 0.5, "maximum": 10},
    "a small range": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.25},
    "a short string": {"type": "string", "minLength": 1, "maxLength": 2},
    "a long string": {"type": "string", "minLength": 200},
    "a string longer than Hypothesis draws": {"type": "string", "minLength": 20_000},
    "an array longer than Hypothesis draws": {
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 20_000,
    },
    "a pattern": {"type": "string", "pattern": r"^[a-z]\d{2,4}$"},
    "a pattern with a property": {"type": "string", "pattern": r"^\p{L}+[\p{N}-]$"},
    "a pattern with a name": {"type": "string", "pattern": r"^(?<year>\d{4})-\d$"},
    "a pattern of any place": {"type": "string", "pattern": "abc", "maxLength": 5},
    "zod's email": {"type": "string", "format": "email", "pattern": ZOD_EMAIL},
    "a date": {"type": "string", "format": "date"},
    "an enum": {"enum": [1, "1", None, [], {"a": 1}]},
    "a constant": {"const": {"a": [1]}},
    "several types": {"type": ["string", "null"], "maxLength": 1},
    "a set": {"type": "array", "items": {"type": "integer"}, "minItems": 3, "uniqueItems": True},
    "a set of two": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
    "a tuple": {
        "type": "array",
        "prefixItems": [{"type": "integer"}, {"type": "string"}],
        "items": False,
        "minItems": 1,
    },
    "an old tuple": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "array",
        "items": [{"type": "integer"}, {"type": "boolean"}],
        "additionalItems": {"type": "null"},
    },
    "an array that contains": {"type": "array", "contains": {"const": 7}, "minContains": 2},
    "an array of a few that contains": {
        "type": "array",
        "prefixItems": [{"enum": [6, 7]}],
        "contains": {"const": 7},
        "minContains": 2,
        "maxItems": 2,
    },
    "an array of one of two lengths": {
        "type": "array",
        "minItems": 3,
        "anyOf": [{"maxItems": 2}, {"maxItems": 9}],
    },
    "an object of one of two sizes": {
        "type": "object",
        "additionalProperties": {"type": "null"},
        "minProperties": 3,
        "anyOf": [{"maxProperties": 2}, {"maxProperties": 9}],
    },
    "empty arrays only": {"type": "array", "maxItems": 0},
    "an object": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "a map": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z]+$"},
        "additionalProperties": {"type": "integer"},
        "minProperties": 1,
        "maxProperties": 3,
    },
    "members by pattern": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "boolean"}},
        "additionalProperties": False,
    },
    "a required member that nothing describes": {"type": "object", "required": ["__proto__"]},
    "members that need others": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "dependentRequired": {"a": ["b"]},
        "dependentSchemas": {"b": {"properties": {"a": {"minimum": 0}}}},
    },
    "alternatives": {
        "type": "object",
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["x"]},
            {"properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["y"]},
        ],
        "required": ["kind"],
    },
    "alternatives twice": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "allOf": [{"anyOf": [{"minimum": 5}, {"maxLength": 1}]}],
    },
    "parts that hold together": {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"a": {"minimum": 5}}, "required": ["b"]},
        ]
    },
    "what must not be": {"type": "integer", "not": {"multipleOf": 2}},
    "one thing or another": {
        "type": "object",
        "properties": {"kind": {"enum": ["file", "text"]}},
        "required": ["kind"],
        "if": {"properties": {"kind": {"const": "file"}}},
        "then": {"required": ["path"], "properties": {"path": {"type": "string"}}},
        "else": {"required": ["body"], "properties": {"body": {"type": "string"}}},
    },
    "nothing unevaluated": {
        "allOf": [{"properties": {"a": {"type": "integer"}}}],
        "type": "object",
        "unevaluatedProperties": False,
    },
    "a tree": TREE,
    "a reference to the whole": {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True}},
    },
    "a reference by name": {
        "$defs": {"id": {"$anchor": "id", "type": "string", "minLength": 1, "not": {"const": "a"}}},
        "type": "array",
        "items": {"$ref": "#id"},
    },
    "a reference with more beside it": {
        "$defs": {"size": {"type": "integer", "minimum": 0}},
        "$ref": "#/$defs/size",
        "maximum": 3,
    },
}
quickly = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_drawn_is_valid(name: str) -> None:
    schema = SCHEMAS[name]
    check_schema(schema)
    checker = Checker(schema)

    @quickly
    @given(values_of(schema))
    def drawn(value: Any) -> None:
        assert checker.violations(value) == []

    drawn()


def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of every kind, some without any valid value."""
    small = st.integers(0, 4)
    leaves: list[st.SearchStrategy[Any]] = [
        st.just({}),
        st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
                  st.integers(-5, 5), small),
        st.builds(lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
                  small, small),
        st.builds(lambda values: {"enum": values},
                  st.lists(st.none() | st.booleans() | small, min_size=1, max_size=3)),
        st.sampled_from([{"type": "null"}, {"$ref": "#/$defs/leaf"}]),
        st.just({"type": ["boolean", "string"]}),
    ]  # fmt: skip
    if depth == 0:
        return st.one_of(leaves)
    below = schemas(depth - 1)
    names = st.sampled_from(["a", "b", "c"])
    both = st.lists(below, min_size=1, max_size=2)
    return st.one_of(
        *leaves,
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(names, below, max_size=3)},
            optional={
                "required": st.lists(names, max_size=2, unique=True),
                "additionalProperties": st.booleans() | below,
                "minProperties": st.integers(0, 2),
                "patternProperties": st.dictionaries(st.just("^x"), below, max_size=1),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": below},
            optional={
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(2, 4),
                "uniqueItems": st.booleans(),
                "prefixItems": both,
                "contains": below,
            },
        ),
        st.dictionaries(st.sampled_from(["anyOf", "oneOf", "allOf"]), both, min_size=1),
        st.fixed_dictionaries({"not": below}),
        st.fixed_dictionaries({"if": below, "then": below, "else": below}),
    )


@pytest.mark.parametrize("kind", [{"type": "null"}, {"enum": [1]}, {"enum": [1, 1.0]}])
def test_nothing_is_drawn_for_a_list_that_needs_more_values_than_there_are(kind: Any) -> None:
    impossible = {"type": "array", "items": kind, "minItems": 2, "uniqueItems": True}
    assert undrawn({"properties": {"a": impossible}, "required": ["a"]}) == ["a"]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.data(), schemas())
def test_of_a_schema_that_is_itself_drawn_only_valid_values_are(
    data: st.DataObject, schema: dict[str, Any]
) -> None:
    whole = {**schema, "$defs": {"leaf": {"type": "integer", "not": {"const": 1}}}}
    check_schema(whole)
    strategy = values_of(whole)
    assume(not strategy.is_empty)

    value = data.draw(strategy)

    assert Checker(whole).violations(value) == []


def depth_of(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, below), default=0)


def test_recursion_goes_deep_and_ends() -> None:
    unshrunk = settings(quickly, phases=[Phase.generate])
    deep = find(values_of(TREE), lambda value: depth_of(value) > DEEP, settings=unshrunk)

    @quickly
    @given(values_of(TREE))
    def drawn(value: Any) -> None:
        assert depth_of(value) <= DEEPEST + 1

    drawn()
    assert depth_of(deep) <= DEEPEST + 1


def test_a_schema_that_requires_endless_recursion_has_no_values() -> None:
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}

    assert values_of(endless).is_empty


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"enum": []} | {"type": "string"},
        {"allOf": [{"type": "string"}, {"type": "object"}]},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "array", "minItems": 3, "maxItems": 2},
        {"type": "array", "contains": True, "minContains": 2, "maxItems": 1},
        {"type": "object", "minProperties": 2, "maxProperties": 1},
        {"type": "object", "required": ["a", "b"], "maxProperties": 1},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5e-324},
        {"type": "number", "minimum": 1e308, "multipleOf": 1e-9},
        {"type": "number", "minimum": 10**400},
    ],
)
def test_a_schema_that_nothing_matches_has_no_values(schema: dict[str, Any]) -> None:
    with pytest.raises((Unsatisfiable, NoSuchExample)):
        find(values_of(schema), lambda _: True, settings=quickly)


@pytest.mark.parametrize(
    ("schema", "is_wanted"),
    [
        ({"type": "string"}, lambda value: value == ""),
        ({"type": "string"}, lambda value: len(value) == HUGE_TEXT),
        ({"type": "string"}, lambda value: value in EDGES and not value.isascii()),
        ({"type": "string", "maxLength": 100}, lambda value: len(value) == 100),
        ({"type": "array", "items": {"type": "null"}}, lambda value: value == []),
        ({"type": "array", "items": {"type": "null"}}, lambda value: len(value) >= HUGE // 2),
        ({"type": "integer"}, lambda value: value == 2**53 - 1),
        ({"type": "integer"}, lambda value: value < -(2**31)),
        ({"type": "number"}, lambda value: value != int(value)),
        ({"type": "object", "properties": {"a": {}}}, lambda value: value == {}),
        ({"type": "object", "additionalProperties": True}, lambda value: len(value) > 2),
    ],
)  # fmt: skip
def test_edges_are_drawn(schema: dict[str, Any], is_wanted: Any) -> None:
    many = settings(quickly, max_examples=2000)

    find(values_of(schema), is_wanted, settings=many)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^[0-9a-f]+$", "minLength": 24, "maxLength": 24},
        {"pattern": r"^\w+( \w+)*$", "minLength": 200},
        {"allOf": [{"pattern": "^x/.*"}, {"pattern": ".*y$"}]},
        {"allOf": [{"pattern": "^a"}, {"pattern": "z$"}, {"minLength": 12}]},
    ],
)
def test_long_strings_and_those_of_several_patterns_are_drawn_too(
    schema: dict[str, Any],
) -> None:
    found: set[str] = set()

    @settings(quickly, phases=[Phase.generate], derandomize=True)
    @given(values_of({"type": "string", **schema}))
    def drawn(value: str) -> None:
        found.add(value)

    drawn()
    assert len(found) > 30


def test_arrays_of_arrays_do_not_become_huge() -> None:
    nested: dict[str, Any] = {"type": "string"}
    for _ in range(6):
        nested = {"type": "array", "minItems": 1, "items": nested}

    @settings(quickly, phases=[Phase.generate], derandomize=True)
    @given(values_of(nested))
    def drawn(value: Any) -> None:
        assert len(json.dumps(value)) < 20_000_000

    drawn()


@pytest.mark.parametrize("least", [5_000, 20_000])
def test_strings_that_have_to_be_long_differ(least: int) -> None:
    found: set[str] = set()

    @settings(quickly, phases=[Phase.generate], derandomize=True)
    @given(st.tuples(*[values_of({"type": "string", "minLength": least})] * 3))
    def drawn(values: tuple[str, ...]) -> None:
        found.update(values)

    drawn()
    assert len(found) > 30


def test_a_pattern_that_only_javascript_supports_is_left_to_the_page() -> None:
    pattern = r"^(?<y>\d{4})-\k<y>$"
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}, "required": ["a"]}

    value = find(values_of(schema), lambda value: value["a"] != "", settings=quickly)

    assert isinstance(value["a"], str)


NEEDS_ADDRESS = {"properties": {"address": {"type": "string"}}, "required": ["address"]}
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "members"),
    [
        ({"dependentSchemas": {"card": NEEDS_ADDRESS}}, {"card", "address"}),
        ({"dependentSchemas": {"card": NEEDS_ADDRESS}}, set[str]()),
        ({"dependentSchemas": {"card": NEEDS_ADDRESS}, "required": ["card"]}, {"card", "address"}),
        ({"dependentRequired": {"card": ["zip"]}, "required": ["card"]}, {"card", "zip"}),
        (
            {
                "$schema": DRAFT_7,
                "dependencies": {"card": ["zip"], "zip": NEEDS_ADDRESS},
                "required": ["card"],
            },
            {"card", "zip", "address"},
        ),
        ({"dependentSchemas": {"card": False}}, set[str]()),
    ],
)
def test_members_that_depend_on_others_are_drawn(schema: dict[str, Any], members: set[str]) -> None:
    whole = {"type": "object", "properties": {"card": {"type": "string"}}, **schema}
    check_schema(whole)

    find(values_of(whole), lambda value: value.keys() == members, settings=quickly)


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^x": {"type": "integer"}}, "minProperties": 2},
        {
            "patternProperties": {"^a": {"const": 1}, "^b": True},
            "minProperties": 3,
        },
        {
            "properties": {"id": {"const": 1}},
            "patternProperties": {"^x-": {"type": "integer"}},
            "minProperties": 3,
        },
    ],
)
def test_as_many_members_are_drawn_by_pattern_as_there_have_to_be(schema: dict[str, Any]) -> None:
    found: set[str] = set()

    @settings(quickly, phases=[Phase.generate], derandomize=True)
    @given(values_of({"type": "object", "additionalProperties": False, **schema}))
    def drawn(value: Any) -> None:
        found.add(json.dumps(value, sort_keys=True))

    drawn()
    assert len(found) > 30


def test_the_members_of_which_hardly_any_value_can_be_drawn_are_named() -> None:
    greek = {"type": "string", "pattern": r"^\p{Script=Greek}+$"}
    schema = {
        "type": "object",
        "$defs": {"word": greek},
        "properties": {"a": greek, "b": {"type": "string"}, "c": {"$ref": "#/$defs/word"}},
        "required": ["a", "b", "c"],
    }

    assert undrawn(schema) == ["a", "c"]


def test_members_that_a_schema_does_not_name_are_not_drawn_unasked() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}}

    @quickly
    @given(values_of(schema))
    def drawn(value: Any) -> None:
        assert value.keys() <= {"a"}

    drawn()


FORMATS = {
    "date": r"\d{4}-\d\d-\d\d",
    "date-time": r"\d{4}-\d\d-\d\dT[\d:.]+Z",
    "email": r".+@.+",
    "ipv4": r"(\d+\.){3}\d+",
    "uri": r"https?://.+",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_kept_although_it_is_only_a_hint(name: str) -> None:
    @quickly
    @given(values_of({"type": "string", "format": name}))
    def drawn(value: str) -> None:
        assert re.fullmatch(FORMATS[name], value)

    drawn()
