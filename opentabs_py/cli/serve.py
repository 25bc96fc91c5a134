"""`opentabs serve`: run the MCP server with its own Chromium."""

import logging
import os
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from opentabs_py.cli import collector
from opentabs_py.cli.options import (
    Ceiling,
    Headed,
    IdleTimeout,
    OpenUrls,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    Profile,
    ToolSources,
    gather_settings,
    gather_tools,
)
from opentabs_py.errors import BrowserError, ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.trace.record import CallRecord
    from opentabs_py.session.session import OpenTabs


class Browser(StrEnum):
    """Where the browser comes from."""

    LAUNCH = "launch"
    NONE = "none"


def serve(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve MCP on stdin and stdout as well.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.  \\[default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="N", help="Port to listen on; 0 picks a free one.  \\[default: 8377]"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Require MCP clients to send this token over HTTP. Prefer OPENTABS_TOKEN, "
            "because every user of this machine can read the command line."
        ),
    ] = None,
    browser: Annotated[
        Browser,
        typer.Option(
            help="[b]launch[/] Chromium, or wait for an extension loaded by hand ([b]none[/])."
        ),
    ] = Browser.LAUNCH,
    plugin: PluginDirs = None,
    plugins: PluginFolders = None,
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    open_: OpenUrls = None,
    headed: Headed = None,
    profile: Profile = None,
    exit_with_browser: Annotated[
        bool,
        typer.Option(
            "--exit-with-browser",
            help="Exit when the browser is closed, instead of reopening it at the next call.",
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record where each call's time goes; view it with `opentabs trace show FILE`.",
        ),
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option(
            "--gateway",
            help="Expose two meta-tools (find, call) instead of every tool, for agents with a "
            "small context. They are always available at /mcp/gateway.",
        ),
    ] = None,
    strict_output: Annotated[
        bool | None,
        typer.Option(
            "--strict-output",
            help="Fail calls whose value violates the tool's output schema, instead of logging a "
            "warning.",
        ),
    ] = None,
    output_schemas: Annotated[
        bool | None,
        typer.Option(
            "--output-schemas/--no-output-schemas",
            help="List tools with the schemas of their results, half of the list's size.  "
            "\\[default: yes]",
        ),
    ] = None,
    debug: Annotated[
        bool | None,
        typer.Option("--debug", help="Send stack traces of tool errors to clients."),
    ] = None,
    keepalive: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Repeat a call's last progress after S seconds of silence, for clients that give "
            "up sooner than this server.  \\[default: never]",
        ),
    ] = None,
    late_progress: Annotated[
        bool | None,
        typer.Option(
            "--late-progress/--no-late-progress",
            help="Keep sending stream updates of Python tools as progress after the response, to "
            "clients that use the initialize handshake.  \\[default: yes]",
        ),
    ] = None,
    idle_timeout: IdleTimeout = None,
    ceiling: Ceiling = None,
) -> None:
    """Serve plugins' tools to MCP clients, with a dedicated Chromium.

    Rebuilt plugins are reloaded without a restart, in open tabs too. So are plugins added to, or
    removed from, a plugin folder or a settings file. With only Python tools and no plugin, no
    browser is started.

    Ctrl-C or SIGTERM stops the server and leaves no processes or files behind.
    """
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import log_to_stderr
    from opentabs_py.config.settings import DEFAULT_PORT

    if browser is Browser.NONE and (open_ or headed or profile):
        raise ConfigError(
            "--open, --headed and --profile need a browser that serve launches. Omit them, or omit "
            "--browser none."
        )
    if stdio:
        _check_pipes()
    log_to_stderr()
    # Output printed while tools are imported and created must not reach the client.
    with redirect_stdout(sys.stderr) if stdio else nullcontext():
        tools = gather_tools(tools_)
    # With --stdio only the extension uses the port, so any free one will do.
    read_settings = partial(
        gather_settings,
        plugin,
        plugins,
        set_,
        host=host,
        port=port,
        token=token,
        headed=headed,
        profile=profile,
        gateway=gateway,
        strict_output=strict_output,
        output_schemas=output_schemas,
        debug=debug,
        keepalive=keepalive,
        late_progress=late_progress,
        idle_timeout=idle_timeout,
        ceiling=ceiling,
    )
    settings = read_settings()
    if "port" not in settings.model_fields_set and not (stdio and browser is Browser.LAUNCH):
        settings = settings.model_copy(update={"port": DEFAULT_PORT})

    async def forever() -> int:
        with redirect_stdout(sys.stderr) if stdio else nullcontext():
            await _serve(
                settings,
                tools,
                read_settings=read_settings,
                stdio=stdio,
                browser=browser,
                urls=open_ or [],
                exit_with_browser=exit_with_browser,
                trace=trace,
            )
        return 0

    raise typer.Exit(run(forever, interruptible=False))


