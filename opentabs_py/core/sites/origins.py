"""URLs of web pages, and their origins."""

from typing import Final
from urllib.parse import urljoin, urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return the origin of a URL as it is written there, such as `https://api.example.com`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def resolve_link(url: str, link: str) -> str:
    """Return the URL that a link leads to; empty if it is not valid, so that it leads nowhere.

    Args:
        url: That of the page.
        link: As the page wrote it.
    """
    try:
        return urljoin(url, link)
    except ValueError:  # such as `http://[`
        return ""
