"""How shapes differ, and what does not count as a difference."""

from typing import Any

import pytest
from hypothesis import given

from opentabs_py.core.shapes.change import Change, in_words
from opentabs_py.core.shapes.changes import changed_values, changes
from opentabs_py.core.shapes.shape import shape_of
from tests.core.shapes.samples import JSON


def told(was: Any, now: Any) -> list[str]:
    return [str(change) for change in changes(shape_of(was), shape_of(now))]


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"a": 1, "b": ""}, {"a": 1}, ["b is gone (was string)"]),
        ([{"a": 1}] * 9, [{"a": 1, "b": None}], ["[].b is new (null)"]),
        ({"a": 1, "b": ""}, {"a": 1, "c": ""}, ["b is now called c"]),
        ({"a": 1, "b": [1]}, {"a": 1, "c": ""}, ["b is gone (was array)"]),
        ({"next": "x"}, {"page": {"next": "y"}}, ["next has moved to page.next"]),
        (
            [{"next": "x"}] * 9,
            [{"page": {"next": "y", "of": 3}}],
            ["[].next has moved to [].page.next", "[].page is new (object)"],
        ),
        ({"next": "x"}, {"page": {"in": {"next": "y"}}}, ["next has moved to page.in.next"]),
        (
            [{"a": "x", "b": "y"}] * 9,
            [{"c": "z", "d": "y", "a": "x"}],
            ["[].b is now called d", "[].c is new (string)"],
        ),
        (
            [{"b": "y"}] * 9,
            [{"c": "z", "d": "u"}],
            ["[].b is gone (was string)", "[].c is new (string)", "[].d is new (string)"],
        ),
        ({"a": "1"}, {"a": 1}, ["a was string, and is now number"]),
        ({"a": "1"}, {"a": None}, ["a was string, and is now null"]),
        ([1], ["2"], ["[] was number, and is now string"]),
        (1, "2", ["the value was number, and is now string"]),
        (
            {"at": "2026-01-02"},
            {"at": "today"},
            ["at was a date, and no longer is"],
        ),
        ({"a": [1]}, {"a": []}, ["a had items, and is now empty"]),
        ({"7": {"a": 1}}, {"8": {}}, ["*.a is gone (was number)"]),
        ({"a.b": {"c": 1}}, {"a.b": {}}, ['["a.b"].c is gone (was number)']),
        (
            [{"a": 1}] * 9,
            [{"a": 1, "new": {"in": {"x": 1}, "y": 1}}],
            ["[].new is new (object)"],
        ),
        (
            [{"x": "u"}] * 9,
            [{"new": {"x": "u", "y": 1}}],
            ["[].new is new (object)", "[].x has moved to [].new.x"],
        ),
        # What is within a renamed member is as it was, unless that is new as well.
        (
            [{"by": {"name": "x"}}, {"by": None}] * 9,
            [{"owner": {"name": "x"}}] * 9,
            ["[].by is now called owner"],
        ),
        (
            [{"by": {"in": {"name": "x"}}}] * 9,
            [{"owner": {"in": {"name": "x", "age": 7}}}] * 9,
            ["[].by is now called owner", "[].owner.in.age is new (number)"],
        ),
        # A member that was optional is recognized by its name or its values.
        ([{"next": "x"}, {}], [{"page": {"next": "y"}}], ["[].next has moved to [].page.next"]),
        ([{"b": "y"}, {}], [{"d": "y"}], ["[].b is now called d"]),
        (
            [{"status": "open"}, {"status": "shut"}] * 3,
            [{"status": "held"}],
            ['[].status has a new value, "held" (was "open", "shut")'],
        ),
    ],
)
def test_a_difference_is_reported_in_words(was: Any, now: Any, expected: list[str]) -> None:
    assert told(was, now) == expected


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"a": 1}, {"a": 2.5}),  # a price may have decimals
        ({"a": None}, {"a": "known"}),
        ({"a": []}, {"a": [1]}),
        ({"a": [1], "b": [[], [1]]}, {"a": [2], "b": [[]]}),
        ([{"a": 1}, {}], [{}]),  # optional before, missing now
        ([{"a": 1}, {}], [{"b": 2}]),
        ({"a": 1}, {"a": 1, "b": 1}),  # one sample may just have lacked it
        ([{"a": 1}, {"a": None}], [{"a": None}]),
        ([{"a": 1}] * 5, [{"a": None}, {"a": 1}]),  # five samples leave room for a null
        ([{"a": 1}] * 5, [{}, {"a": 1}]),
        ({"at": "soon"}, {"at": "2026-01-02"}),
        ([{"status": "open"}], [{"status": "held"}]),  # one sample is not a set
        ([{"status": "open"}, {"status": "shut"}] * 3, [{"status": "open"}]),
    ],
)
def test_what_another_sample_might_show_is_not_a_difference(was: Any, now: Any) -> None:
    assert told(was, now) == []


def test_more_nulls_or_gaps_than_there_is_room_for_are_reported() -> None:
    was = [{"a": 1, "b": 1}] * 25

    assert told(was, [{"a": None, "b": 1}, {"a": 1}]) == [
        "[].a was number, and may be null",
        "[].b was always present, and may now be missing",
    ]


def test_a_list_of_new_choices_is_cut() -> None:
    was = [{"status": "open"}, {"status": "shut"}] * 3
    now = [{"status": each} for each in ("a", "b", "c", "d", "e")]

    assert told(was, now) == [
        '[].status has a new value, "a", "b", "c", "d", … (5 in all) (was "open", "shut")'
    ]


@given(JSON)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert changes(shape_of(value), shape_of(value)) == []


def test_a_shape_in_words_names_formats_and_null() -> None:
    assert in_words(shape_of("2026-01-02", None)) == "string (date) or null"
    assert in_words(shape_of(1, [])) == "array or number"


def test_a_value_that_was_always_the_same_is_reported_when_it_changes() -> None:
    was = {"plan": "free", "me": {"admin": False}, "seen": 3, "of": ["x"]}
    now = {"plan": "paid", "me": {"admin": True}, "seen": 4, "of": ["y"]}

    assert changed_values([was, was], now) == [
        Change("me.admin", "value", "false", "true"),
        Change("plan", "value", '"free"', '"paid"'),
    ]


@pytest.mark.parametrize(
    "text", ["x" * 81, "4711", "-3.5", "2026-01-02", "0b7e4f5c-8d5e-4a53-9a55-0e8a0b6d3b11"]
)
def test_ids_numbers_and_dates_are_expected_to_change(text: str) -> None:
    assert changed_values([{"a": text}, {"a": text}], {"a": "else"}) == []


def test_a_value_is_not_stable_if_it_varied_or_was_seen_once() -> None:
    assert changed_values([{"a": "x"}, {"a": "y"}], {"a": "z"}) == []
    assert changed_values([{"a": "x"}], {"a": "z"}) == []
    assert changed_values([{"a": "x"}] * 2, {}) == []
    assert changed_values([{"a": "x"}] * 2, {"a": "x"}) == []
