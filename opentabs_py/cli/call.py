"""`opentabs call`: call a tool from the shell."""

import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Never, cast

import typer

from opentabs_py import __version__
from opentabs_py.cli.call_outcome import EXIT_CODES, failed_outcome, print_outcome
from opentabs_py.cli.codes import CHAIN_FAILED
from opentabs_py.cli.fleet_options import (
    Ca,
    Cert,
    Creds,
    FleetName,
    Labels,
    Nats,
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
    gather_tools,
)
from opentabs_py.errors import (
    ChainError,
    ConfigError,
    ErrorDetail,
    OpenTabsError,
)

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs

# The SDK's client imports the last one when it validates a result.
CLIENT_MODULES = ("mcp.client", "mcp.client.streamable_http", "jsonschema.validators")


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
    server: ServerName = "default",
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
    if not (fresh or is_special or endpoint):
        from opentabs_py.config.names import check_name
        from opentabs_py.daemon.state import read_state

        if (state := read_state(check_name(server, "server name"))) is not None:
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

    from opentabs_py.cli.run import run

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
        port=0,
    ).model_copy(update={"token": None, "max_result": None})  # the server is for this call only
    settings = settings.with_audit_default()

    async def once() -> int:
        from opentabs_py.cli.log import log_to_stderr
        from opentabs_py.cli.plugin_warnings import print_quarantined, warn_of_stale
        from opentabs_py.cli.terminal import progress_bar
        from opentabs_py.server.mcp_side import load_soon
        from opentabs_py.session.plugins import refuse_left_out
        from opentabs_py.session.session import OpenTabs

        if not json_:
            log_to_stderr(level=logging.WARNING)
        tools = gather_tools(tools_)  # which may import anything
        session = OpenTabs(
            tools=tools,
            settings=settings,
            nats=endpoint,
            while_launching=partial(load_soon, *CLIENT_MODULES),
        )
        with progress_bar("Starting", quiet=json_) as bar:
            async with session as tabs:
                print_quarantined(tabs.quarantined)
                warn_of_stale(tabs.plugins)
                refuse_left_out(tool, tabs.registry, tabs.quarantined)
                for url in open_ or []:
                    bar.say(f"Opening {url}")
                    await tabs.open(url)
                if not (open_ or endpoint):
                    await _open_start_page(tabs, tool)
                bar.say(tool)
                made = call_over_mcp(tabs.mcp_url, tool, parsed, bar.update)
                outcome, failed = await _while_asking(tabs, made, bar.pause)
                bar.stop()
                print_outcome(outcome, as_json=json_)
        return EXIT_CODES[failed]

    began = time.perf_counter()
    try:
        code = run(once)
    except OpenTabsError as error:
        if not json_:
            raise
        print_outcome(failed_outcome(error, time.perf_counter() - began), as_json=True)
        code = CHAIN_FAILED
    raise typer.Exit(code)


async def _while_asking(
    tabs: "OpenTabs",
    made: Awaitable[tuple[dict[str, Any], str | None]],
    pause: Callable[[], AbstractContextManager[None]],
) -> tuple[dict[str, Any], str | None]:
    """Wait for a call; until then, ask the user at the terminal, if it is interactive."""
    import anyio

    from opentabs_py.cli.asking import is_someone_there
    from opentabs_py.cli.terminal_answers import answer_in_terminal

    if not is_someone_there():
        return await made
    error: Exception | None = None
    result: tuple[dict[str, Any], str | None] = {}, None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(answer_in_terminal, tabs.registry.gate.questions, pause=pause))
        try:
            result = await made
        except Exception as failure:  # noqa: BLE001
            error = failure  # raised below, because the task group would wrap it
        tasks.cancel_scope.cancel()
    if error is not None:
        raise error
    return result


async def _open_start_page(tabs: "OpenTabs", tool: str) -> None:
    found = tabs.registry.get(tool)
    if found is not None and any(p.manifest.name == found.listing.owner for p in tabs.plugins):
        await tabs.open_start_page(found.listing.owner)


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        value = json.loads(text, parse_constant=_refuse_constant)
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


async def call_over_mcp(
    url: str,
    tool: str,
    arguments: dict[str, Any],
    on_progress: Callable[[float, float | None, str | None], None],
) -> tuple[dict[str, Any], str | None]:
    """Call a tool through a real MCP client over Streamable HTTP.

    Returns:
        `{isError, content, structuredContent, error, progress, seconds}`, `progress` as
        `[{progress, total, message, at}]` with `at` in seconds since the call; and what
        failed, if anything did: `tool`, `caller` or `chain`.
    """
    from opentabs_py.server.mcp_side import load

    await load(*CLIENT_MODULES)
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.types import Implementation

    from opentabs_py.server.mcp import ERROR_META_KEY, FAILED_META_KEY

    reports: list[dict[str, Any]] = []
    began = time.perf_counter()

    # The SDK passes these as keyword arguments.
    async def note(progress: float, total: float | None, message: str | None) -> None:
        at = round(time.perf_counter() - began, 4)
        reports.append({"progress": progress, "total": total, "message": message, "at": at})
        on_progress(progress, total, message)

    # The client limits messages to 1 MiB by default; tools may return more.
    try:
        info = Implementation(name="opentabs call", version=__version__)
        transport = streamable_http_client(url, max_sse_event_size=None)
        async with Client(transport, client_info=info) as client:
            # The client validates the result, and would otherwise request the schema afterwards.
            await client.list_tools()
            began = time.perf_counter()
            result = await client.call_tool(tool, arguments, progress_callback=note)
            seconds = time.perf_counter() - began
    except Exception as error:
        why = _innermost(error)
        message = f"The MCP client gave up: {why}. The tool may have run."
        raise ChainError(ErrorDetail("CLIENT_FAILED", message, category="chain")) from error
    dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    meta = result.meta or {}
    outcome = {
        "isError": result.is_error,
        "content": dumped["content"],
        "structuredContent": result.structured_content,
        "error": meta.get(ERROR_META_KEY),
        "progress": reports,
        "seconds": round(seconds, 4),
    }
    return outcome, meta.get(FAILED_META_KEY)


def _innermost(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = cast(ExceptionGroup[Exception], error).exceptions[0]
    return error
