"""Chrome's match patterns: which URLs a plugin's tools may run on.

The semantics are Chrome's (developer.chrome.com, "Match patterns"), so that the
server chooses the tabs that the extension would.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from opentabs_py.core.sites.origins import DEFAULT_PORTS
from opentabs_py.core.text import shorten

LONGEST_PATTERN: Final = 256  # characters, also on the wire; a host name has at most 253

_ALL_URLS: Final = "<all_urls>"
_ALL_URLS_SCHEMES: Final = frozenset({"http", "https", "file", "ftp"})
_WEB_SCHEMES: Final = frozenset({"http", "https"})
_PORTS: Final = {**DEFAULT_PORTS, "ftp": 21}
_MAX_PORT: Final = 65535

_PATTERN: Final = re.compile(r"(?P<scheme>[^:/]*)://(?P<authority>[^/]*)(?P<path>/.*)?", re.DOTALL)
_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?",
    re.IGNORECASE,
)
# An IPv6 address keeps its brackets, as it does in what Chrome calls a host.
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9a-f:.]+\]|[^:\[\]]*)(?::(?P<port>[^:]*))?", re.IGNORECASE
)
_HOST: Final = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MatchPattern:
    """A parsed match pattern; `parse` makes one.

    Attributes:
        text: The pattern as it was written.
        schemes: The URL schemes it matches.
        host: Lower-case host, or the domain after `*.`; empty for every host.
        subdomains: Whether hosts below `host` match too.
        port: The only port that matches, or None for every port.
        path: A glob over path and query, in which only `*` is special.
    """

    text: str
    schemes: frozenset[str]
    host: str
    subdomains: bool
    port: int | None
    path: str

    def matches(self, url: str) -> bool:
        """Return whether the pattern matches a URL; the fragment is ignored."""
        found = _URL.match(url)
        if found is None:
            return False
        scheme = found["scheme"].lower()
        if scheme not in self.schemes:
            return False
        path = (found["path"] or "/") + (found["query"] or "")
        if scheme == "file":
            return _path_matches(self.path, path)
        authority = _AUTHORITY.fullmatch(found["authority"].rpartition("@")[2])
        if authority is None:
            return False
        port = _port_number(authority["port"]) if authority["port"] else _PORTS[scheme]
        return (
            self.port in (None, port)
            and self._host_matches(authority["host"].lower().removesuffix("."))
            and _path_matches(self.path, path)
        )

    @property
    def start(self) -> str:
        """Where its pages begin, for people: of `*://*.slack.com/app/*`, `slack.com/app/`.

        Empty if it matches pages of every host.
        """
        if not self.host:
            return ""
        [scheme, *others] = self.schemes
        port = "" if self.port is None else f":{self.port}"
        path = self.path.partition("*")[0]
        return f"{'' if others else f'{scheme}://'}{self.host}{port}{path}"

    def _host_matches(self, host: str) -> bool:
        if self.subdomains and (not self.host or host.endswith("." + self.host)):
            return True
        return host == self.host


def serves(url: str, patterns: Iterable[str], excluded: Iterable[str]) -> bool:
    """Return whether a plugin with these patterns works in a page."""
    return any(parse(each).matches(url) for each in patterns) and not any(
        parse(each).matches(url) for each in excluded
    )


def parse(pattern: str) -> MatchPattern:
    """Parse a match pattern such as `*://*.example.com/*` or `http://127.0.0.1:8000/*`.

    Raises:
        ValueError: It is not valid; the text says what is wrong and what to write instead.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(
            f"{shorten(pattern)!r} has {len(pattern):,} characters; "
            f"a match pattern may have at most {LONGEST_PATTERN}, so write a shorter one"
        )
    if pattern == _ALL_URLS:
        return MatchPattern(pattern, _ALL_URLS_SCHEMES, "", True, None, "/*")
    found = _PATTERN.fullmatch(pattern)
    if found is None:
        raise ValueError(
            f"{pattern!r} has no scheme; write scheme, host and path, for example "
            f"'*://{pattern.partition('/')[0] or 'example.com'}/*'"
        )
    schemes = _parse_scheme(pattern, found["scheme"])
    authority: str = found["authority"]
    path: str | None = found["path"]
    if path is None:
        raise ValueError(f"{pattern!r} has no path; write '{pattern}/*' to match the whole site")
    if "file" in schemes:
        if authority:
            raise ValueError(f"{pattern!r}: a file has no host; write 'file:///{authority}{path}'")
        return MatchPattern(pattern, schemes, "", True, None, path)
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or "@" in authority:
        raise ValueError(
            f"{pattern!r}: {authority!r} is not a valid host with an optional port; "
            "write it like '*://example.com/*' or 'http://127.0.0.1:8000/*'"
        )
    host, subdomains = _parse_host(pattern, parts["host"])
    return MatchPattern(pattern, schemes, host, subdomains, _parse_port(pattern, parts), path)


def _parse_scheme(pattern: str, scheme: str) -> frozenset[str]:
    if scheme == "*":
        return _WEB_SCHEMES
    if scheme in _ALL_URLS_SCHEMES:
        return frozenset({scheme})
    raise ValueError(
        f"{pattern!r} has the scheme {scheme!r}, but tools do not run in such pages; "
        "write 'https', 'http', or '*' for both"
    )


def _parse_host(pattern: str, host: str) -> tuple[str, bool]:
    if host == "*":
        return "", True
    domain = host.removeprefix("*.")
    if not domain:
        raise ValueError(f"{pattern!r} has no host; write '*' for every host, or 'example.com'")
    if "*" in domain:
        raise ValueError(
            f"{pattern!r}: in a host, '*' may only be the whole host or its first label; "
            "write '*.example.com' or '*', and one pattern for each other host"
        )
    if not domain.isascii():
        raise ValueError(
            f"{pattern!r}: Chrome knows hosts only in their ASCII form; "
            "write 'xn--bcher-kva.example' for 'bücher.example'"
        )
    if not _HOST.fullmatch(domain):
        raise ValueError(
            f"{pattern!r}: {domain!r} is not a valid host name; write one like 'example.com'"
        )
    return domain.lower().removesuffix("."), host.startswith("*.")


def _parse_port(pattern: str, parts: re.Match[str]) -> int | None:
    text: str | None = parts["port"]
    if text is None or text == "*":
        return None
    port = _port_number(text)
    if port is None:
        raise ValueError(
            f"{pattern!r}: {text!r} is not a valid port; write a number from 0 to {_MAX_PORT}, "
            "or leave it out for every port"
        )
    return port


def _port_number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 5):  # 5 digits hold every port
        return None
    port = int(text)
    return port if port <= _MAX_PORT else None


def _path_matches(glob: str, path: str) -> bool:
    # Chrome lets `/inbox/*` match `/inbox` as well.
    return glob == path + "/*" or _glob_matches(glob, path)


def _glob_matches(glob: str, text: str) -> bool:
    """Match with `*` as the only wildcard, without regular-expression backtracking."""
    first, *rest = glob.split("*")
    if not rest:
        return text == glob
    *middle, last = rest
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in middle:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - at >= len(last) and text.endswith(last)
