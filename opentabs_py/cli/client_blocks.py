"""Configuration snippets that connect an MCP client to this server: JSON, TOML or code."""

import json
from dataclasses import dataclass
from string import Template
from typing import Any

from opentabs_py.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StartedServer:
    """A server that the client starts and talks to over stdio."""

    command: str
    arguments: list[str]


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that is already running.

    Attributes:
        url: Its URL.
        token: Whether the client must send the token from `OPENTABS_TOKEN`.
    """

    url: str
    token: bool


Server = StartedServer | RunningServer


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A client that lists its servers in a JSON file.

    Attributes:
        place: Where the block goes.
        key: The member that contains the servers.
        typed: Whether an entry names its transport.
        takes_url: Whether it can use a server that is already running.
        variable: How the file refers to an environment variable; None if it cannot.
        timeout: The member for the call timeout in milliseconds, if there is one.
    """

    place: str
    key: str = "mcpServers"
    typed: bool = False
    takes_url: bool = True
    variable: str | None = "${OPENTABS_TOKEN}"
    timeout: str | None = None

    def write(self, server: Server, seconds: float) -> str:
        """Return the block for a server whose calls take at most this many seconds.

        Raises:
            ConfigError: The client cannot use such a server.
        """
        entry: dict[str, Any]
        if isinstance(server, StartedServer):
            entry = {"type": "stdio", "command": server.command, "args": server.arguments}
        else:
            entry = {"type": "http", "url": server.url}
            if not self.takes_url:
                raise ConfigError("This client does not support URLs in its settings. Omit --http.")
            if server.token:
                if self.variable is None:
                    raise ConfigError(
                        "This client's settings cannot refer to an environment variable. Omit "
                        '--token, and add the header "Authorization: Bearer TOKEN" where you '
                        "start it."
                    )
                entry["headers"] = {"Authorization": f"Bearer {self.variable}"}
        if not self.typed:
            del entry["type"]
        if self.timeout is not None:
            entry[self.timeout] = round(1000 * seconds)
        return _json({self.key: {"opentabs": entry}}, indent=2)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A client whose block is TOML or code.

    JSON strings, and lists of them, have the same syntax in Python, JavaScript and TOML.

    Attributes:
        place: Where the block goes.
        started: The block for a server that the client starts: `$command` and `$arguments`.
        running: The block for a server that is already running: `$url` and `$token`.
        token: The value of `$token` if the server requires a token.
        imports: What precedes the block in that case.

    Both blocks contain `$seconds` or `$milliseconds`: how long to wait for a call.
    """

    place: str
    started: str
    running: str
    token: str
    imports: str = ""

    def write(self, server: Server, seconds: float) -> str:
        """Return the block for a server whose calls take at most this many seconds."""
        patience = {"seconds": f"{seconds:g}", "milliseconds": f"{1000 * seconds:.0f}"}
        if isinstance(server, StartedServer):
            return Template(self.started).substitute(
                patience, command=_json(server.command), arguments=_json(server.arguments)
            )
        block = Template(self.running).substitute(
            patience, url=_json(server.url), token=self.token if server.token else ""
        )
        return self.imports + block if server.token else block


def _json(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
