"""Match patterns, against Chrome's documented examples and their corners."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.match import parse


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("<all_urls>", "https://example.com/a"),
        ("<all_urls>", "file:///tmp/a.html"),
        ("*://*/*", "http://example.com/"),
        ("*://*/*", "https://example.com"),
        ("https://*/foo*", "https://example.com/foo/bar.html"),
        ("https://*.google.com/foo*bar", "https://www.google.com/foo/baz/bar"),
        ("https://*.google.com/foo*bar", "https://google.com/foobar"),
        ("https://Example.COM/*", "HTTPS://EXAMPLE.com/x"),
        ("https://example.com/*", "https://example.com./x"),
        ("http://127.0.0.1/*", "http://127.0.0.1:49152/"),
        ("http://127.0.0.1:8000/*", "http://127.0.0.1:8000/"),
        ("http://localhost:*/*", "http://localhost:3000/x"),
        ("https://example.com:443/*", "https://example.com/"),
        ("https://example.com/*", "https://user:secret@example.com/"),
        ("http://[::1]/*", "http://[::1]:8080/"),
        ("https://example.com/search?q=*", "https://example.com/search?q=tabs"),
        ("https://example.com/*=1", "https://example.com/a?b=1#c"),
        ("https://example.com/inbox/*", "https://example.com/inbox"),
        ("file:///tmp/*", "file:///tmp/notes.html"),
        ("https://example.com/*a*a*", "https://example.com/banana"),
    ],
)
def test_a_pattern_matches_the_urls_it_names(pattern: str, url: str) -> None:
    assert parse(pattern).matches(url)


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("<all_urls>", "chrome://settings/"),
        ("<all_urls>", "about:blank"),
        ("*://*/*", "ftp://example.com/"),
        ("*://*/*", "file:///tmp/a.html"),
        ("*://*.example.com/*", "https://notexample.com/"),
        ("*://*.example.com/*", "https://example.com.evil.org/"),
        ("https://example.com/*", "https://www.example.com/"),
        ("https://example.com/*", "http://example.com/"),
        ("https://example.com/*", "https://example.com@evil.org/"),
        ("https://example.com/*", "https://evil.org/https://example.com/"),
        ("http://127.0.0.1:8000/*", "http://127.0.0.1:8001/"),
        ("http://127.0.0.1:8000/*", "http://127.0.0.1/"),
        ("http://localhost:80/*", "http://localhost:99999/"),
        ("https://example.com/foo", "https://example.com/foo/"),
        ("https://example.com/foo", "https://example.com/foo?bar"),
        ("https://example.com/foo*foo", "https://example.com/foo"),
        ("https://example.com/*x*y", "https://example.com/y"),
        ("https://example.com/search?q=*", "https://example.com/searchXq=1"),
        ("https://example.com/*c", "https://example.com/a#c"),
        ("http://localhost/*", "http://local[host/"),
        ("https://example.com/foo/*", "https://example.com/bar/x"),
    ],
)
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
        ("https://exa mple.com/*", "no host name", "'example.com'"),
        ("https://bücher.example/*", "ASCII form", "xn--bcher-kva.example"),
        ("https://me@example.com/*", "no host with an optional port", "'*://example.com/*'"),
        ("https://a:1:2/*", "no host with an optional port", "'http://127.0.0.1:8000/*'"),
        ("http://localhost:/*", "no port", "leave it out"),
        ("http://localhost:80a/*", "no port", "0 to 65535"),
        ("http://localhost:65536/*", "no port", "0 to 65535"),
        ("file://tmp/*", "no host", "'file:///tmp/*'"),
    ],
)
def test_a_refused_pattern_is_told_what_to_write_instead(
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
    assert not pattern.matches("https://a/" + "a" * 100_000)  # a backtracking matcher never ends
