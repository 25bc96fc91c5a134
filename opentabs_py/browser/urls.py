"""Complete URLs as users type them."""

import re
from typing import Final
from urllib.parse import urlsplit

from opentabs_py.core.text import shorten
from opentabs_py.errors import BrowserError

# A host, and a port or a path behind it: what a browser would take for a scheme otherwise.
_TYPED: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+)(:\d+)?([/?#].*)?")
# The schemes that a number may follow, so that they look like a host with a port.
_SCHEMES: Final = (
    *("about", "blob", "chrome", "data", "file", "http", "https", "javascript", "mailto"),
    *("sms", "tel", "view-source"),
)
_LOCAL: Final = re.compile(r"localhost|.*\.localhost|[0-9.]+|\[.*\]")


def with_scheme(url: str) -> str:
    """Return an address with a scheme: `https`, or `http` for this machine and IP addresses."""
    typed = _TYPED.fullmatch(url)
    if typed is None or url.partition(":")[0].lower() in _SCHEMES:
        return url
    scheme = "http" if _LOCAL.fullmatch(typed["host"]) else "https"
    return f"{scheme}://{url}"


def cannot_open(url: str, error: Exception) -> BrowserError:
    """Return the error for a page that the driver could not open."""
    reason = str(error).partition("\n")[0].removeprefix("Page.goto: ").removesuffix(".")
    return BrowserError(f"Cannot open {url}: {reason}. Check the URL, and that the site responds.")


def web_address(text: str) -> str:
    """Return the URL of a web page as users type it, with its scheme.

    Raises:
        ValueError: It is none; the text says what it must be.
    """
    url = with_scheme(text.strip())
    rule = "write an http or https URL, such as https://example.com/inbox"
    if not url.isprintable() or " " in url:
        raise ValueError(f"it has spaces or control characters; {rule}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{shorten(parts.scheme) or 'such'} URLs cannot be opened; {rule}")
    if not parts.hostname:
        raise ValueError(f"it names no host; {rule}")
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"its port is not valid (0–65535); {rule}") from None
    return url
