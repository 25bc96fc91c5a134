"""Match patterns, against Chrome's documented examples and their corners."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.sites.match_patterns import LONGEST_PATTERN, parse, serves

# One table for both sides: `adapter_js/test/match.test.js` reads it too.
CASES = json.loads(Path(__file__).with_name("match_cases.json").read_text())


@pytest.mark.parametrize(("pattern", "url"), CASES["matching"])
def test_a_pattern_matches_the_urls_it_names(pattern: str, url: str) -> None:
    assert parse(pattern).matches(url)


@pytest.mark.parametrize(("pattern", "url"), CASES["other"])
def test_a_pattern_matches_no_other_url(pattern: str, url: str) -> None:
    assert not parse(pattern).matches(url)


@pytest.mark.parametrize(
    ("pattern", "what", "instead"),
    [
        ("example.com", "no scheme", "'*://example.com/*'"),
        ("", "no scheme", "'*://example.com/*'"),
        ("https://example.com", "no path", "'https://example.com/*'"),
        ("ws://example.com/*", "scheme 'ws'", "'https'"),
        ("HTTPS://example.com/*", "scheme 'HTTPS'", "'https'"),
        ("https://*example.com/*", "first label", "'*.example.com'"),
        ("https://www.*.com/*", "first label", "one pattern for each"),
        ("https:///x", "no host", "'*' for every host"),
        ("https://*./x", "no host", "'example.com'"),
        ("https://exa mple.com/*", "not a valid host name", "'example.com'"),
        ("https://bücher.example/*", "ASCII form", "xn--bcher-kva.example"),
        (
            "https://me@example.com/*",
            "not a valid host with an optional port",
            "'*://example.com/*'",
        ),
        ("https://a:1:2/*", "not a valid host with an optional port", "'http://127.0.0.1:8000/*'"),
        ("http://localhost:/*", "not a valid port", "leave it out"),
        ("http://localhost:80a/*", "not a valid port", "0 to 65535"),
        ("http://localhost:65536/*", "not a valid port", "0 to 65535"),
        ("file://tmp/*", "no host", "'file:///tmp/*'"),
    ],
)
def test_a_refused_pattern_says_what_to_write_instead(
    pattern: str, what: str, instead: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(what)) as caught:
        parse(pattern)
    assert instead in str(caught.value)


_TEXT = st.text("ab/", max_size=12)


@given(glob=st.text("ab/*", max_size=10), text=_TEXT)
def test_a_path_glob_agrees_with_the_regular_expression_it_abbreviates(
    glob: str, text: str
) -> None:
    expected = re.fullmatch("/" + ".*".join(map(re.escape, glob.split("*"))), "/" + text)
    by_chrome_s_exception = "/" + glob == "/" + text + "/*"
    assert parse(f"https://a/{glob}").matches(f"https://a/{text}") == (
        expected is not None or by_chrome_s_exception
    )


@given(url=st.text())
def test_no_text_at_all_makes_matching_raise(url: str) -> None:
    assert parse("https://example.com/*").matches(url) in (True, False)
    assert parse("https://example.com/*").matches("https://" + url) in (True, False)


def test_a_long_hostile_path_is_judged_in_an_instant() -> None:
    pattern = parse("https://a/" + "*a" * 40 + "b")
    assert not pattern.matches("https://a/" + "a" * 100_000)  # a backtracking matcher would hang


def test_a_pattern_that_is_too_long_is_refused_with_the_limit() -> None:
    start = "https://a.example/"
    assert parse(start.ljust(LONGEST_PATTERN, "x")).matches(start.ljust(LONGEST_PATTERN, "x"))
    with pytest.raises(ValueError, match="257 characters; a match pattern may have at most 256"):
        parse(start.ljust(LONGEST_PATTERN + 1, "x"))


@pytest.mark.parametrize(
    ("url", "is_served"),
    [
        ("https://chat.example/", True),
        ("https://mail.example/", True),
        ("https://chat.example/admin/", False),
        ("https://other.example/", False),
    ],
)
def test_a_plugin_works_where_a_pattern_matches_and_none_excludes(
    url: str, is_served: bool
) -> None:
    patterns = ["https://chat.example/*", "https://mail.example/*"]
    assert serves(url, patterns, ["https://chat.example/admin/*"]) is is_served


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        ("https://chat.example/*", "https://chat.example/"),
        ("*://*.chat.example/client/*", "chat.example/client/"),
        ("http://127.0.0.1:8000/app", "http://127.0.0.1:8000/app"),
        ("*://*/*", ""),
        ("<all_urls>", ""),
    ],
)
def test_where_its_pages_begin_can_be_opened(pattern: str, start: str) -> None:
    assert parse(pattern).start == start
