"""Shapes: the structure of JSON samples."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.shapes.shape import DEEPEST, EMPTY, MOST_VALUES, kind_of, merge, shape_of
from tests.core.shapes.samples import JSON


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_each_value_is_of_one_kind(value: Any, kind: str) -> None:
    assert kind_of(value) == kind


def test_a_member_is_required_if_every_object_has_it() -> None:
    shape = shape_of({"id": 1, "name": "a"}, {"id": 2})

    assert shape.is_required("id")
    assert not shape.is_required("name")


def test_items_of_all_arrays_are_samples_of_one_shape() -> None:
    shape = shape_of([{"a": 1}], [{"b": 2}, {"a": 3}], [])

    assert shape.items is not None
    assert shape.items.count == 3
    assert not shape.items.is_required("a")
    assert shape.empty == 1


def test_members_named_by_ids_are_entries() -> None:
    shape = shape_of({"4711": {"name": "a"}, "4712": {"name": "b"}, "total": 2})

    assert [*shape.members] == ["total"]
    assert shape.entries is not None
    assert shape.entries.is_required("name")


def test_a_format_is_that_of_all_texts() -> None:
    assert shape_of("2026-01-02", "2026-01-03", None).format == "date"
    assert shape_of("2026-01-02", "soon").format is None
    assert shape_of(1).format is None


def test_fractions_and_integers_that_javascript_rounds_are_counted() -> None:
    assert shape_of(1, 2.0, 2.5, 3.5, 3).unsafe == 2
    assert shape_of(2**53 - 1, 2**53, -(2**60), 1e300).unsafe == 3


def test_an_integer_may_be_larger_than_any_float() -> None:
    modulus = 10**617
    assert shape_of(modulus, 1).kinds == {"number": 2}


def test_values_are_counted() -> None:
    assert shape_of("a", "b", "a", None).values == {"a": 2, "b": 1}


def test_nulls_alone_say_nothing() -> None:
    assert not shape_of(None).is_known
    assert shape_of(None, 1).is_known
    assert shape_of(None, 1).is_nullable


def test_too_many_or_too_long_values_are_not_kept() -> None:
    assert shape_of(*range(MOST_VALUES)).values is not None
    assert shape_of(*range(MOST_VALUES + 1)).values is None
    assert shape_of("x" * 81).values is None


@pytest.mark.parametrize(
    ("name", "texts", "found"),
    [
        ("status", ["open", "shut"] * 3, ["open", "shut"]),
        ("issueState", ["IN_WORK", "DONE"] * 3, ["DONE", "IN_WORK"]),
        ("author", ["ada", "bob"] * 3, None),  # a person's name is not a choice
        ("status", ["open", "shut"] * 2 + ["held"], None),  # too rare to be sure
        ("status", ["open"] * 6, None),
        ("status", ["Out for lunch", "Away today"] * 3, None),
        ("status", ["open", "shut", 3] * 3, None),
        ("status", [f"text {number}" for number in range(40)], None),
    ],
)
def test_a_fixed_set_is_of_repeated_words_in_a_member_that_is_a_choice(
    name: str, texts: list[Any], found: list[str] | None
) -> None:
    assert shape_of(*texts).fixed_set(name) == found


def test_what_is_too_deep_looks_like_anything() -> None:
    value: Any = "deep"
    for _ in range(DEEPEST + 1):
        value = [value]

    shape = shape_of(value)

    for _ in range(DEEPEST):
        assert shape.items is not None
        shape = shape.items
    assert shape.kinds == {"array": 1}
    assert (shape.items, shape.values) == (None, None)


@pytest.mark.parametrize("name", ["a", "4711"])
def test_objects_may_be_as_deep_as_arrays(name: str) -> None:
    value: Any = "deep"
    for _ in range(DEEPEST + 1):
        value = {name: value}

    shape, depth = shape_of(value), 0
    while shape.members or shape.entries:
        shape, depth = shape.members.get(name) or shape.entries or EMPTY, depth + 1

    assert depth == DEEPEST


@given(st.lists(JSON, max_size=4), st.lists(JSON, max_size=4))
def test_merging_is_adding_samples(one: list[Any], other: list[Any]) -> None:
    assert merge(shape_of(*one), shape_of(*other)) == shape_of(*one, *other)


def test_merging_adds_up_what_was_counted() -> None:
    samples: list[Any] = [
        {"a": 1.5, "d": "2026-01-02", "4711": "x", "of": [1]},
        {"a": 2.5, "d": "2026-01-03", "4712": "y", "of": []},
        {"a": "x", "of": [2, "z"], "more": None},
    ]
    one, other = shape_of(samples[0]), shape_of(*samples[1:])

    assert merge(one, other) == merge(other, one) == shape_of(*samples)
    assert merge(one, EMPTY) == one


@pytest.mark.parametrize("longest", ["x" * 80, "x" * 81])
def test_values_stay_unknown_once_they_are(longest: str) -> None:
    merged = merge(shape_of(longest), shape_of("a"), shape_of(longest))

    assert (merged.values is None) is (len(longest) > 80)


def test_the_shape_of_no_samples_is_empty() -> None:
    assert shape_of() == EMPTY == merge()
