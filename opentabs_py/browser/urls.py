"""Complete URLs as users type them."""

import re
from typing import Final

# A host, and a port or a path behind it: what a browser would take for a scheme otherwise.
_TYPED: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\]|[\w.-]+)(:\d+)?([/?#].*)?")
_LOCAL: Final = re.compile(r"localhost|.*\.localhost|[0-9.]+|\[.*\]")


def with_scheme(url: str) -> str:
    """Return an address with a scheme: `https`, or `http` for this machine and IP addresses."""
    typed = _TYPED.fullmatch(url)
    if typed is None:
        return url
    scheme = "http" if _LOCAL.fullmatch(typed["host"]) else "https"
    return f"{scheme}://{url}"
