"""What is cut of a result and what is kept of it, without a server."""

import json

import pytest
from mcp import types

from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.server.mcp.long_results import WHOLE_META_KEY, LongResult, LongResults

LIMIT = 1_000
LONG = "word " * 9_000


def content(*texts: str, structured: object = None) -> types.CallToolResult:
    blocks: list[types.ContentBlock] = [types.TextContent(text=each) for each in texts]
    return types.CallToolResult(
        content=blocks, structured_content=structured if isinstance(structured, dict) else None
    )


def texts(result: types.CallToolResult | None) -> list[str]:
    assert result is not None
    return [each.text for each in result.content if isinstance(each, types.TextContent)]


def whole(kept: LongResults, result: types.CallToolResult | None) -> LongResult:
    assert result is not None
    assert result.meta is not None
    return kept.find(result.meta[WHOLE_META_KEY], None)


def test_a_cut_result_fills_the_limit_and_no_more_with_its_notice() -> None:
    results = LongResults(LIMIT)
    for cut in (
        results.shorten("t", LONG, None),
        results.shorten_content("t", content(LONG), None),
        results.shorten_content("t", content("word " * 400, "word " * 400, LONG), None),
        results.shorten_content("t", content(LONG, LONG), None),
    ):
        assert LIMIT - 100 < sum(map(estimate_tokens, texts(cut))) <= LIMIT


@pytest.mark.parametrize("text", ["7" * 4_000, json.dumps(LONG)])
def test_only_text_that_is_an_object_or_a_list_is_read_as_json(text: str) -> None:
    shown, _ = texts(LongResults(LIMIT).shorten("t", text, None))
    assert shown[:1_000] == text[:1_000]


def test_a_short_text_beside_a_long_one_stays_as_it_was_written() -> None:
    written = '{ "n": 1 }'
    shown, *_ = texts(LongResults(LIMIT).shorten_content("t", content(written, LONG), None))
    assert shown == written


def test_the_whole_has_the_type_of_what_was_cut() -> None:
    results = LongResults(LIMIT)
    text = whole(results, results.shorten_content("t", content(LONG), None))
    structure = whole(
        results, results.shorten_content("t", content("short", structured={"a": LONG}), None)
    )
    assert (text.mime_type, text.text) == ("text/plain", LONG.encode())
    assert structure.mime_type == "application/json"
    assert json.loads(structure.text) == {"a": LONG}


def test_a_result_of_content_that_is_not_kept_has_no_meta() -> None:
    assert LongResults(LIMIT, kept_bytes=1).shorten_content("t", content(LONG), None).meta is None


def test_results_are_kept_while_they_are_exactly_as_long_as_may_be_kept() -> None:
    results = LongResults(LIMIT, kept_bytes=2 * len(LONG))
    kept = [whole(results, results.shorten("t", LONG, None)) for _ in range(2)]
    assert [results.find(each.uri, None) for each in kept] == kept

    both = LONG + LONG
    assert whole(results, results.shorten("t", both, None)).text == both.encode()


def test_what_is_missing_says_how_much_is_kept() -> None:
    with pytest.raises(LookupError, match=r"The last 100 long results are kept, up to 64 MiB;"):
        LongResults(LIMIT).find("opentabs://result/0", None)
