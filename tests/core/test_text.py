"""How paths and values are written in messages."""

import pytest

from opentabs_py.core.text import duration, one_line, path_text, shorten


def test_a_path_is_written_as_in_javascript() -> None:
    assert path_text(["tools", 3, "input_schema"]) == "tools[3].input_schema"


@pytest.mark.parametrize(("text", "short"), [("four", "four"), ("fives", "fiv…")])
def test_a_text_over_the_limit_ends_in_an_ellipsis_and_is_as_long_as_that(
    text: str, short: str
) -> None:
    assert shorten(text, 4) == short


def test_no_control_character_is_left_in_a_pages_text() -> None:
    assert one_line("a\x1b[31m\nb\u202ec\x07 é☃") == "a [31m b c  é☃"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 ms"),
        (0.000384, "0.38 ms"),
        (0.009999, "10.0 ms"),
        (0.0123, "12.3 ms"),
        (0.09999, "100 ms"),
        (0.3456, "346 ms"),
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
