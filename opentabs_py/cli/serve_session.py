"""The session of `opentabs serve`, while it runs; `opentabs dev` has the same."""

import errno
import logging
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskStatus

from opentabs_py.cli import collector
from opentabs_py.cli.metrics_option import Address, exporting
from opentabs_py.console.log_tail import LogTail
from opentabs_py.core.text import quantity
from opentabs_py.errors import BrowserError

if TYPE_CHECKING:
    from opentabs_py.core.trace.record import CallRecord
    from opentabs_py.daemon.state import Claim, ServeCommand
    from opentabs_py.session.browsers.browser import SessionBrowser
    from opentabs_py.session.session import OpenTabs

logger = logging.getLogger("opentabs_py")

DEFAULT_BROWSER = "default"
MOST_START_PAGES = 3  # plugins' start pages that are opened in a window
START_ENDS = 2.0  # s after the server is ready; by then its clients have asked for the first list


@contextmanager
def claim_name(
    name: str | None, command: "ServeCommand", *, stdio: bool = False
) -> Generator["Claim | None"]:
    """Claim the server's name; without one, the default name, if it is free.

    A server that an MCP client starts, on stdio, is that client's own.

    Raises:
        ConfigError: The name is not valid, or another server has it.
    """
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon.state import DEFAULT_NAME, AlreadyRunningError, claim

    with ExitStack() as stack:
        claimed = None
        if name is not None:
            claimed = stack.enter_context(claim(check_name(name, "server name"), command))
        elif not stdio:
            # An unwritable home is no reason not to serve, but a symbolic link in place of the lock
            # file may be a trap.
            try:
                with suppress(AlreadyRunningError):
                    claimed = stack.enter_context(claim(DEFAULT_NAME, command))
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise
        yield claimed


