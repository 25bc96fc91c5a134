"""How paths and values are formatted in messages."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.text import (
    cut_middle,
    did_you_mean,
    duration,
    json_kind,
    nearest,
    one_line,
    path_text,
    quantity,
    rule_text,
    shorten,
    show_value,
    visible,
    well_formed,
)


def test_a_path_is_written_as_in_javascript() -> None:
    assert path_text(["tools", 3, "input_schema"]) == "tools[3].input_schema"


@pytest.mark.parametrize(("text", "short"), [("four", "four"), ("fives", "fiv…")])
def test_a_text_over_the_limit_ends_in_an_ellipsis_and_is_as_long_as_that(
    text: str, short: str
) -> None:
    assert shorten(text, 4) == short


def test_of_a_long_text_the_middle_is_left_out_and_counted() -> None:
    whole = "head" + "-" * 10_000 + "tail"
    cut = cut_middle(whole, 150)
    head, said, tail = cut.split("\n")
    assert (head[:5], tail[-5:]) == ("head-", "-tail")
    assert said == f"… {len(whole) - len(head) - len(tail):,} characters left out …"
    assert 100 < len(cut) <= 150
    assert [cut_middle(each, 150) for each in (cut, whole[:150])] == [cut, whole[:150]]


@pytest.mark.parametrize(
    ("value", "text"),
    [({"a": "é"}, '{"a": "é"}'), ({1}, '"{1}"'), ("x" * 200, '"' + "x" * 118 + "…")],
)
def test_a_value_is_shown_as_json_or_as_python_shows_it(value: object, text: str) -> None:
    assert show_value(value) == text


def test_no_control_character_is_left_in_a_pages_text() -> None:
    assert one_line("a\x1b[31m\nb\u202ec\x07 é☃\u3164.") == "a [31m b c  é☃ ."


@pytest.mark.parametrize(("text", "safe"), [("plain é☃", "plain é☃"), ("a\x1bb\n", "a\\u001bb\n")])
def test_only_what_could_steer_a_terminal_is_escaped(text: str, safe: str) -> None:
    assert visible(text) == safe


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 ms"),
        (0.000384, "0.38 ms"),
        (0.009999, "10.0 ms"),
        (0.0123, "12.3 ms"),
        (0.09999, "100 ms"),
        (0.0985, "98.5 ms"),
        (0.00994, "9.94 ms"),
        (0.3456, "346 ms"),
        (0.9984, "998 ms"),
        (0.99999, "1.00 s"),
        (1.5, "1.50 s"),
        (59.999, "1 min 00 s"),
        (245.4, "4 min 05 s"),
        (3_600.0, "60 min 00 s"),
    ],
)
def test_a_time_is_written_with_three_digits_in_the_unit_that_fits(
    seconds: float, text: str
) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m\x07\x7f\x9b", "a\\u001b[31m\\u0007\\u007f\\u009b"),
        ("a\u202eb\u2066c\u200bd\ufeff\u2028", "a\\u202eb\\u2066c\\u200bd\\ufeff\\u2028"),
        ("\U000e0041\ud800", "\\udb40\\udc41\\ud800"),
        ("a\u3164b\u034f\ufe01c\U000e0100", "a\\u3164b\\u034f\\ufe01c\\udb40\\udd00"),
        ("two\n\tlines\r", "two\n\tlines\\u000d"),
        ("a\xa0b\u3000c", "a b c"),
        ("\u0645\u06cc\u200c\u062e 👩\u200d👧 ❤\ufe0f é☃",) * 2,
    ],
)
def test_what_would_act_on_a_terminal_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_json_made_visible_is_the_same_json_but_for_spaces(text: str) -> None:
    same = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    assert json.loads(visible(json.dumps(text, ensure_ascii=False))) == same


def test_the_nearest_names_are_at_most_two_the_most_similar_first() -> None:
    assert nearest("curser", {"limit": 1, "cursors": 2, "cursor": 3}) == ["cursor", "cursors"]
    assert nearest("x", ["limit"]) == []


def test_a_very_long_name_is_not_compared() -> None:
    long = "x" * 256
    assert nearest(long, [f"{long}y"]) == [f"{long}y"]
    assert nearest(f"{long}x", [f"{long}y"]) == []


@pytest.mark.parametrize(
    ("near", "text"),
    [([], ""), (["a"], "did you mean 'a'?"), (["a", "b"], "did you mean 'a' or 'b'?")],
)
def test_a_suggestion_names_what_is_near(near: list[str], text: str) -> None:
    assert did_you_mean(near) == text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("Input should be a valid string", "Input should be a valid string"),
        ("Value error, it must be even", "it must be even"),
        ("Assertion failed, it must be even", "it must be even"),
    ],
)
def test_what_a_validator_says_is_passed_on_without_pydantics_words_before_it(
    message: str, text: str
) -> None:
    assert rule_text(message) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 calls"), (1, "1 call"), (2, "2 calls"), (1200, "1,200 calls")]
)
def test_a_quantity_is_singular_only_for_one(number: int, text: str) -> None:
    assert quantity(number, "call") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("old\udce9", "old\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d x", "\ufffd x"),
        ("é", "é"),
    ],
)
def test_a_lone_surrogate_becomes_a_replacement_character(text: str, expected: str) -> None:
    assert well_formed(text) == expected


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "a boolean"), ("", "a string"), ([], "an array"), ({}, "an object")],
)
def test_a_value_is_named_by_its_json_type(value: object, kind: str) -> None:
    assert json_kind(value) == kind
    assert json_kind(1) == json_kind(1.5) == "a number"
