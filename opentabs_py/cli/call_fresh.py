"""`opentabs call` with a server and a browser for this call only, or as an endpoint of a fleet."""

import logging
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

from opentabs_py.cli.call_outcome import failed_outcome, print_outcome
from opentabs_py.cli.call_over_mcp import CLIENT_MODULES, call_over_mcp
from opentabs_py.cli.exit_codes import OF_CALL, code_of
from opentabs_py.cli.run import run
from opentabs_py.errors import OpenTabsError

if TYPE_CHECKING:
    from opentabs_py.config.fleet import FleetOptions
    from opentabs_py.config.settings import Settings
    from opentabs_py.session.session import OpenTabs


def call_fresh(
    settings: "Settings",
    tool: str,
    arguments: dict[str, Any],
    *,
    load_tools: Callable[[], Sequence[Any]],
    urls: Sequence[str],
    nats: "FleetOptions | None",
    as_json: bool,
) -> int:
    """Start a server, call a tool, show what happens, and return the exit code.

    Args:
        settings: The server's settings.
        tool: The tool's name.
        arguments: Its arguments.
        load_tools: Loads the tools written in Python.
        urls: Pages to open for the call.
        nats: The fleet whose tool is called.
        as_json: Print one JSON document.

    Raises:
        OpenTabsError: The call could not be made.
    """

    async def once() -> int:
        from opentabs_py.cli.log import log_to_stderr
        from opentabs_py.cli.terminal import progress_bar
        from opentabs_py.core.arguments import check_size
        from opentabs_py.server.mcp.sdk_loading import load_sdk_soon
        from opentabs_py.session.session import OpenTabs

        # As the server does; but what is nested too deeply, the MCP client cannot even send.
        check_size(tool, arguments, limit=settings.message_limit)
        if not as_json:
            log_to_stderr(level=logging.WARNING)
        session = OpenTabs(
            tools=load_tools(),  # which may import anything
            settings=settings,
            nats=nats,
            while_launching=partial(load_sdk_soon, *CLIENT_MODULES),
        )
        stdout = sys.stdout  # for the result only; what tools print goes to stderr
        with redirect_stdout(sys.stderr), progress_bar("Starting", quiet=as_json) as bar:
            async with session as tabs:
                await _prepare(tabs, tool, urls, bar.say, in_fleet=nats is not None)
                bar.say(tool)
                made = call_over_mcp(
                    tabs.mcp_url, tool, arguments, bar.update, keeps_streams=nats is not None
                )
                outcome, failed = await _while_asking(tabs, made, bar.pause)
                if not as_json:
                    await tabs.internals.stopped_tools.wait_logged()
                bar.stop()
                with redirect_stdout(stdout):
                    print_outcome(outcome, as_json=as_json)
        return OF_CALL[failed]

    began = time.perf_counter()
    try:
        return run(once)
    except OpenTabsError as error:
        if not as_json:
            raise
        print_outcome(failed_outcome(error, time.perf_counter() - began), as_json=True)
        return code_of(error)


async def _prepare(
    tabs: "OpenTabs", tool: str, urls: Sequence[str], say: Callable[[str], None], *, in_fleet: bool
) -> None:
    """Warn of plugins that have problems, and open the pages that the call needs."""
    from opentabs_py.cli.open_pages import open_pages
    from opentabs_py.cli.plugin_warnings import warn_of_plugins
    from opentabs_py.session.plugins.plugins import refuse_skipped

    warn_of_plugins(tabs)
    refuse_skipped(tool, tabs.internals.registry, tabs.skipped_plugins)
    for url in urls:
        say(f"Opening {url}")
        await open_pages(tabs, [url])
    if not (urls or in_fleet):
        await _open_start_page(tabs, tool)


async def _open_start_page(tabs: "OpenTabs", tool: str) -> None:
    found = tabs.internals.registry.get(tool)
    if found is None or found.listing.owner not in [plugin.name for plugin in tabs.plugins]:
        return
    if (url := await tabs.start_page_url(found.listing.owner)) is not None:
        await tabs.open(url)


async def _while_asking(
    tabs: "OpenTabs",
    made: Awaitable[tuple[dict[str, Any], str | None]],
    pause: Callable[[], AbstractContextManager[None]],
) -> tuple[dict[str, Any], str | None]:
    """Wait for a call; until then, ask the user at the terminal, if it is interactive."""
    import anyio

    from opentabs_py.cli.prompts import is_someone_there
    from opentabs_py.cli.terminal_answers import answer_in_terminal

    if not is_someone_there():
        return await made
    error: Exception | None = None
    result: tuple[dict[str, Any], str | None] = {}, None
    questions = tabs.internals.registry.gate.questions
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(answer_in_terminal, questions, pause=pause))
        try:
            result = await made
        except Exception as failure:  # noqa: BLE001
            error = failure  # raised below, because the task group would wrap it
        tasks.cancel_scope.cancel()
    if error is not None:
        raise error
    return result
