"""The arguments and values of calls, as recordings keep them."""

import json
from datetime import date
from typing import Any

import pytest

from opentabs_py.recording.values import WholeValues


def test_a_value_is_kept_whole() -> None:
    value = {"text": "x" * 100_000, "cut": "a\ud83d"}
    assert json.loads(WholeValues().of_value(value)) == value


def test_what_programs_pass_is_kept_as_json() -> None:
    assert WholeValues().of_value({"until": date(2026, 11, 29)}) == '{"until":"2026-11-29"}'


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize("value", [_endless(), {(1, 2): 3}], ids=["endless", "key"])
def test_of_what_json_cannot_hold_an_excerpt_is_kept(value: Any) -> None:
    json.loads(WholeValues().of_value(value))
