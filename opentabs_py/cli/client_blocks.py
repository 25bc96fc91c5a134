"""How MCP clients are told of a server: an entry in a file of JSON, or a few lines of text."""

import json
from dataclasses import dataclass
from string import Template
from typing import Any

from opentabs_py.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Started:
    """A server that the client starts, and speaks to over stdio."""

    command: str
    arguments: list[str]


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs already.

    Attributes:
        url: Its address.
        token: Whether the client has to present the token of `OPENTABS_TOKEN`.
    """

    url: str
    token: bool


Server = Started | Running


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A client that has its servers in a file of JSON.

    Attributes:
        place: Where the block goes.
        key: The member that holds the servers.
        typed: Whether an entry names its transport.
        takes_url: Whether it can use a server that runs already.
        variable: How an environment variable is written there; None when it cannot be.
        timeout: The member with the milliseconds to wait for a call, if there is one.
    """

    place: str
    key: str = "mcpServers"
    typed: bool = False
    takes_url: bool = True
    variable: str | None = "${OPENTABS_TOKEN}"
    timeout: str | None = None

    def write(self, server: Server, seconds: float) -> str:
        """Return the block for a server whose calls take that long at most.

        Raises:
            ConfigError: The client cannot use such a server.
        """
        entry: dict[str, Any]
        if isinstance(server, Started):
            entry = {"type": "stdio", "command": server.command, "args": server.arguments}
        else:
            entry = {"type": "http", "url": server.url}
            if not self.takes_url:
                raise ConfigError("This client takes no URL in its settings: leave --http out.")
            if server.token:
                if self.variable is None:
                    raise ConfigError(
                        "This client's settings cannot name a variable: leave --token out, and add "
                        'the header "Authorization: Bearer TOKEN" where you start it.'
                    )
                entry["headers"] = {"Authorization": f"Bearer {self.variable}"}
        if not self.typed:
            del entry["type"]
        if self.timeout is not None:
            entry[self.timeout] = round(1000 * seconds)
        return _json({self.key: {"opentabs": entry}}, indent=2)


@dataclass(frozen=True, slots=True)
class Text:
    """A client whose block is TOML, or the lines of a program.

    Strings of JSON, and lists of them, are written the same in Python, JavaScript and TOML.

    Attributes:
        place: Where the block goes.
        started: The block for a server that the client starts: `$command` and `$arguments`.
        running: The block for a server that runs already: `$url` and `$token`.
        token: What `$token` is when the server wants one.
        imports: What comes before the block then.

    Both blocks have `$seconds` or `$milliseconds`, which is how long to wait for a call.
    """

    place: str
    started: str
    running: str
    token: str
    imports: str = ""

    def write(self, server: Server, seconds: float) -> str:
        """Return the block for a server whose calls take that long at most."""
        patience = {"seconds": f"{seconds:g}", "milliseconds": f"{1000 * seconds:.0f}"}
        if isinstance(server, Started):
            return Template(self.started).substitute(
                patience, command=_json(server.command), arguments=_json(server.arguments)
            )
        block = Template(self.running).substitute(
            patience, url=_json(server.url), token=self.token if server.token else ""
        )
        return self.imports + block if server.token else block


def _json(value: object, *, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
