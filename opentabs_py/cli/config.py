"""`opentabs config`: what to paste into an MCP client's settings."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from opentabs_py.cli.options import Headed, OpenUrls, PluginDirs, Profile
from opentabs_py.errors import ConfigError

Json = dict[str, Any]


class ClientName(StrEnum):
    """The clients whose settings we know."""

    CLAUDE_CODE = "claude-code"
    CLAUDE_DESKTOP = "claude-desktop"
    CURSOR = "cursor"
    VSCODE = "vscode"


@dataclass(frozen=True, slots=True)
class Client:
    """How a client writes its servers down.

    Attributes:
        file: Where the block goes.
        key: The member that holds the servers.
        stdio: Makes the entry of a server that the client starts, of its command and arguments.
        http: Makes the entry of one that runs already, of its URL; None when it has none.
        variable: How an environment variable is written there.
    """

    file: str
    key: str
    stdio: Callable[[Json], Json]
    http: Callable[[str], Json] | None
    variable: str = "${OPENTABS_TOKEN}"


CLIENTS = {
    ClientName.CLAUDE_CODE: Client(
        ".mcp.json in the project, or ~/.claude.json for all projects",
        "mcpServers",
        lambda started: {"type": "stdio", **started},
        lambda url: {"type": "http", "url": url},
    ),
    ClientName.CLAUDE_DESKTOP: Client(
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
        "mcpServers",
        lambda started: started,
        None,
    ),
    ClientName.CURSOR: Client(
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json for all projects",
        "mcpServers",
        lambda started: started,
        lambda url: {"url": url},
        "${env:OPENTABS_TOKEN}",
    ),
    ClientName.VSCODE: Client(
        ".vscode/mcp.json",
        "servers",
        lambda started: {"type": "stdio", **started},
        lambda url: {"type": "http", "url": url},
        "${env:OPENTABS_TOKEN}",
    ),
}


def config(
    client: Annotated[ClientName, typer.Option(help="The client that is to use the tools.")],
    http: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Use an `opentabs serve` that runs already, as at http://127.0.0.1:8377/mcp, "
            "instead of one that the client starts.",
        ),
    ] = None,
    token: Annotated[
        bool, typer.Option("--token", help="It wants a token: take OPENTABS_TOKEN's.")
    ] = False,
    gateway: Annotated[
        bool,
        typer.Option("--gateway", help="Two tools in place of all, for a small context."),
    ] = False,
    plugin: PluginDirs = None,
    open_: OpenUrls = None,
    headed: Headed = None,
    profile: Profile = None,
) -> None:
    """Print the block to paste into an MCP client's settings.

    [dim]opentabs config --client cursor --plugin DIR --headed --profile ~/.opentabs-profile[/]
    """
    from opentabs_py.cli.terminal import err, write_result

    known = CLIENTS[client]
    if http is not None:
        if plugin or open_ or profile or headed is not None:
            raise ConfigError("--plugin, --open, --profile and --headed go to `opentabs serve`.")
        if known.http is None:
            raise ConfigError(f"{client.value} takes no URL in its settings: leave --http out.")
        entry = known.http(http.removesuffix("/gateway") + "/gateway" if gateway else http)
        if token:
            entry["headers"] = {"Authorization": f"Bearer {known.variable}"}
    else:
        if token:
            raise ConfigError("--token goes with --http; a server on stdio needs none.")
        arguments = ["serve", "--stdio", *(["--gateway"] if gateway else [])]
        for directory in plugin or []:
            arguments += ["--plugin", str(_existing(directory))]
        for url in open_ or []:
            arguments += ["--open", url]
        if headed:
            arguments.append("--headed")
        if profile is not None:
            arguments += ["--profile", str(profile.expanduser().absolute())]
        entry = known.stdio({"command": _command(), "args": arguments})
    err.print(f"[dim]Into {known.file}:[/]", soft_wrap=True)
    write_result(json.dumps({known.key: {"opentabs": entry}}, indent=2, ensure_ascii=False))


def _existing(directory: Path) -> Path:
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory. Give the plugin's own.")
    return directory.resolve()


def _command() -> str:
    """Give this command by its whole path: clients have a PATH of their own."""
    beside = Path(sys.executable).parent
    found = shutil.which("opentabs", path=str(beside)) or shutil.which("opentabs")
    return found or str(beside / "opentabs")
