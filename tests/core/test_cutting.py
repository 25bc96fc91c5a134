"""Cutting values for models."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from pydantic_core import from_json, to_json

from opentabs_py.core.cutting import LeftOut, as_text, cut_value, describe_left_out
from opentabs_py.core.tokens import estimate_tokens

LONG = "word " * 5_000
ROWS: list[JsonValue] = [{"id": n, "text": f"Message {n} says something"} for n in range(1_000)]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(), inner, max_size=40),
    max_leaves=200,
)


def cut(value: Any, limit: int = 500) -> Any:
    return cut_value(value, limit).value


def test_what_is_short_enough_stays_as_it_is() -> None:
    done = cut_value(ROWS[:3], 500)
    assert done.value == ROWS[:3]
    assert done.left_out == ()


def test_a_list_keeps_its_first_items_whole() -> None:
    done = cut_value(ROWS, 500)
    assert isinstance(done.value, list)
    kept = len(done.value)
    assert 20 < kept < 60
    assert done.value == ROWS[:kept]
    assert done.left_out == (LeftOut((), "items", 1_000 - kept, 1_000),)


def test_an_object_keeps_what_is_short_after_what_is_long() -> None:
    done = cut_value({"first": 1, "messages": ROWS, "total": 1_000, "cursor": "abc"}, 500)
    assert isinstance(done.value, dict)
    assert list(done.value) == ["first", "messages", "total", "cursor"]
    assert (done.value["total"], done.value["cursor"]) == (1_000, "abc")
    [left_out] = done.left_out
    assert (left_out.path, left_out.what) == (("messages",), "items")


def test_long_members_share_what_short_ones_leave() -> None:
    value = cut({"a": LONG, "b": LONG, "c": "short"}, 600)
    a, b = estimate_tokens(value["a"]), estimate_tokens(value["b"])
    assert a == b
    assert 250 < a < 300


def test_what_members_leave_of_their_share_is_shared_again() -> None:
    lengths = {"a": 1, "b": 430, "c": 452}
    short = {name: "word " * length for name, length in lengths.items()}
    value = cut({**short, **dict.fromkeys("defghijkl", LONG)}, 5_000)
    assert {name: value[name] for name in short} == short
    assert {estimate_tokens(value[name]) for name in "defghijkl"} == {estimate_tokens(value["d"])}
    assert estimate_tokens(value["d"]) > 430


def test_a_text_keeps_its_beginning_and_says_how_much_is_missing() -> None:
    done = cut_value(LONG, 500)
    assert isinstance(done.value, str)
    assert done.value.startswith("word word")
    [left_out] = done.left_out
    assert done.value.endswith(f"… {left_out.count:,} more characters")
    assert (left_out.what, left_out.of) == ("characters", len(LONG))


def test_the_first_item_is_cut_if_it_is_too_long_alone() -> None:
    done = cut_value([{"body": LONG, "id": 7}, {"body": LONG, "id": 8}], 500)
    assert isinstance(done.value, list)
    [first] = done.value
    assert isinstance(first, dict)
    assert first["id"] == 7
    assert [each.path for each in done.left_out] == [(0, "body"), ()]


def test_of_very_many_members_the_first_remain() -> None:
    value = cut({f"key{n}": "some value" for n in range(5_000)})
    assert 40 < len(value) < 200
    assert list(value) == [f"key{n}" for n in range(len(value))]


def test_numbers_and_names_that_are_too_long_are_left_out() -> None:
    number = 10**4_000
    assert cut([number, 1]) == []
    assert cut({"a": number, "b": 1, LONG: 1}) == {"b": 1}
    assert cut({LONG: 1}) == {}


def test_a_number_alone_stays() -> None:
    assert cut(10**4_000) == 10**4_000


@pytest.mark.parametrize("value", [[[[LONG]]], {"a": {"b": {"c": LONG}}}])
def test_what_is_long_deep_inside_is_cut_there(value: JsonValue) -> None:
    done = cut_value(value, 500)
    assert 400 < estimate_tokens(as_text(done.value)) <= 500
    assert [len(each.path) for each in done.left_out] == [3]


def test_text_that_json_escapes_costs_what_it_costs_escaped() -> None:
    assert estimate_tokens(as_text(cut(['say "no"\n\t' * 3_000]))) <= 500


def test_a_budget_of_three_tokens_leaves_empty_values() -> None:
    assert cut([LONG], 3) == []
    assert cut({"a": LONG}, 3) == {}
    assert cut(LONG, 3).startswith("… 25,000")


def test_places_are_named_and_counted() -> None:
    items = LeftOut(("messages",), "items", 812, 1_000)
    text = LeftOut((), "characters", 3, 4_000)
    assert describe_left_out([items]) == "812 of 1,000 items of messages"
    assert describe_left_out([text, items]) == "3 of 4,000 characters, " + str(items)
    assert describe_left_out([items] * 4).endswith(", and more in 1 other place")
    assert describe_left_out([items] * 9).endswith(", and more in 6 other places")


@given(JSON, st.integers(60, 2_000))
def test_a_cut_value_is_json_within_the_limit(value: JsonValue, limit: int) -> None:
    done = cut_value(value, limit)
    text = to_json(done.value)
    assert from_json(text) == done.value
    if not isinstance(value, str):
        assert type(done.value) is type(value)
    if isinstance(value, str | list | dict):
        assert estimate_tokens(as_text(done.value)) <= limit


@given(JSON, st.integers(60, 2_000))
def test_something_is_left_out_exactly_if_the_value_differs(value: JsonValue, limit: int) -> None:
    done = cut_value(value, limit)
    assert (done.value != value) == bool(done.left_out)