MOST_START_PAGES = 3  # plugins' start pages that are opened in a window


async def _serve(
    settings: "Settings",
    tools: Sequence[Any],
    *,
    read_settings: Callable[[], "Settings"],
    stdio: bool,
    browser: Browser,
    urls: Sequence[str],
    exit_with_browser: bool,
    trace: Path | None,
) -> None:
    from opentabs_py.cli.terminal import print_quarantined, warn_of_stale
    from opentabs_py.server.mcp_side import load_soon
    from opentabs_py.session.session import OpenTabs

    logger = logging.getLogger("opentabs_py")
    load_soon()  # while the browser starts
    async with OpenTabs(
        tools=tools,
        settings=settings,
        read_settings=read_settings,
        browser=browser.value,
        reopen=None if exit_with_browser else urls,
        trace=trace,
    ) as tabs:
        print_quarantined(tabs.quarantined)
        warn_of_stale(tabs.plugins)
        if browser is Browser.NONE and tabs.has_pages:
            _print_how_to_load(str(tabs.extension_dir))
        for url in urls:
            await tabs.open(url)
        if settings.headed:
            tabs.registry.observe(_log_call)
            if not urls:
                await _open_start_pages(tabs)
        if not (tabs.plugins or tabs.quarantined or tabs.tools):
            logger.warning(
                "Nothing to serve: there is no plugin and no tool. Pass a plugin with --plugin "
                "DIR, or Python tools with --tools FILE."
            )
        owners = dict.fromkeys(tool.listing.owner for tool in tabs.tools)
        names = ", ".join(owners) or "no plugin"
        logger.info("Serving %d tools from %s", len(tabs.tools), names)
        logger.info("MCP at %s", tabs.mcp_url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_settle)
            tasks.start_soon(tabs.watch_plugins)
            if browser is Browser.LAUNCH and tabs.has_pages:
                scope = tasks.cancel_scope if exit_with_browser else None
                tasks.start_soon(_watch_browser, tabs, scope)
            if stdio:
                from opentabs_py.server.stdio import serve_stdio

                # JSON may encode a two-byte character as six bytes.
                limit = 3 * settings.message_limit + 1024 * 1024
                await serve_stdio(tabs.mcp_server, line_limit=limit)
                tasks.cancel_scope.cancel()
            else:
                await anyio.sleep_forever()


async def _open_start_pages(tabs: "OpenTabs") -> None:
    """Open the plugins' start pages, because a window with an empty page is no use to anyone."""
    from opentabs_py.cli.terminal import warn

    for plugin in tabs.plugins[:MOST_START_PAGES]:
        try:
            await tabs.open_start_page(plugin.manifest.name)
        except BrowserError as error:
            warn(str(error))


def _log_call(record: "CallRecord") -> None:
    from opentabs_py.tracing.waterfall import headline

    logging.getLogger("opentabs_py").info("%s", headline(record).plain)


async def _settle() -> None:
    from opentabs_py.server.mcp_side import load

    await load()
    collector.settle()


async def _watch_browser(tabs: "OpenTabs", ends: anyio.CancelScope | None) -> None:
    """Log that the browser is gone and when it is back, or cancel `ends` when it is gone."""
    logger = logging.getLogger("opentabs_py")
    while True:
        await tabs.wait_browser_gone()
        if ends is not None:
            logger.info("The browser was closed or died; the server exits")
            ends.cancel()
            return
        logger.info("The browser was closed or died; the next call reopens it")
        await tabs.wait_browser_back()
        logger.info("The browser is open again")


def _check_pipes() -> None:
    for stream, number in (("stdin", 0), ("stdout", 1)):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            raise ConfigError(f"--stdio needs {stream}, which is closed.") from None
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(number)):
            raise ConfigError(
                f"--stdio talks to an MCP client through pipes, but {stream} is a file. Let the "
                "client start this command."
            )


def _print_how_to_load(directory: str) -> None:
    sys.stderr.write(
        f"""\
Waiting for the extension. To load it by hand in Chromium or Chrome:
  1. Open chrome://extensions and turn on Developer mode.
  2. Choose "Load unpacked" and select {directory}
The extension connects by itself whenever this server is running. After you update opentabs,
press the extension's reload button on that page.
"""
    )
