"""URLs as people type them."""

import pytest

from opentabs_py.browser.urls import web_address, with_scheme


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:9301", "http://localhost:9301"),
        ("app.localhost:9301/x", "http://app.localhost:9301/x"),
        ("127.0.0.1:80/a?b#c", "http://127.0.0.1:80/a?b#c"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("example.com", "https://example.com"),
        ("example.com:8443/a:1", "https://example.com:8443/a:1"),
        ("http://example.com/", "http://example.com/"),
        ("about:blank", "about:blank"),
        ("data:text/html,x", "data:text/html,x"),
        ("chrome://version", "chrome://version"),
        ("file:///tmp/x.html", "file:///tmp/x.html"),
    ],
)
def test_a_url_without_a_scheme_gets_the_one_that_users_mean(typed: str, url: str) -> None:
    assert with_scheme(typed) == url


def test_a_long_scheme_that_cannot_be_opened_is_named_shortened() -> None:
    with pytest.raises(ValueError, match=f"^{'a' * 119}… URLs cannot be opened"):
        web_address(f"{'a' * 1000}://example.com")
