"""Origins of web pages."""

from opentabs_py.core.origins import origin_of


def test_an_origin_is_all_before_the_path() -> None:
    assert origin_of("https://api.example.com:8443/a/b?c#d") == "https://api.example.com:8443"
    assert origin_of("http://[::1]") == "http://[::1]"
