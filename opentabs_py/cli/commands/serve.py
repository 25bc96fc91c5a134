"""`opentabs serve`: run the MCP server with its own Chromium."""

import os
import stat
import sys
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opentabs_py.cli.fleet_options import EndpointOptions, how_to_use_no_fleet
from opentabs_py.cli.metrics_option import read_address
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import ConsentOptions, TimerOptions, gather_settings
from opentabs_py.cli.serve_options import (
    BrowserSourceOptions,
    ClientOptions,
    RecordOptions,
    ServerOptions,
    ToolOptions,
)
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings


@grouped
def serve(
    ctx: typer.Context,
    server: ServerOptions,
    tools: ToolOptions,
    browsers: BrowserSourceOptions,
    consent: ConsentOptions,
    clients: ClientOptions,
    timers: TimerOptions,
    records: RecordOptions,
    fleet: EndpointOptions,
) -> None:
    """Serve plugins' tools to MCP clients, with a dedicated Chromium.

    A rebuilt plugin is reloaded without a restart, in open tabs too. Plugins that are added to or
    removed from a plugin folder or a settings file are noticed as well. With only Python tools and
    no plugin, no browser is started.

    Ctrl-C or SIGTERM stops the server and leaves no processes or files behind. `opentabs start`
    does the same in the background. Other commands, such as `opentabs call`, use this server too;
    with --stdio, only if --name names it.

    With --nats, it is an endpoint of a fleet: it serves the tools of all workers (`opentabs
    worker`), and launches no browser.
    """
    from opentabs_py.cli.run import SERVER_CLOSES_WITHIN, run
    from opentabs_py.cli.serve_session import claim_name, serve_session
    from opentabs_py.daemon.state import ServeCommand

    stdio = server.stdio
    source, profiles = browsers.source()
    nats = fleet.fleet_options()
    if nats is not None:
        _check_endpoint(tools, browsers, how_to_use_no_fleet(ctx))
    if tools.hands and source == "none":
        raise ConfigError(
            "--hands needs a browser that serve launches or attaches to; it cannot be combined "
            "with --browser none."
        )
    metrics = read_address(server.metrics)
    urls = browsers.open_ or []
    if stdio:
        _check_pipes()
    _log_to(server.log_file)
    of_python = tools.load_tools()
    read_settings = partial(
        gather_settings, server, tools, browsers, consent, clients, timers, records
    )
    settings = read_settings().with_audit_default()
    # With --stdio only the extension uses the port, so any free one will do.
    if not (stdio and source == "launch"):
        settings = settings.with_default_port()

    if server.check:
        _check_plugins(settings)
        return

    command = ServeCommand(ctx.meta["arguments"], Path.cwd(), server.log_file)

    async def forever() -> int:
        from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
        from opentabs_py.session.session import OpenTabs

        with (
            claim_name(server.name, command, stdio=stdio) as claim,
            redirect_stdout(sys.stderr) if stdio else nullcontext(),
        ):
            session = OpenTabs(
                tools=of_python,
                settings=settings,
                read_settings=read_settings,
                browser=source,
                browsers=profiles,
                nats=nats,
                relaunch_urls=None if browsers.exit_with_browser else urls,
                trace=records.trace,
                while_launching=load_sdk_soon,
            )
            await serve_session(
                session,
                urls=urls,
                exit_with_browser=browsers.exit_with_browser,
                stdio=stdio,
                claim=claim,
                metrics=metrics,
            )
        return 0

    raise typer.Exit(run(forever, interruptible=False, close_within=SERVER_CLOSES_WITHIN))


def _check_endpoint(tools: ToolOptions, browsers: BrowserSourceOptions, otherwise: str) -> None:
    """Refuse options that an endpoint of a fleet has no use for.

    Args:
        tools: The options about tools.
        browsers: The options about browsers.
        otherwise: How to run a server outside the fleet, such as `leave out --nats`.

    Raises:
        ConfigError: One is given.
    """
    if tools.plugin or tools.plugins or tools.set_ or browsers.is_given:
        raise ConfigError(
            "An endpoint of a fleet has no plugins and no browser; its workers have them. Pass the "
            "options of plugins, --open and those of the browser to `opentabs worker`, or "
            f"{otherwise}."
        )
    if tools.webmcp or tools.webmcp_polyfill:
        raise ConfigError(
            "The tools that pages register are not served in a fleet. Leave out --webmcp, or "
            f"{otherwise}."
        )
    if tools.hands:
        raise ConfigError(
            "--hands needs a browser, and an endpoint of a fleet has none. Leave it out, or "
            f"{otherwise}."
        )


def _log_to(file: Path | None) -> None:
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.daemon.log import log_to_file

    if file is None:
        log_to_stderr()
    else:
        log_to_file(file)


def _check_plugins(settings: "Settings") -> None:
    from opentabs_py.plugins.folders import load_configured
    from opentabs_py.plugins.load import refuse_unknown_plugins

    loaded, skipped = load_configured(settings)
    refuse_unknown_plugins(settings.plugin_settings, loaded, skipped)


def _check_pipes() -> None:
    for stream, number in (("stdin", 0), ("stdout", 1)):
        mode = os.fstat(number).st_mode
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(number)):
            raise ConfigError(
                f"--stdio talks to an MCP client through pipes, but {stream} is a file, or "
                "closed. Let the client start this command."
            )
