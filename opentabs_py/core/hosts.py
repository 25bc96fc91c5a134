"""The names of this machine, and hosts as URLs have them."""

from typing import Final

LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")  # as in URLs and the Host header


def url_host(host: str) -> str:
    """Return a host in URL form (RFC 3986, section 3.2.2)."""
    return f"[{host}]" if ":" in host else host
