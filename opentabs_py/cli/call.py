"""`opentabs call`: call a tool from the shell."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Never, cast

import typer

from opentabs_py.cli.fleet_options import (
    Ca,
    Cert,
    Creds,
    FleetName,
    Labels,
    Nats,
    check_no_fleet,
    gather_fleet,
)
from opentabs_py.cli.options import (
    Ceiling,
    Fresh,
    Headed,
    Idle,
    Json,
    NoReview,
    OpenUrls,
    Permissions,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    Profile,
    ServerName,
    SignedIn,
    ToolSources,
    gather_settings,
)
from opentabs_py.errors import (
    ConfigError,
)


def call(
    tool: Annotated[str, typer.Argument(help="The tool's name, as listed by `opentabs tools`.")],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="[JSON|@FILE|-]",
            help="The tool's arguments: a JSON object, @FILE to read a file, or - to read stdin.",
        ),
    ] = "{}",
    plugin: PluginDirs = None,
    plugins: PluginFolders = None,
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    permission: Permissions = None,
    no_review: NoReview = None,
    open_: OpenUrls = None,
    idle: Idle = None,
    ceiling: Ceiling = None,
    headed: Headed = None,
    profile: Profile = None,
    signed_in: SignedIn = None,
    server: ServerName = None,
    fresh: Fresh = False,
    json_: Json = False,
    nats: Nats = None,
    label: Labels = None,
    fleet: FleetName = "default",
    creds: Creds = None,
    ca: Ca = None,
    cert: Cert = None,
) -> None:
    """Call one tool: progress goes to stderr, the result to stdout.

    Uses the running server, if there is one (`opentabs start`). Otherwise starts a server and a
    browser for this call; also with --fresh, and with an option that configures them: --tools,
    --set, --permission, --no-review, --profile, --signed-in, --headed.

    Without --open, opens the plugin's start page, its playground/ or its homepage, unless a running
    server has a page of the plugin open.

    With --nats, calls a tool of a fleet's workers.

    [dim]opentabs call demo_export_messages '{"channelId": "general"}' --plugin DIR --open URL[/]

    Exit codes: 0 success; 1 the tool failed; 2 usage error; 3 the chain failed (no browser, no tab,
    timed out).
    """
    parsed = _read_arguments(arguments)
    is_special = bool(
        tools_ or set_ or permission or no_review or profile or signed_in or headed is not None
    )
    endpoint = None
    if nats is not None:
        if plugin or plugins or open_ or is_special:
            raise ConfigError(
                "With --nats, the tools and the pages are those of the workers. Leave out the "
                "options that name plugins, tools, pages or a browser."
            )
        endpoint = gather_fleet(nats, fleet, creds, ca, cert, labels=label)
    else:
        check_no_fleet(label)
    if not (fresh or is_special or endpoint):
        from opentabs_py.daemon.state import find_state

        if (state := find_state(server)) is not None:
            from opentabs_py.cli.call_running import call_running

            code = call_running(
                state,
                tool,
                parsed,
                plugins=plugin or [],
                plugin_folders=plugins or [],
                urls=open_ or [],
                idle=idle,
                ceiling=ceiling,
                as_json=json_,
            )
            raise typer.Exit(code)

    from opentabs_py.cli.call_fresh import call_fresh

    settings = gather_settings(
        plugin,
        plugins,
        set_,
        permission=permission,
        no_review=no_review,
        idle=idle,
        ceiling=ceiling,
        headed=headed,
        profile=profile,
        signed_in=signed_in,
    ).with_audit_default()
    code = call_fresh(
        settings.for_own_use(audit=settings.audit),
        tool,
        parsed,
        tool_sources=tools_ or [],
        urls=open_ or [],
        endpoint=endpoint,
        as_json=json_,
    )
    raise typer.Exit(code)


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        value = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()  # half of a character cannot be sent
    except OSError as error:
        raise ConfigError(f"Cannot read the arguments: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The arguments are not valid JSON: {error}. Pass an object, such as "
            """'{"channelId": "general"}'."""
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(f"The arguments are a {type(value).__name__}; pass a JSON object.")
    return cast(dict[str, Any], value)


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"JSON has no {name}")
