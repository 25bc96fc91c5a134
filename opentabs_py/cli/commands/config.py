"""`opentabs config`: print the settings or the code for an MCP client."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from opentabs_py.cli.client_blocks import RunningServer, Server, StartedServer
from opentabs_py.cli.clients import CLIENTS, ClientName
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import (
    Ceiling,
    Headed,
    OpenUrls,
    PluginOptions,
    Profile,
    ServerName,
    find_profile,
    gather_settings,
    is_on_command_line,
)
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings


@grouped
def config(
    ctx: typer.Context,
    client: Annotated[
        ClientName,
        typer.Option(metavar="CLIENT", help=f"The client to configure: {', '.join(ClientName)}."),
    ],
    http: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Connect to a running `opentabs serve`, for example at "
            "http://127.0.0.1:8377/mcp, instead of letting the client start one.",
        ),
    ] = None,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="Connect to the server that is running (`opentabs start`), at its address.",
        ),
    ] = False,
    server: ServerName = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token", help="Send the token from OPENTABS_TOKEN to the server (with --http)."
        ),
    ] = False,
    gateway: Annotated[
        bool,
        typer.Option("--gateway", help="Expose two meta-tools (find, call) instead of every tool."),
    ] = False,
    *,
    plugins: PluginOptions,
    open_: OpenUrls = None,
    headed: Headed = None,
    profile: Profile = None,
    ceiling: Ceiling = None,
) -> None:
    """Print the settings for an MCP client, or the code for an agent framework.

    If the client's timeout can be set, it is set to the longest time that a call may take.

    [dim]opentabs config --client cursor --plugin DIR --headed --profile ~/.opentabs-profile[/]
    """
    from rich.markup import escape

    from opentabs_py.cli.terminal import err, write_result

    known = CLIENTS[client]
    if running:
        if http is not None:
            raise ConfigError("--running and --http cannot be combined: --running finds the URL.")
        http, token = _running(server)
    elif is_on_command_line(ctx, "server"):
        raise ConfigError("--server names a running server to connect to: add --running.")
    settings = gather_settings(plugins, ceiling=ceiling)
    target: Server
    if http is not None:
        if plugins.is_given or open_ or profile or headed is not None:
            raise ConfigError(
                "--plugin, --plugins, --tools, --set, --open, --profile and --headed cannot be "
                "combined with --http or --running. Pass them to `opentabs serve` instead."
            )
        _check_endpoint(http)
        url = http.removesuffix("/gateway") + "/gateway" if gateway else http
        target = RunningServer(url, token)
    else:
        if token:
            raise ConfigError("--token requires --http; a server on stdio needs no token.")
        arguments = ["serve", "--stdio", *(["--gateway"] if gateway else [])]
        arguments += _sources(settings, plugins.tools_ or [], plugins.set_ or [])
        arguments += [part for each in open_ or [] for part in ("--open", each)]
        if headed:
            arguments.append("--headed")
        if profile is not None:
            arguments += ["--profile", str(find_profile(profile).absolute())]
        if ceiling is not None:
            arguments += ["--ceiling", ceiling]
        target = StartedServer(_command(), arguments)
        _warn_of_stale(settings.plugins)
        if settings.plugins and not (open_ or headed):
            _warn_of_no_page()
    block = known.write(target, settings.limits.client_timeout)
    err.print(f"[dim]Paste into {escape(known.place)}:[/]", soft_wrap=True)
    write_result(block)


def _check_endpoint(url: str) -> None:
    """Check that a URL has a path: a server's address alone is not its MCP endpoint.

    Raises:
        ConfigError: It has none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.path.strip("/"):
        raise ConfigError(
            f"--http needs the whole URL of the MCP endpoint, such as http://127.0.0.1:8377/mcp, "
            f"not {url!r}. `opentabs status` prints that of a running server."
        )


def _sources(
    settings: "Settings", tools: Sequence[str], assignments: Sequence[str]
) -> Iterator[str]:
    """Yield the arguments that name what to serve, in a form that works from any directory."""
    for directory in settings.plugins:
        yield from ("--plugin", str(_existing(directory)))
    for folder in settings.plugin_folders:
        yield from ("--plugins", str(_existing(folder)))
    for source in tools:
        yield from ("--tools", _found_from_anywhere(source))
    for assignment in assignments:
        yield from ("--set", assignment)


def _running(name: str | None) -> tuple[str, bool]:
    """Return the URL of a running server, and whether it requires a token.

    Raises:
        ConfigError: It is not running.
    """
    from opentabs_py.daemon.state import DEFAULT_NAME, require_state

    state = require_state(name or DEFAULT_NAME)
    return state.mcp_url, state.mcp_token is not None


def _warn_of_stale(plugins: Sequence[Path]) -> None:
    from opentabs_py.cli.terminal import warn
    from opentabs_py.plugins.freshness import why_stale

    for directory in plugins:
        if (why := why_stale(directory, directory.name)) is not None:
            warn(why)


def _warn_of_no_page() -> None:
    from opentabs_py.cli.terminal import err

    err.print(
        "[yellow]The browser will be headless and open no page, so plugin tools cannot run. "
        "Add --open URL, or --headed to open pages yourself.[/]",
        soft_wrap=True,
    )


def _existing(directory: Path) -> Path:
    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory.")
    return directory.resolve()


def _found_from_anywhere(source: str) -> str:
    """Return the tools' source in a form that works from any working directory."""
    path, colon, name = source.partition(":")
    if path.endswith(".py"):
        file = Path(path).resolve()
        if not file.is_file():
            raise ConfigError(f"Cannot load tools from {file}: the file does not exist.")
        return f"{file}{colon}{name}"
    if find_spec(path.partition(".")[0]) is None:
        raise ConfigError(
            f"The module {path} cannot be imported from the directory in which a client starts the "
            "server. Install it, or pass its file instead."
        )
    return source


def _command() -> str:
    """Return the absolute path of this command, because clients have their own PATH."""
    beside = Path(sys.executable).parent
    found = shutil.which("opentabs", path=str(beside)) or shutil.which("opentabs")
    return found or str(beside / "opentabs")
