"""Settings of a fleet: its name, and how to connect to NATS."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from opentabs_py.core.fleet.quotas import QUEUE
from opentabs_py.core.text import shorten, visible, well_formed
from opentabs_py.errors import ConfigError

LONGEST_LABEL: Final = 256  # characters of its key or its value, as of any name in a message
_WEB_SOCKETS: Final = ("ws", "wss")
_SCHEMES: Final = ("nats", "tls", *_WEB_SOCKETS)
_BETWEEN_URLS: Final = re.compile(r",(?=\s*\w+://)")  # a password may have commas, too


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """How a worker or an endpoint joins a fleet.

    Attributes:
        nats: One or more addresses of NATS servers, joined by commas: `nats://host:4222`, or
            `tls://host:4222`; a user name and a password may be in it.
        fleet: The name of the fleet.
        creds: A file with NATS credentials.
        ca: A file with the certificates to trust, if not those of the system.
        cert: A file with the client's certificate and its key, for servers that ask for one.
        labels: A worker's labels; an endpoint uses only the workers that have all of its own.
        queue: How many calls may wait in an endpoint while all workers are full; of one client, at
            most 100.
        calls_per_client: How many calls of one MCP client an endpoint runs at once; None for any
            number.
    """

    nats: str
    fleet: str = "default"
    creds: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    queue: int = QUEUE
    calls_per_client: int | None = None

    def __post_init__(self) -> None:
        """Check the addresses and the files.

        Raises:
            ConfigError: One is not valid, or there is no such file.
        """
        schemes = [_scheme(url) for url in self.urls]
        if len({scheme in _WEB_SOCKETS for scheme in schemes}) > 1:
            raise ConfigError(
                f"Cannot use {self.addresses} together: only some of them are WebSockets."
            )
        for file in (self.creds, self.ca, self.cert):
            if file is not None and not file.is_file():
                raise ConfigError(f"There is no file {file}.")

    @property
    def urls(self) -> list[str]:
        """The addresses, with passwords.

        For this package's own use.
        """
        return _BETWEEN_URLS.split(self.nats)

    @property
    def login(self) -> dict[str, str]:
        """The `user` and `password`, or the `token`, that is in the addresses.

        It is empty if there is none, or if they differ: then each is for its own server only.

        For this package's own use.
        """
        parts = [urlsplit(url) for url in self.urls]
        found = {(each.username, each.password) for each in parts if each.username is not None}
        if len(found) != 1:
            return {}
        [(user, password)] = found
        if password is None:
            return {"token": unquote(user)}
        return {"user": unquote(user), "password": unquote(password)}

    @property
    def addresses(self) -> str:
        """The addresses, without passwords.

        For this package's own use.
        """
        return ", ".join(map(_without_password, self.urls))


def read_labels(given: list[str]) -> dict[str, str]:
    """Return labels that are given as `KEY=VALUE`.

    Raises:
        ConfigError: One is not.
    """
    labels: dict[str, str] = {}
    for text in given:
        key, _, value = map(str.strip, text.partition("="))
        if not (key and value):
            raise ConfigError(f"Cannot use --label {text}. Write KEY=VALUE, such as site=eu.")
        if max(len(key), len(value)) > LONGEST_LABEL or well_formed(text) != text:
            raise ConfigError(
                f"Cannot use --label {visible(shorten(text))}. Write at most {LONGEST_LABEL} "
                "characters of UTF-8 on each side of the equals sign."
            )
        labels[key] = value
    return labels


def _scheme(url: str) -> str:
    """Return the scheme of an address.

    Raises:
        ConfigError: The address is not valid.
    """
    with suppress(ValueError):  # its port is not valid, or its brackets do not match
        parts = urlsplit(url)
        has_host = parts.hostname and "," not in parts.hostname
        if parts.scheme in _SCHEMES and has_host and parts.port != 0:
            return parts.scheme
    raise ConfigError(
        f"{_without_password(url)!r} is not the address of a NATS server. Write nats://HOST or "
        "tls://HOST, with or without a port; of several, each with its scheme."
    )


def _without_password(url: str) -> str:
    before, at, host = url.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}{host}" if at else url
