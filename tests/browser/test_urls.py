"""URLs as people type them."""

import pytest

from opentabs_py.browser.urls import cannot_open, web_address, with_scheme


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


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("javascript:1", "javascript URLs cannot be opened"),
        ("Data:1", "data URLs cannot be opened"),
        ("data:text/html,x", "data URLs cannot be opened"),
        ("about:1", "about URLs cannot be opened"),
        ("about:config", "about URLs cannot be opened"),
        ("mailto:x", "mailto URLs cannot be opened"),
        ("tel:112", "tel URLs cannot be opened"),
        ("view-source:1", "view-source URLs cannot be opened"),
        ("http:8080", "it names no host"),
        ("callto:5551234567", "its port is not valid"),
        ("https://example.com:65536", "its port is not valid"),
    ],
)
def test_only_web_pages_have_a_web_address(typed: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}.*; write an http or https URL"):
        web_address(typed)


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("intranet:8080/a", "https://intranet:8080/a"),
        ("data.example:65535", "https://data.example:65535"),
    ],
)
def test_a_host_with_a_port_is_a_web_address(typed: str, url: str) -> None:
    assert web_address(typed) == url


def test_a_long_scheme_that_cannot_be_opened_is_named_shortened() -> None:
    with pytest.raises(ValueError, match=f"^{'a' * 119}… URLs cannot be opened"):
        web_address(f"{'a' * 1000}://example.com")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            "Page.goto: net::ERR_FAILED at http://a/\nCall log:\n  - to",
            "net::ERR_FAILED at http://a/",
        ),
        ("Page.goto: Timeout 30000ms exceeded.\nCall log:", "Timeout 30000ms exceeded"),
    ],
)
def test_why_a_page_cannot_be_opened_is_said_in_a_line(message: str, reason: str) -> None:
    said = f"Cannot open http://a/: {reason}. Check the URL, and that the site responds."
    assert str(cannot_open("http://a/", RuntimeError(message))) == said
