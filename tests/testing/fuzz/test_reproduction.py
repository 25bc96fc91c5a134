"""The test that is printed for a broken promise is valid Python and repeats the call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.testing.fuzz.reproduction import FuzzedTool, reproduction
from opentabs_py.testing.fuzz.values import source, unique_key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    max_leaves=8,
)


@given(JSON, st.integers(0, 40))
def test_a_value_as_source_is_that_value(value: Any, indent: int) -> None:
    assert eval(source(value, indent)) == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a" * 10_000, '"a" * 10000'),
        ({"rows": [0] * 1000}, '{"rows": [0] * 1000}'),
        ("it's", '"it\'s"'),
        ('"', "'\"'"),
        ("\u202e", '"\\u202e"'),
    ],
)
def test_source_is_short_and_shows_what_cannot_be_seen(value: Any, written: str) -> None:
    assert source(value) == written
    assert eval(written) == value


def test_a_test_is_complete() -> None:
    tool = FuzzedTool("chat_read", plugin="chat")

    text = reproduction(tool, {"n": 1}, {"cancel_after": 0.25})

    assert text == (
        "from opentabs_py.testing import SyncOpenTabs, expect_contract\n"
        "\n"
        "\n"
        "def test_chat_read_keeps_its_contract(opentabs: SyncOpenTabs) -> None:\n"
        '    opentabs.open_start_page("chat")\n'
        "\n"
        '    expect_contract(opentabs.tool("chat_read"), {"n": 1}, cancel_after=0.25)\n'
    )


def test_on_another_page_it_says_what_is_missing() -> None:
    text = reproduction(FuzzedTool("chat_read", url="http://127.0.0.1:8000/a"), {}, {})

    assert "# Set up the page as the test does that found this." in text
    assert 'opentabs.page.goto("http://127.0.0.1:8000/a")' in text


@given(JSON)
def test_whatever_the_arguments_it_compiles(value: Any) -> None:
    text = reproduction(FuzzedTool("a-b", url="http://x/"), {"value": value}, {"codes": ["A"]})

    compile(text, "test_it.py", "exec")


def test_numbers_that_json_schema_takes_for_equal_have_one_key() -> None:
    assert unique_key([1.0, {"a": 2}]) == unique_key([1, {"a": 2.0}])
    assert unique_key(True) != unique_key(1)
