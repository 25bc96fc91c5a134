"""The names of the tools that pages register: of their sites, for clients and for permissions."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from opentabs_py.core.hosts import url_host
from opentabs_py.core.sites.origins import DEFAULT_PORTS

LONGEST: Final = 64  # characters of a name; some clients accept no more
PAGE_OWNERS: Final = "page--"  # what the owners of pages' tools begin with

_OTHER: Final = re.compile(r"[^A-Za-z0-9]+")
_PLAIN_HOST: Final = re.compile(r"[a-z0-9.]+")
_DIGITS: Final = (4, 8, 16, 32)  # hex digits of a suffix: the first that is free
_OWNER_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class PageSite:
    """Where a page comes from.

    Attributes:
        origin: Scheme, host and port; the default port is left out.
        host: The host alone.
    """

    origin: str
    host: str

    @property
    def owner(self) -> str:
        """What the tools of this origin belong to, for permissions; no other origin has it.

        It cannot be the id of a plugin, which never has two hyphens in a row.
        """
        name = f"{PAGE_OWNERS}{_OTHER.sub('-', self.host).strip('-')}"
        if self.origin == f"https://{self.host}" and _PLAIN_HOST.fullmatch(self.host):
            return name
        return f"{name}-{_digest(self.origin)[:_OWNER_DIGITS]}"


def site_of(url: str) -> PageSite | None:
    """Return the site of a page; None if its tools are not served."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not host:
        return None
    shown = url_host(host)
    if port not in (None, DEFAULT_PORTS[parts.scheme]):
        shown += f":{port}"
    return PageSite(f"{parts.scheme}://{shown}", host)


def pattern_of(site: PageSite) -> str:
    """Return a match pattern of all pages of a site's host, at any port."""
    scheme = site.origin.partition("://")[0]
    return f"{scheme}://{url_host(site.host)}/*"


@dataclass(frozen=True, slots=True)
class Naming:
    """What the name of one tool follows from.

    Attributes:
        host: The host of its site.
        tool: Its name in the page.
        identity: Everything that tells it from other tools, as a string.
    """

    host: str
    tool: str
    identity: str

    @property
    def plain(self) -> str:
        """Its name if no other tool has the same; it may be too long."""
        site = _OTHER.sub("_", self.host.removeprefix("www.")).strip("_").lower()
        return f"page_{site}_{_OTHER.sub('_', self.tool).strip('_') or 'tool'}"

    def suffixed(self, digits: int = _DIGITS[0]) -> str:
        """Return its name with a suffix that depends on nothing but the tool."""
        suffix = f"_{_digest(self.identity)[:digits]}"
        return self.plain[: LONGEST - len(suffix)] + suffix


def name_tools(tools: Sequence[Naming], taken: Collection[str]) -> list[str | None]:
    """Return the name of each tool: the plain one, or one with a suffix if that is not free.

    If several tools have the same plain name, none of them gets it, so that it never stands for one
    tool now and for another one later. A plain name that looks like another tool's suffixed one is
    not free: pages know how suffixes are made, and choose what their tools are named.

    Args:
        tools: The tools; no two have the same identity.
        taken: Names of other tools, which always keep them.

    Returns:
        Their names, in the same order; None for a tool all of whose names are taken.
    """
    counts = Counter(tool.plain for tool in tools)

    def may_be_plain(tool: Naming) -> bool:
        return len(tool.plain) <= LONGEST and counts[tool.plain] == 1

    used = {*taken}
    names: dict[str, str | None] = {}  # by identity
    for tool in sorted(tools, key=may_be_plain):
        possible = [tool.plain] if may_be_plain(tool) else []
        possible += map(tool.suffixed, _DIGITS)
        name = names[tool.identity] = next((each for each in possible if each not in used), None)
        if name is not None:
            used.add(name)
    return [names[tool.identity] for tool in tools]


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
