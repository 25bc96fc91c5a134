"""How texts are classified."""

import pytest

from opentabs_py.core.shapes.texts import format_of, is_id, is_number, is_word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05.678Z", "date-time"),
        ("2026-01-02 03:04", "date-time"),
        ("2026-01-02", "date"),
        ("0b7e4f5c-8d5e-4a53-9a55-0e8a0b6d3b11", "uuid"),
        ("https://example.com/a?b", "uri"),
        ("ada@example.com", "email"),
        ("ada@localhost", None),
        ("soon", None),
        ("https://" + "x" * 2000, None),
    ],
)
def test_formats(text: str, expected: str | None) -> None:
    assert format_of(text) == expected


@pytest.mark.parametrize(
    "text",
    ["4711", "0b7e4f5c-8d5e-4a53-9a55-0e8a0b6d3b11", "deadbeef01", "C02ABCDEFG", "AB-1234",
     "dQw4w9WgXcQ_1"],
)  # fmt: skip
def test_ids(text: str) -> None:
    assert is_id(text)
    assert not is_word(text)


@pytest.mark.parametrize(
    "text", ["messages", "general", "v1", "api", "", "me", "user-settings", "1" * 201]
)
def test_names_are_not_ids(text: str) -> None:
    assert not is_id(text)


@pytest.mark.parametrize("text", ["open", "in_review", "IN_REVIEW", "inReview", "a-b"])
def test_identifiers_look_like_words_of_a_fixed_set(text: str) -> None:
    assert is_word(text)


@pytest.mark.parametrize("text", ["Ada", "out for lunch", "", "x" * 41])
def test_other_texts_are_not_words(text: str) -> None:
    assert not is_word(text)


def test_only_a_decimal_number_is_a_number() -> None:
    assert is_number("-3.5")
    assert not is_number("3.5.1")
