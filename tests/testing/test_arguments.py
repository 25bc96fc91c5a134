"""The arguments that a test passes to a tool."""

from typing import Any

import pytest

from opentabs_py.testing.arguments import merged


@pytest.mark.parametrize(
    ("arguments", "more", "both"),
    [
        (None, {}, {}),
        ({"a": 1}, {}, {"a": 1}),
        (None, {"b": 2}, {"b": 2}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ],
)
def test_arguments_are_a_mapping_or_keywords_or_both(
    arguments: dict[str, Any] | None, more: dict[str, Any], both: dict[str, Any]
) -> None:
    assert merged(arguments, more) == both


def test_an_argument_that_is_given_twice_is_refused_even_with_the_same_value() -> None:
    with pytest.raises(TypeError, match=r"given twice, .*: a, b\.$"):
        merged({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3})


@pytest.mark.parametrize("wrong", ["text", "", [1], 3])
def test_what_is_not_a_mapping_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=f"as a mapping, not as {type(wrong).__name__}"):
        merged(wrong, {})
