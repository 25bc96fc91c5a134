"""Hosts as URLs have them."""

import pytest

from opentabs_py.core.hosts import url_host


@pytest.mark.parametrize(
    ("host", "shown"),
    [("127.0.0.1", "127.0.0.1"), ("opentabs.example", "opentabs.example"), ("::1", "[::1]")],
)
def test_only_addresses_with_colons_are_in_brackets(host: str, shown: str) -> None:
    assert url_host(host) == shown
