"""`opentabs serve`: the MCP server with its own Chromium."""

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
    from opentabs_py.config import Settings
    from opentabs_py.core.records import CallRecord
    from opentabs_py.session import OpenTabs


class Browser(StrEnum):
    """Where the browser comes from."""

    LAUNCH = "launch"
    NONE = "none"


def serve(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak MCP on stdin and stdout as well.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Listen here.  \\[default: 127.0.0.1]")] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="N", help="Listen here; 0 takes a free port.  \\[default: 8377]"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Let in only MCP clients that present it, over HTTP. Better in OPENTABS_TOKEN: "
            "every user of this machine can read a command line."
        ),
    ] = None,
    browser: Annotated[
        Browser,
        typer.Option(help="[b]launch[/] a Chromium, or wait for an extension loaded by hand."),
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
            help="End when the browser is closed, instead of opening it again at the next call.",
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write down where each call's time goes; `opentabs trace show FILE` shows it.",
        ),
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option(
            "--gateway",
            help="Serve two tools in place of all, one that finds and one that calls them, for "
            "agents with a small context. Without it they are at /mcp/gateway.",
        ),
    ] = None,
    strict_output: Annotated[
        bool | None,
        typer.Option(
            "--strict-output",
            help="Fail a call whose value breaks the tool's output schema, instead of logging it.",
        ),
    ] = None,
    debug: Annotated[
        bool | None,
        typer.Option("--debug", help="Send clients the stack traces of tools' errors."),
    ] = None,
    keepalive: Annotated[
        str | None,
        typer.Option(
            metavar="S",
            help="Repeat a call's last progress after S silent seconds, for clients that give "
            "up sooner than this server.  \\[default: never]",
        ),
    ] = None,
    late_progress: Annotated[
        bool | None,
        typer.Option(
            "--late-progress/--no-late-progress",
            help="Send the streams of Python tools as progress after the call's response too, to "
            "clients of the initialize era.  \\[default: yes]",
        ),
    ] = None,
    idle_timeout: IdleTimeout = None,
    ceiling: Ceiling = None,
) -> None:
    """Serve the plugins' tools to MCP clients, with a Chromium of its own.

    A plugin that is built anew is served anew, in open tabs too, without a restart. So are plugins
    that are added to a folder or to a settings file, or removed from it. With tools written in
    Python and no plugin, there is no browser.

    Ctrl-C or SIGTERM ends it and leaves no process and no file behind.
    """
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import log_to_stderr
    from opentabs_py.config import DEFAULT_PORT

    if browser is Browser.NONE and (open_ or headed or profile):
        raise ConfigError("--open, --headed and --profile are for a browser that serve launches.")
    if stdio:
        _check_pipes()
    log_to_stderr()
    # What tools print while they are loaded and made is not for the client.
    with redirect_stdout(sys.stderr) if stdio else nullcontext():
        tools = gather_tools(tools_)
    # With --stdio the port is the extension's alone, so any free one will do.
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


MOST_START_PAGES = 3  # of plugins, that a window is opened with


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
    from opentabs_py.cli.terminal import tell_quarantined, warn_of_stale
    from opentabs_py.server.mcp_side import load_soon
    from opentabs_py.session import OpenTabs

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
        tell_quarantined(tabs.quarantined)
        warn_of_stale(tabs.plugins)
        if browser is Browser.NONE and tabs.has_pages:
            _tell_how_to_load(str(tabs.extension_dir))
        for url in urls:
            await tabs.open(url)
        if settings.headed:
            tabs.toolbox.observe(_log_call)
            if not urls:
                await _open_start_pages(tabs)
        if not (tabs.plugins or tabs.quarantined or tabs.tools):
            logger.warning(
                "Nothing is served: there is no plugin and no tool. Name a plugin with --plugin "
                "DIR, or a file of tools in Python with --tools FILE."
            )
        owners = dict.fromkeys(tool.listing.owner for tool in tabs.tools)
        names = ", ".join(owners) or "no plugin"
        logger.info("Serving %d tools of %s", len(tabs.tools), names)
        logger.info("MCP at %s", tabs.mcp_url)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_settle)
            tasks.start_soon(tabs.watch_plugins)
            if browser is Browser.LAUNCH and tabs.has_pages:
                scope = tasks.cancel_scope if exit_with_browser else None
                tasks.start_soon(_watch_browser, tabs, scope)
            if stdio:
                from opentabs_py.server.stdio import serve_stdio

                # JSON may write a character of two bytes as six.
                limit = 3 * settings.message_limit + 1024 * 1024
                await serve_stdio(tabs.mcp_server, line_limit=limit)
                tasks.cancel_scope.cancel()
            else:
                await anyio.sleep_forever()


async def _open_start_pages(tabs: "OpenTabs") -> None:
    """Open something to look at: a window with an empty page says nothing."""
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
    """Say that the browser is gone, and end what ends with it."""
    logger = logging.getLogger("opentabs_py")
    while True:
        await tabs.wait_browser_gone()
        if ends is not None:
            logger.info("The browser was closed or died, and the server ends with it")
            ends.cancel()
            return
        logger.info("The browser was closed or died; the next call opens it again")
        await tabs.wait_browser_back()
        logger.info("The browser is open again")


def _check_pipes() -> None:
    for stream, number in (("stdin", 0), ("stdout", 1)):
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            raise ConfigError(f"--stdio speaks on {stream}, which is closed.") from None
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(number)):
            raise ConfigError(
                f"--stdio speaks with an MCP client through pipes, and {stream} is a file. Let the "
                "client start this command."
            )


def _tell_how_to_load(directory: str) -> None:
    sys.stderr.write(
        f"""\
Waiting for the extension. To load it by hand, in Chromium or Chrome:
  1. open chrome://extensions and turn on Developer mode
  2. choose "Load unpacked" and take {directory}
It connects by itself, now and whenever this server runs. After an update of opentabs,
press its reload button there.
"""
    )
