"""`opentabs config`: what to paste into an MCP client's settings."""

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from opentabs_py.cli.client_blocks import Running, Server, Started
from opentabs_py.cli.clients import CLIENTS, ClientName
from opentabs_py.cli.options import (
    Ceiling,
    Headed,
    OpenUrls,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    Profile,
    ToolSources,
    gather_settings,
)
from opentabs_py.errors import ConfigError


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
    plugins: PluginFolders = None,
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    open_: OpenUrls = None,
    headed: Headed = None,
    profile: Profile = None,
    ceiling: Ceiling = None,
) -> None:
    """Print what to paste into an MCP client's settings, or a program with an agent framework.

    It waits as long as a call may take, where that can be set.

    [dim]opentabs config --client cursor --plugin DIR --headed --profile ~/.opentabs-profile[/]
    """
    from rich.markup import escape

    from opentabs_py.cli.terminal import err, write_result

    known = CLIENTS[client]
    settings = gather_settings(plugin, plugins, set_, ceiling=ceiling)
    server: Server
    if http is not None:
        if plugin or plugins or tools_ or set_ or open_ or profile or headed is not None:
            raise ConfigError(
                "--plugin, --plugins, --tools, --set, --open, --profile and --headed go to "
                "`opentabs serve`."
            )
        url = http.removesuffix("/gateway") + "/gateway" if gateway else http
        server = Running(url, token)
    else:
        if token:
            raise ConfigError("--token goes with --http; a server on stdio needs none.")
        arguments = ["serve", "--stdio", *(["--gateway"] if gateway else [])]
        for directory in settings.plugins:
            arguments += ["--plugin", str(_existing(directory))]
        for folder in settings.plugin_folders:
            arguments += ["--plugins", str(_existing(folder))]
        for source in tools_ or []:
            arguments += ["--tools", _found_from_anywhere(source)]
        for assignment in set_ or []:
            arguments += ["--set", assignment]
        for opened in open_ or []:
            arguments += ["--open", opened]
        if headed:
            arguments.append("--headed")
        if profile is not None:
            arguments += ["--profile", str(profile.expanduser().absolute())]
        if ceiling is not None:
            arguments += ["--ceiling", ceiling]
        server = Started(_command(), arguments)
    block = known.write(server, settings.limits.client_timeout)
    err.print(f"[dim]Into {escape(known.place)}:[/]", soft_wrap=True)
    write_result(block)


def _existing(directory: Path) -> Path:
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory. Give one that is there.")
    return directory.resolve()


def _found_from_anywhere(source: str) -> str:
    """Return the tools' source as a server finds it that is started in another directory."""
    path, colon, name = source.partition(":")
    if path.endswith(".py"):
        file = Path(path).resolve()
        if not file.is_file():
            raise ConfigError(f"There is no file {file} to load tools from.")
        return f"{file}{colon}{name}"
    if find_spec(path.partition(".")[0]) is None:
        raise ConfigError(
            f"Python does not find the module {path} from the directory that a client starts the "
            "server in. Install it, or name its file."
        )
    return source


def _command() -> str:
    """Return this command by its whole path: clients have a PATH of their own."""
    beside = Path(sys.executable).parent
    found = shutil.which("opentabs", path=str(beside)) or shutil.which("opentabs")
    return found or str(beside / "opentabs")
