"""JSON Schemas: how much work one may cause, and that no check exceeds it."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.schemas.checker import MOST_LOOKS, Checker, check_schema
from opentabs_py.core.schemas.cost import DEEPEST, Widths

Json = dict[str, Any]


def doubling(levels: int, keyword: str = "allOf", **more: Any) -> Json:
    """Return a schema of a few KB that requires 2^levels checks of one value."""
    defs: Json = {f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(levels)}
    defs[f"a{levels}"] = {"type": "object"}
    return {"type": "object", "$defs": defs, **(more or {"$ref": "#/$defs/a0"})}


def tree(alternatives: int) -> Json:
    """Return a schema of nested nodes, each of which may be one of several kinds."""
    kinds = [
        {"properties": {"in": {"$ref": "#/$defs/node"}, "kind": {"const": i}}}
        for i in range(alternatives)
    ]
    node = {"type": "object", "anyOf": kinds}
    return {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {"node": node},
    }


def nested(levels: int) -> Json:
    value: Json = {"kind": 0}
    for _ in range(levels):
        value = {"kind": 0, "in": value}
    return {"root": value}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_schema_that_doubles_at_each_of_34_levels_is_refused(keyword: str) -> None:
    with pytest.raises(ValueError, match=r"applied [0-9,]+ times to one place") as caught:
        check_schema(doubling(34, keyword))
    assert "at most 100,000 are allowed" in str(caught.value)


@pytest.mark.parametrize(
    "hidden",
    [
        {"properties": {"x": {"$ref": "#/$defs/a0"}}},
        {"patternProperties": {"^x": {"not": {"$ref": "#/$defs/a0"}}}},
        {"dependentSchemas": {"x": {"$ref": "#/$defs/a0"}}},
        {"additionalProperties": {"items": {"if": {"$ref": "#/$defs/a0"}}}},
        {"additionalProperties": {"prefixItems": [True, {"contains": {"$ref": "#/$defs/a0"}}]}},
        {"$dynamicRef": "#here", "not": {"$dynamicAnchor": "here", "$ref": "#/$defs/a0"}},
        {"$ref": "#/default/1", "default": [{}, {"$ref": "#/$defs/a0"}]},
        {"unevaluatedProperties": {"propertyNames": {"$ref": "#/$defs/a0"}}},
    ],
)
def test_a_doubling_is_found_wherever_it_stands(hidden: Json) -> None:
    with pytest.raises(ValueError, match="times to one place"):
        check_schema(doubling(34, **hidden))


def test_a_doubling_is_found_behind_a_decoy_at_the_root() -> None:
    inner = {**doubling(34), "$id": "https://plugin.example/inner"}
    decoys: Json = {name: {} for name in inner["$defs"]}
    with pytest.raises(ValueError, match="times to one place"):
        check_schema({"type": "object", "allOf": [inner], "$defs": decoys})


def test_a_reference_to_what_is_not_there_is_refused_before_it_is_followed() -> None:
    for reference in ("#/$defs/a/9", "#nowhere"):
        schema: Json = {"$ref": reference, "$defs": {"a": [{}]}}
        assert Widths(schema).at(0) == 1
        with pytest.raises(ValueError, match="which it does not contain"):
            check_schema(schema)


class Counted(dict[str, Any]):
    """A part of a schema that counts how often it is searched for a key."""

    def __init__(self, key: str, **members: Any) -> None:
        super().__init__(**members)
        self.key, self.count = key, 0

    def get(self, key: str, default: Any = None, /) -> Any:
        self.count += key == self.key
        return super().get(key, default)

    def __contains__(self, key: object, /) -> bool:
        self.count += key == self.key
        return super().__contains__(key)


def test_a_schema_is_searched_for_a_target_once_however_many_refer_to_it() -> None:
    named, other = Counted("$anchor"), Counted("b", **{"$id": "other"})
    schema: Json = {
        "$defs": {"a": {"$anchor": "a"}, "named": named, "other": other},
        "b": {},
        "properties": {str(n): {"$ref": "#/b" if n % 2 else "#a"} for n in range(100)},
    }
    check_schema(schema)
    assert named.count <= 2
    assert other.count <= 2


def test_a_schema_too_long_to_follow_is_too_wide_to_say() -> None:
    defs: Json = {
        f"a{i}": {
            "properties" if i % 50 == 0 else "dependentSchemas": {
                "x": {"$ref": f"#/$defs/a{i + 1}"}
            }
        }
        for i in range(2_000)
    }
    loop: Json = {"properties": {"x": {"$ref": "#/$defs/loop"}}}
    several: Json = {"loop": {"$ref": "#/$defs/loop"}, "long": {"$ref": "#/$defs/a0"}}
    widths = Widths({"properties": several, "$defs": {"loop": loop, **defs, "a2000": {}}})
    assert widths.at(1) < widths.at(60) == inf


def test_each_level_of_unevaluated_properties_counts_twice() -> None:
    schema: Json = {"type": "object"}
    for _ in range(20):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    with pytest.raises(ValueError, match="times to one place"):
        check_schema(schema)


@pytest.mark.parametrize(
    "endless",
    [
        {"$ref": "#"},
        {"$recursiveRef": "#"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"properties": {"x": {"items": {"allOf": [{"$ref": "#/properties/x/items"}]}}}},
    ],
)
def test_a_schema_that_applies_itself_to_its_own_place_is_refused(endless: Json) -> None:
    with pytest.raises(ValueError, match="applies itself endlessly"):
        check_schema(endless)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (tree(1), nested(60)),
        (tree(5), nested(5)),
        (  # any JSON value, as Zod writes it
            {
                "additionalProperties": {"$ref": "#/$defs/json"},
                "$defs": {
                    "json": {
                        "anyOf": [
                            {"type": ["string", "number", "boolean", "null"]},
                            {"type": "array", "items": {"$ref": "#/$defs/json"}},
                            {
                                "type": "object",
                                "additionalProperties": {"$ref": "#/$defs/json"},
                            },
                        ]
                    }
                },
            },
            nested(60),
        ),
    ],
)
def test_recursive_data_is_checked_as_deep_as_people_nest_it(schema: Json, value: Json) -> None:
    check_schema(schema)
    assert Checker(schema).violations(value) == []


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (tree(5), nested(25)),
        (tree(1), nested(DEEPEST)),
        (
            doubling(14, additionalProperties={"$ref": "#/$defs/a0"}),
            {str(i): {} for i in range(999)},
        ),
    ],
)
def test_a_value_that_would_take_too_long_is_refused_unchecked(schema: Json, value: Json) -> None:
    check_schema(schema)
    [(path, why)] = Checker(schema).violations(value)
    assert path == ""
    assert "too large or too deeply nested" in why


def test_a_violation_among_too_many_parts_is_reported_without_its_path() -> None:
    schema: Json = {"type": "array", "items": {"type": "string"}}
    [(path, why)] = Checker(schema).violations([1] * 100_000)
    assert (path, why) == ("", "does not match the schema, and is too large to say where")


@pytest.mark.parametrize(
    "value",
    [
        [[1] * 20_000, [1] * 20_000, [1] * 20_000],
        {"a": [1] * 20_000, "b": [1] * 20_000, "c": [1] * 20_000},
        [{"a": [1] * 30_000}, {"a": [1] * 30_000}],
    ],
)
def test_all_parts_of_a_value_are_counted(value: Json) -> None:
    [(path, why)] = Checker({"type": "string"}).violations(value)
    assert (path, why) == ("", "does not match the schema, and is too large to say where")


def test_violations_do_not_copy_a_long_value_many_times() -> None:
    schema: Json = doubling(10, "anyOf", additionalProperties={"$ref": "#/$defs/a0"})
    [(_, why)] = Checker(schema).violations({"x": "y" * 100_000})
    assert "too large to say where" in why


# --- patterns ---


@pytest.mark.parametrize("pattern", [r"^(?<q>['\"])a\k<q>$", "^[^]$", r"^\0$", r"^[\b]$"])
def test_a_pattern_that_only_javascript_supports_is_refused_with_what_to_write(
    pattern: str,
) -> None:
    schemas: dict[str, Json] = {
        "properties.x.pattern": {"properties": {"x": {"pattern": pattern}}},
        "patternProperties": {"patternProperties": {pattern: {}}},
    }
    for where, schema in schemas.items():
        with pytest.raises(ValueError, match="regular expression") as caught:
            check_schema(schema)
        said = str(caught.value)
        assert said.startswith(f"has at {where}")
        assert repr(pattern) in said
        assert "the server cannot check" in said
        assert r"[\s\S] for [^], \1 for \k<name>, \x00 for \0, [\x08] for [\b]" in said
        assert ".refine()" in said
        assert "valid JSON Schema" not in said


@pytest.mark.parametrize(
    ("advised", "matches", "differs"),
    [
        (r"^[\s\S]$", "\n", ""),
        (r"^(?<q>['\"])a\1$", "'a'", "'a\""),
        (r"^\x00$", "\0", "0"),
        (r"^[\x08]$", "\b", "b"),
    ],
)
def test_what_is_advised_for_such_a_pattern_is_supported(
    advised: str, matches: str, differs: str
) -> None:
    schema: Json = {"pattern": advised}
    check_schema(schema)

    assert Checker(schema).violations(matches) == []
    assert Checker(schema).violations(differs) != []


BACKTRACKING = "(?=a)(a|b|ab)*c"


def test_a_pattern_that_backtracks_without_end_is_a_violation() -> None:
    schema: Json = {"properties": {"x": {"pattern": BACKTRACKING}}}
    [(path, why)] = Checker(schema).violations({"x": "ab" * 1_000})
    assert path == "x"
    assert "backtracking" in why


def test_a_pattern_that_may_backtrack_is_left_out_for_texts_that_are_too_long() -> None:
    schema: Json = {
        "properties": {"x": {"pattern": BACKTRACKING}, "y": {"pattern": "^a"}},
        "patternProperties": {"^(?!x|y)": {"type": "null"}},
        "additionalProperties": False,
    }
    checker = Checker(schema)
    assert len(checker.violations({"x": "ab", "z": 1})) == 2
    assert checker.violations({"x": "ab" * 500_000, "y": "a", "z": 1}) == []
    assert checker.violations({"x": "ab" * 500_000, "y": "b"}) != []


def test_a_linear_pattern_in_the_name_of_members_is_kept() -> None:
    schema: Json = {"patternProperties": {"^a": {"type": "null"}}, "pattern": BACKTRACKING}
    assert Checker(schema).violations({"a": "ab" * 500_000}) != []


# --- the estimate is an upper bound ---

_LEAF: st.SearchStrategy[Any] = st.sampled_from([{}, {"type": "object"}, {"minItems": 1}, True])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "allOf": several,
            "anyOf": several,
            "not": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": several,
            "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        },
    )


_SCHEMA = st.recursive(_LEAF, _schemas, max_leaves=12)
_VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)


def looks(part: Any, value: Any, root: Json) -> int:
    """Count the checks of a validator that never stops early."""
    if not isinstance(part, dict):
        return 1
    here = [*part.get("allOf", ()), *part.get("anyOf", ())]
    here += [part[keyword] for keyword in ("not",) if keyword in part]
    here += [root["$defs"][part["$ref"][-1]]] if "$ref" in part else []
    count = 1 + sum(looks(each, value, root) for each in here)
    if isinstance(value, dict):
        named = part.get("properties", {})
        for name, member in value.items():
            below = named.get(name, part.get("additionalProperties"))
            count += 0 if below is None else looks(below, member, root)
    if isinstance(value, list):
        first = part.get("prefixItems", [])
        for index, item in enumerate(value):
            below = first[index] if index < len(first) else part.get("items")
            count += 0 if below is None else looks(below, item, root)
    return count


def parts(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value or ()
    return 1 + sum(map(parts, below))


def depth(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value or ()
    return max((1 + depth(each) for each in below), default=0)


@given(root=_SCHEMA, x=_SCHEMA, y=_LEAF, value=_VALUE)
def test_no_check_looks_more_often_than_width_times_parts(
    root: Any, x: Any, y: Any, value: Any
) -> None:
    schema: Json = {"allOf": [root], "$defs": {"x": x, "y": y}}
    try:
        width = Widths(schema).at(depth(value))
    except ValueError:
        return  # it is infinite
    assert looks(schema, value, schema) <= width * parts(value)


def test_the_most_looks_are_a_few_seconds() -> None:
    assert MOST_LOOKS * 40e-9 <= 2  # s; the most expensive step measured takes 40 ns


def test_a_chain_of_references_too_long_to_follow_is_refused() -> None:
    defs: Json = {f"a{i}": {"items": {"$ref": f"#/$defs/a{i + 1}"}} for i in range(600)}
    with pytest.raises(ValueError, match="nested too deeply"):
        check_schema({"$ref": "#/$defs/a0", "$defs": {**defs, "a600": {}}})
