"""The named instances of a plugin's site: a `url` setting may hold several URLs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import JsonValue

from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.sites.origins import DEFAULT_PORTS


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an instance.

    Attributes:
        origin: Scheme, host as Chrome writes it, and port.
        path: Without a trailing slash.
    """

    origin: tuple[str, str, int]
    path: str

    def contains(self, other: "Address") -> bool:
        """Return whether another address lies at or below this one."""
        return self.origin == other.origin and f"{other.path}/".startswith(f"{self.path}/")


@dataclass(frozen=True, slots=True)
class Instances:
    """All named instances of one plugin.

    Attributes:
        urls: The URLs of each instance, by instance name; they may contain secrets.
    """

    urls: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @property
    def names(self) -> tuple[str, ...]:
        """The names a call can choose from; empty unless there are several instances."""
        return tuple(self.urls) if len(self.urls) > 1 else ()

    def instance_at(self, url: str) -> str | None:
        """Return the name of the instance that a page URL belongs to, or None.

        The origin decides. If several instances share an origin, the one with the longest
        matching path prefix wins.
        """
        page = address(url)
        if page is None:
            return None
        near = [(name, each) for name, each in self._addresses() if each.origin == page.origin]
        if len({name for name, _ in near}) > 1:
            near = [(name, each) for name, each in near if each.contains(page)]
        return max(near, key=lambda found: len(found[1].path), default=(None, None))[0]

    def _addresses(self) -> Iterator[tuple[str, Address]]:
        for name, urls in self.urls.items():
            for url in urls:
                found = address(url)
                assert found is not None  # checked when the setting was read
                yield name, found


@dataclass(frozen=True, slots=True)
class Instance:
    """The instance that a call is for."""

    name: str
    among: Instances

    def has(self, url: str) -> bool:
        """Return whether a page belongs to this instance."""
        return self.among.instance_at(url) == self.name


def address(url: str) -> Address | None:
    """Return the address of an http or https URL; None for any other text."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").removesuffix(".")
        if parts.scheme not in DEFAULT_PORTS or not host:
            return None
        host = host if host.isascii() else host.encode("idna").decode()
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError:
        return None
    return Address((parts.scheme, host, port), parts.path.rstrip("/"))


def find_namesakes(urls: Mapping[str, str]) -> tuple[str, str] | None:
    """Return two names that share an address, so no page could tell them apart; else None."""
    first: dict[Address | None, str] = {}
    for name, url in urls.items():
        if (other := first.setdefault(address(url), name)) != name:
            return other, name
    return None


def find_instances(schema: Mapping[str, JsonObject], values: Mapping[str, JsonValue]) -> Instances:
    """Return the instances that the values of a plugin's `url` settings name."""
    found: dict[str, tuple[str, ...]] = {}
    for name, url in _named_urls(values[key] for key in schema if key in values):
        found[name] = (*found.get(name, ()), url)
    return Instances(found)


def _named_urls(values: Iterable[JsonValue]) -> Iterator[tuple[str, str]]:
    for value in values:
        if isinstance(value, dict):  # only a `url` setting's value can be one
            yield from ((name, str(url)) for name, url in value.items())