async def serve_session(
    session: "OpenTabs",
    *,
    urls: Sequence[str],
    exit_with_browser: bool = False,
    stdio: bool = False,
    claim: "Claim | None" = None,
    metrics: Address | None = None,
    beside: Callable[["OpenTabs"], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve until cancelled.

    Args:
        session: What to serve; it has not started yet.
        urls: Pages to open.
        exit_with_browser: End when the browser is closed.
        stdio: Serve MCP on stdin and stdout as well.
        claim: The name under which other commands find this server.
        metrics: Where to serve metrics.
        beside: Runs as long as the server; the plugins' start pages are then opened.
    """
    from opentabs_py.cli.plugin_warnings import warn_of_plugins
    from opentabs_py.cli.prompts import is_someone_there
    from opentabs_py.cli.terminal_answers import answer_in_terminal

    headed = session.settings.headed
    async with AsyncExitStack() as stack:
        logs = stack.enter_context(LogTail().listening())  # which the console will show
        attach = await stack.enter_async_context(exporting(metrics))
        tabs = await stack.enter_async_context(session)
        attach(tabs)
        tabs.internals.keep_history(logs)
        warn_of_plugins(tabs)
        if tabs.guide_url is not None:
            _print_how_to_load(str(tabs.extension_dir), tabs.guide_url)
        if headed or beside is not None:
            tabs.observe(_log_call)
        if headed and beside is not None:
            await tabs.open(tabs.console_url())
        await _open_pages(tabs, urls, start_pages=headed or beside is not None)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_settle)
            tasks.start_soon(tabs.watch_plugins)
            if beside is not None:
                tasks.start_soon(beside, tabs)
            if is_someone_there() and not stdio:
                tasks.start_soon(answer_in_terminal, tabs.internals.registry.gate.questions)
            if tabs.internals.launches_browser:
                scope = tasks.cancel_scope if exit_with_browser else None
                for each in tabs.internals.browsers:
                    tasks.start_soon(_watch_browser, each, scope)
            if claim is not None:
                await tasks.start(_register, tabs, claim, tasks.cancel_scope.cancel)
            # Now that other commands find the server: scripts wait for these lines.
            _log_what_is_served(tabs)
            if sys.stderr.isatty():  # not a log, which others may read
                from opentabs_py.cli.terminal import err

                # The log would break it into two lines, of which only the first is a link.
                err.print(f"Console at {tabs.console_url(expires=False)}", soft_wrap=True)
            if stdio:
                await _serve_stdio(tabs)
                tasks.cancel_scope.cancel()
            else:
                await anyio.sleep_forever()


def _log_what_is_served(tabs: "OpenTabs") -> None:
    from opentabs_py.core.plugin_names import OURSELVES

    if tabs.is_endpoint:
        fleet = tabs.internals.fleet
        workers = quantity(len(fleet.directory.usable), "worker")
        logger.info("%s of the fleet at %s", workers, fleet.link.options.addresses)
    elif not (tabs.plugins or tabs.skipped_plugins or tabs.tools or tabs.settings.webmcp):
        logger.warning(
            "Nothing to serve: there is no plugin and no tool. Pass a plugin with --plugin "
            "DIR, or Python tools with --tools FILE."
        )
    owners = [each.owner for each in tabs.tools if each.owner != OURSELVES]
    names = ", ".join(dict.fromkeys(owners)) or "no plugin"
    logger.info("Serving %s from %s", quantity(len(owners), "tool"), names)
    logger.info("MCP at %s", tabs.mcp_url)


async def _serve_stdio(tabs: "OpenTabs") -> None:
    from opentabs_py.core.limits import longest_body
    from opentabs_py.server.mcp.sdk_loading import load_sdk

    await load_sdk("opentabs_py.server.mcp.stdio")  # a thread may be loading the SDK now
    from opentabs_py.server.mcp.stdio import serve_stdio

    await serve_stdio(tabs.mcp_server, line_limit=longest_body(tabs.settings.message_limit))


async def _register(
    tabs: "OpenTabs",
    claim: "Claim",
    stop: Callable[[], None],
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Let other commands use the server, until cancelled."""
    from opentabs_py.session.registration import registered

    async with registered(tabs, claim, stop=stop):
        task_status.started()
        await anyio.sleep_forever()


async def _open_pages(tabs: "OpenTabs", urls: Sequence[str], *, start_pages: bool) -> None:
    """Open pages; if there are none and the browser is visible, the plugins' start pages."""
    from opentabs_py.cli.open_pages import open_pages

    await open_pages(tabs, urls)
    if urls or not start_pages:
        return
    for plugin in tabs.plugins[:MOST_START_PAGES]:
        url = await tabs.start_page_url(plugin.manifest.name)
        if url is None:
            continue
        try:
            await tabs.open(url)
        except BrowserError as error:
            from opentabs_py.cli.terminal import warn

            warn(str(error))


def _log_call(record: "CallRecord") -> None:
    from opentabs_py.tracing.waterfall import headline

    logger.info("%s", headline(record).plain)


async def _settle() -> None:
    from opentabs_py.server.mcp.sdk_loading import load_sdk

    await load_sdk()
    await anyio.sleep(START_ENDS)
    collector.freeze()
    collector.release()


async def _watch_browser(browser: "SessionBrowser", ends: anyio.CancelScope | None) -> None:
    """Log that a browser is gone and when it is back, or cancel `ends` when it is gone."""
    which = "The browser" if browser.name == DEFAULT_BROWSER else f"The browser {browser.name}"
    while True:
        await browser.wait_gone()
        if ends is not None:
            logger.info("%s was closed or died; the server exits", which)
            ends.cancel()
            return
        logger.info("%s was closed or died; the next call reopens it", which)
        await browser.wait_back()
        logger.info("%s is open again", which)


def _print_how_to_load(directory: str, guide: str) -> None:
    sys.stderr.write(
        f"""\
Waiting for the extension. {guide} guides you through loading it:
  1. Open chrome://extensions and turn on Developer mode.
  2. Choose "Load unpacked" and select {directory}
The extension connects by itself whenever this server is running. After you update opentabs,
press the extension's reload button on that page.
"""
    )
