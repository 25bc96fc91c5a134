"""Origins of web pages."""

from typing import Final
from urllib.parse import urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def origin_of(url: str) -> str:
    """Return the origin of a URL as it is written there, such as `https://api.example.com`."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
