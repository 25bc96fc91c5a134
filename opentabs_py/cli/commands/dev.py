"""`opentabs dev`: build, serve and reload a plugin while it is written, in one command."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from opentabs_py.cli.options import (
    BrowserOptions,
    Headed,
    OpenUrls,
    PluginDir,
    PluginOptions,
    PluginSettings,
    Port,
    Profile,
    ToolSources,
    gather_settings,
    load_tools,
)
from opentabs_py.errors import BrowserError, BuildError, ConfigError

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs


def dev(
    directory: PluginDir = Path(),
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    open_: OpenUrls = None,
    headed: Headed = None,
    port: Port = None,
    profile: Profile = None,
) -> None:
    """Develop a plugin: build it at each change, and serve it to a browser and to MCP clients.

    Opens a browser with two pages: the console, in which you can try the tools and watch their
    calls, and the plugin's start page (its playground/ or its homepage), or the pages that --open
    names. When a file changes, the plugin is built and reloaded in the open tabs; --tools are
    reloaded, too. If there is an error, the last version stays in service.

    Other commands, such as `opentabs call`, use this server while no other one runs. Without a
    screen, the browser is headless. Ctrl-C stops everything.

    [dim]opentabs dev my-plugin --tools tools.py[/]
    """
    from opentabs_py.browser.screen import has_screen
    from opentabs_py.calling.plugin_log import PLUGINS
    from opentabs_py.cli.building import builder, print_result
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.cli.run import SERVER_CLOSES_WITHIN, run
    from opentabs_py.cli.serve_session import claim_name, serve_session
    from opentabs_py.daemon.state import ServeCommand
    from opentabs_py.plugins.freshness import has_source
    from opentabs_py.plugins.load import is_plugin

    if not (is_plugin(directory) or has_source(directory)) and not tools_:
        raise ConfigError(
            f"{directory.resolve()} is not a plugin. Name its directory, or create one: "
            "opentabs new NAME"
        )
    log_to_stderr()
    logging.getLogger(PLUGINS).setLevel(logging.DEBUG)  # why isReady() failed, for example
    tools = load_tools(tools_)
    read_settings = partial(
        gather_settings,
        PluginOptions(plugin=[directory] if is_plugin(directory) else None, set_=set_),
        BrowserOptions(headed=has_screen() if headed is None else headed, profile=profile),
        port=port,
    )
    settings = read_settings().with_default_port()

    async def forever() -> int:
        from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
        from opentabs_py.session.session import OpenTabs

        builds = has_source(directory)
        if builds:
            async with builder() as running:
                print_result(await running.build(directory, with_types=True))

        async def beside(tabs: "OpenTabs") -> None:
            import anyio

            async with anyio.create_task_group() as tasks:
                if builds:
                    tasks.start_soon(_rebuild, tabs, directory)
                if tools_:
                    tasks.start_soon(_reload_tools, tabs, tools_)

        urls = open_ or []
        session = OpenTabs(
            tools=tools,
            settings=settings,
            read_settings=read_settings,
            relaunch_urls=urls,
            while_launching=load_sdk_soon,
        )
        # No arguments are recorded: `restart` refuses a server that runs in a terminal.
        with claim_name(None, ServeCommand((), Path.cwd())) as claim:
            await serve_session(session, urls=urls, claim=claim, beside=beside)
        return 0

    raise typer.Exit(run(forever, interruptible=False, close_within=SERVER_CLOSES_WITHIN))


async def _rebuild(tabs: "OpenTabs", directory: Path) -> None:
    """Build a plugin whenever its source changes, until cancelled."""
    from opentabs_py.cli.building import builder, print_result
    from opentabs_py.cli.terminal import err, print_error
    from opentabs_py.plugins.source_watch import changed_text, watch_source

    is_open = bool(tabs.plugins)
    async with builder(quiet=True) as running, watch_source(directory) as changes:
        is_first = True
        while True:
            # Once more at first: what has changed since the last build is not among the changes.
            try:
                built = await running.build(directory, with_types=True)
            except BuildError as error:
                print_error(error)
            else:
                if built.changed or not is_first:
                    print_result(built)
                if not (is_open or built.problems):
                    is_open = True  # it was not there to be opened when the server started
                    await tabs.reload_plugins()
                    await _open_start_page(tabs, built.name)
            is_first = False
            files = await changes.next()
            err.print(f"[dim]{escape(changed_text(files))}[/]")


async def _open_start_page(tabs: "OpenTabs", plugin: str) -> None:
    from opentabs_py.cli.terminal import err, warn

    try:
        url = await tabs.start_page_url(plugin)
        if url is not None:
            page = await tabs.open(url)
            err.print(f"[green]✓[/] opened {escape(page.url)}", soft_wrap=True)
    except (LookupError, BrowserError) as error:  # LookupError: it is skipped
        warn(str(error))


async def _reload_tools(tabs: "OpenTabs", sources: Sequence[str]) -> None:
    """Load Python tools again whenever a file beside them changes, until cancelled."""
    from opentabs_py.cli.terminal import err, print_error
    from opentabs_py.plugins.source_watch import changed_text, python_changes
    from opentabs_py.python_tools.load import reload_tools, source_directories

    directories = sorted(source_directories(sources))
    async for names in python_changes(directories):
        try:
            tabs.replace_tools(reload_tools(sources, directories))
        except (ConfigError, OSError) as error:  # OSError: their directory may not be read
            print_error(ConfigError(str(error)))
            err.print("The tools that were loaded before are still there.")
        else:
            err.print(f"[green]✓[/] {escape(changed_text(names))}; tools loaded again")
