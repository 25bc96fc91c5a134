"""URLs of web pages, and their origins."""

import pytest

from opentabs_py.core.sites.origins import origin_of, resolve_link


def test_an_origin_is_all_before_the_path() -> None:
    assert origin_of("https://api.example.com:8443/a/b?c#d") == "https://api.example.com:8443"
    assert origin_of("http://[::1]") == "http://[::1]"


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("?page=2", "https://shop.example:8443/list?page=2"),
        ("/cart", "https://shop.example:8443/cart"),
        ("//other.example/", "https://other.example/"),
        ("http://[", ""),
        ("//[::1", ""),
    ],
)
def test_a_link_leads_where_a_browser_would_go(link: str, url: str) -> None:
    assert resolve_link("https://shop.example:8443/list?page=1#top", link) == url
