"""`opentabs call`: call a tool from the shell."""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from opentabs_py.cli.call_outcome import failed_outcome, print_outcome
from opentabs_py.cli.exit_codes import USAGE
from opentabs_py.cli.fleet_options import WorkerSelection, how_to_use_no_fleet, named_by
from opentabs_py.cli.option_groups import grouped
from opentabs_py.cli.options import (
    ConsentOptions,
    Fresh,
    Json,
    PageOptions,
    PluginOptions,
    ServerName,
    TimerOptions,
    gather_settings,
    refuse_server,
)
from opentabs_py.core.json_numbers import refuse_constant
from opentabs_py.core.text import json_kind, shorten
from opentabs_py.errors import ConfigError


@grouped
def call(
    ctx: typer.Context,
    tool: Annotated[
        str,
        typer.Argument(metavar="TOOL", help="The tool's name, as listed by `opentabs tools`."),
    ],
    arguments: Annotated[
        str,
        typer.Argument(
            metavar="JSON|@FILE|-",
            help="The tool's arguments: a JSON object, @FILE to read a file, or - to read stdin.",
        ),
    ] = "{}",
    *,
    server: ServerName = None,
    fresh: Fresh = False,
    json_: Json = False,
    plugins: PluginOptions,
    consent: ConsentOptions,
    browser: PageOptions,
    timers: TimerOptions,
    fleet: WorkerSelection,
) -> None:
    """Call one tool: progress goes to stderr, the result to stdout.

    Uses the running server, if there is one (`opentabs start`). If there is none, starts a server
    and a browser for this call. It also does that with --fresh, and with an option that configures
    them: --tools, --set, --permission, --no-review, --profile, --signed-in, --headed.

    Opens the plugin's start page (its playground/ or its homepage), unless you pass --open, or the
    running server already has a page of the plugin open.

    With --nats, calls a tool of a fleet's workers.

    [dim]opentabs call demo_export_messages '{"channelId": "general"}' --plugin DIR --open URL[/]

    Exit codes: 0 success; 1 the tool failed; 2 usage error, or the call is not allowed; 3 the chain
    failed (no browser, no tab, timed out); 130 interrupted.
    """
    parsed = _read_arguments(arguments)
    urls = browser.open_ or []
    of_server = _options_of_a_server(plugins, consent, browser)
    needs_own_server = any(of_server.values())
    nats = fleet.fleet_options()
    refuse_server(ctx, {"--fresh": fresh, named_by(ctx): nats, **of_server})
    if nats and (plugins.plugin or plugins.plugins or urls or needs_own_server):
        raise ConfigError(
            f"With {named_by(ctx)}, the tools and the pages are those of the workers. Leave out "
            "the options that name plugins, tools, pages or a browser, or "
            f"{how_to_use_no_fleet(ctx)}."
        )
    uses_server = not (fresh or needs_own_server or nats)
    if uses_server:
        from opentabs_py.daemon.state import find_state

        if (state := find_state(server)) is not None:
            from opentabs_py.cli.call_running import call_running

            code = call_running(
                state,
                tool,
                parsed,
                plugins=plugins.plugin or [],
                plugin_folders=plugins.plugins or [],
                urls=urls,
                idle=timers.idle,
                ceiling=timers.ceiling,
                as_json=json_,
            )
            raise typer.Exit(code)

    settings = gather_settings(plugins, consent, browser, timers).with_audit_default()
    if not (nats or plugins.tools_ or settings.may_need_browser):
        from opentabs_py.core.failures import no_tools
        from opentabs_py.daemon.state import refuse_unknown

        if uses_server:
            refuse_unknown()
        refused = no_tools(tool, knows_server=uses_server)
        if not json_:
            raise refused
        print_outcome(failed_outcome(refused, 0), as_json=True)
        raise typer.Exit(USAGE)

    from opentabs_py.cli.call_fresh import call_fresh

    code = call_fresh(
        # The MCP client would refuse a value that breaks its schema, without showing it.
        settings.for_own_use(audit=settings.audit, strict_output=True),
        tool,
        parsed,
        load_tools=plugins.load_tools,
        urls=urls,
        nats=nats,
        as_json=json_,
    )
    raise typer.Exit(code)


def _options_of_a_server(
    plugins: PluginOptions, consent: ConsentOptions, browser: PageOptions
) -> dict[str, object]:
    """Return the options that describe a server; with any of them, the call starts its own."""
    return {
        "--tools": plugins.tools_,
        "--set": plugins.set_,
        "--permission": consent.permission,
        "--no-review": consent.no_review,
        "--profile": browser.profile,
        "--signed-in": browser.signed_in,
        "--headed": browser.headed,
        "--headless": browser.headed is False,
    }


def _read_arguments(given: str) -> dict[str, Any]:
    text: str | bytes = given  # of bytes, json finds the encoding: UTF-8, or UTF-16 from PowerShell
    try:
        if given == "-":
            text = sys.stdin.buffer.read()
        elif given.startswith("@"):
            text = Path(given[1:]).read_bytes()
        value = json.loads(text, parse_constant=refuse_constant, object_pairs_hook=_as_object)
        json.dumps(value, ensure_ascii=False).encode()  # half of a character cannot be sent
    except OSError as error:
        where = "stdin" if given == "-" else given[1:]
        raise ConfigError(f"Cannot read the arguments in {where}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"The arguments are not valid JSON: {error}. Pass an object, such as "
            """'{"channelId": "general"}'."""
        ) from error
    if not isinstance(value, dict):
        raise ConfigError(f"The arguments are {json_kind(value)}; pass a JSON object.")
    return cast(dict[str, Any], value)


def _as_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; with a key twice, one of its values would be lost silently."""
    made = dict(members)
    if len(made) < len(members):
        [(twice, _)] = Counter(name for name, _ in members).most_common(1)
        raise ConfigError(
            f"The arguments have the key {json.dumps(shorten(twice))} twice in one object. Pass it "
            "once."
        )
    return made
