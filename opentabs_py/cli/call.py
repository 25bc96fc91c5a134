"""`opentabs call`: call a tool from the shell."""

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Never, cast

import typer

from opentabs_py.cli.codes import CHAIN_FAILED, TOOL_FAILED, USAGE
from opentabs_py.cli.options import (
    Ceiling,
    Headed,
    IdleTimeout,
    Json,
    OpenUrls,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    Profile,
    ToolSources,
    gather_settings,
    gather_tools,
)
from opentabs_py.errors import (
    CallError,
    ChainError,
    ConfigError,
    ErrorDetail,
    ErrorJson,
    OpenTabsError,
    PluginError,
)

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs

# The SDK's client imports the last one when it validates a result.
CLIENT_MODULES = ("mcp.client", "mcp.client.streamable_http", "jsonschema.validators")
# By what failed.
EXIT_CODES = {None: 0, "tool": TOOL_FAILED, "caller": USAGE, "chain": CHAIN_FAILED}


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
    open_: OpenUrls = None,
    idle_timeout: IdleTimeout = None,
    ceiling: Ceiling = None,
    headed: Headed = None,
    profile: Profile = None,
    json_: Json = False,
) -> None:
    """Call one tool: progress goes to stderr, the result to stdout.

    Without --open, opens the plugin's start page: its playground/, or its homepage.

    [dim]opentabs call demo_export_messages '{"channelId": "general"}' --plugin DIR --open URL[/]

    Exit codes: 0 success; 1 the tool failed; 2 usage error; 3 the chain failed (no browser, no tab,
    timed out).
    """
    from opentabs_py.cli.run import run

    parsed = _read_arguments(arguments)
    settings = gather_settings(
        plugin,
        plugins,
        set_,
        idle_timeout=idle_timeout,
        ceiling=ceiling,
        headed=headed,
        profile=profile,
        port=0,
    ).model_copy(update={"token": None})  # the server exists only for this call

    async def once() -> int:
        from opentabs_py.cli.terminal import (
            log_to_stderr,
            print_quarantined,
            progress_bar,
            warn_of_stale,
        )
        from opentabs_py.server.mcp_side import load_soon
        from opentabs_py.session.session import OpenTabs

        if not json_:
            log_to_stderr(level=logging.WARNING)
        tools = gather_tools(tools_)  # which may import anything
        load_soon(*CLIENT_MODULES)  # while the browser starts
        with progress_bar("Starting", quiet=json_) as bar:
            async with OpenTabs(tools=tools, settings=settings) as tabs:
                print_quarantined(tabs.quarantined)
                warn_of_stale(tabs.plugins)
                _refuse_left_out(tabs, tool)
                for url in open_ or []:
                    bar.say(f"Opening {url}")
                    await tabs.open(url)
                if not open_:
                    await _open_start_page(tabs, tool)
                bar.say(tool)
                outcome, failed = await call_over_mcp(tabs.mcp_url, tool, parsed, bar.update)
                bar.stop()
                _print(outcome, as_json=json_)
        return EXIT_CODES[failed]

    began = time.perf_counter()
    try:
        code = run(once)
    except OpenTabsError as error:
        if not json_:
            raise
        outcome: dict[str, Any] = {
            "isError": True,
            "content": [],
            "structuredContent": None,
            "error": describe(error),
            "progress": [],
            "seconds": round(time.perf_counter() - began, 4),
        }
        _print(outcome, as_json=True)
        code = CHAIN_FAILED
    raise typer.Exit(code)


def _refuse_left_out(tabs: "OpenTabs", tool: str) -> None:
    """Raise PluginError if the tool is unknown and a plugin was left out, since that may be why."""
    if tabs.quarantined and tabs.registry.get(tool) is None:
        reasons = " ".join(each.reason for each in tabs.quarantined)
        raise PluginError(f"There is no tool {tool!r}, and a plugin was left out: {reasons}")


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


def describe(error: OpenTabsError) -> ErrorJson:
    """Return an error in the same fields as a tool's error."""
    detail = error.detail if isinstance(error, CallError) else None
    return (detail or ErrorDetail("CHAIN_FAILED", str(error), category="chain")).to_json()


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
        async with Client(streamable_http_client(url, max_sse_event_size=None)) as client:
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


def _print(outcome: dict[str, Any], *, as_json: bool) -> None:
    from opentabs_py.cli.terminal import write_result
    from opentabs_py.core.text import visible

    if as_json:
        write_result(json.dumps(outcome, ensure_ascii=False))
        return
    for content in outcome["content"]:
        text = content.get("text") or json.dumps(content, ensure_ascii=False)
        if outcome["isError"]:
            sys.stderr.write(visible(text) + "\n")
        else:
            write_result(text)
