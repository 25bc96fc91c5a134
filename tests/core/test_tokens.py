"""The estimate of tokens, against counts of real tokenizers."""

import pytest

from opentabs_py.core.tokens import estimate_tokens, first_tokens, is_longer

SCHEMA = """{"type":"object","properties":{"channelId":{"type":"string","description":"The channel \
to export, from list_channels."},"limit":{"type":"integer","minimum":1,"maximum":1000,"default":100\
}},"required":["channelId"],"additionalProperties":false}"""
RECORD = """{"id":"9f8b7c6d-1e2f-4a3b-8c4d-5e6f7a8b9c0d","ts":"1764000001.123456","user":"U1A2B3C4\
","text":"Deploy finished in 42 s","reactions":3,"edited":false}"""
ENGLISH = """An agent could choose a tab only after an error had named them. The tool reads what \
the extension has last reported, so it waits for no page."""


@pytest.mark.parametrize(
    ("text", "counts"),
    [(SCHEMA, (57, 56, 56)), (RECORD, (79, 79, 75)), (ENGLISH, (31, 31, 31))],
    ids=["schema", "record", "English"],
)
def test_it_is_near_what_tokenizers_count(text: str, counts: tuple[int, ...]) -> None:
    """The counts of o200k, of cl100k, and of the tokenizer that Anthropic published."""
    for count in counts:
        assert estimate_tokens(text) == pytest.approx(count, rel=0.1)


@pytest.mark.parametrize("text", ["今天天气很好我们一起去公园散步", "Сегодня хорошая погода"])
def test_other_scripts_cost_more_than_english(text: str) -> None:
    assert estimate_tokens(text) >= len(text) / 3


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\x00", "\x7f", " \r"])
def test_no_text_without_words_is_free(blank: str) -> None:
    text = blank * 32_000
    assert estimate_tokens(text) >= 1_000
    assert is_longer(text, 900)
    assert len(first_tokens(text, 10)) <= 10 * 64


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("  ", 0), ("word", 1), ("\n\n", 1)])
def test_short_strings_cost_zero_tokens_or_one(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens
