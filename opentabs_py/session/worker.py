"""Run a session as a worker of a fleet."""

import logging
import platform
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import psutil

from opentabs_py.browser.process import proportional_memory
from opentabs_py.calling.tool import ListedTools
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import Settings
from opentabs_py.core.fleet.failures import worker_cannot_ask
from opentabs_py.core.limits import longest_body
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import ready_by_plugin
from opentabs_py.errors import BrowserError
from opentabs_py.fleet.claim import WorkerClaim
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import nats_link
from opentabs_py.fleet.session import SessionCaller
from opentabs_py.fleet.worker import FleetWorker
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.browsers.recycling import MEASURE_EVERY, RecycleAfter, Recycling
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs

if TYPE_CHECKING:
    from opentabs_py.session.server import SessionServer

logger = logging.getLogger(__name__)

NEVER: Final = RecycleAfter()
RELAUNCH_AFTER: Final = 1.0  # s, if it could not be relaunched at once; doubled each time
RELAUNCH_AFTER_AT_MOST: Final = 60.0


def default_name() -> str:
    """Return the default name of a worker: the machine's, and a random suffix."""
    host = re.sub(r"[^a-z0-9]+", "-", platform.node().lower()).strip("-")
    return f"{host[:30].strip('-') or 'worker'}-{secrets.token_hex(2)}"


async def run_worker(
    options: FleetOptions,
    settings: Settings,
    *,
    name: str,
    browsers: int,
    max_calls: int,
    recycle_after: RecycleAfter = NEVER,
    on_ready: Callable[[OpenTabs, FleetWorker], Any],
    read_settings: Callable[[], Settings] | None = None,
    **arguments: Any,
) -> None:
    """Run a worker until it is drained or cancelled.

    Args:
        options: The fleet.
        settings: The session's settings.
        name: The worker's name.
        browsers: How many browsers to launch, if it has plugins.
        max_calls: How many calls may run in it at once.
        recycle_after: When a browser is replaced.
        on_ready: Called, and awaited, before it takes calls.
        read_settings: Reads the settings again whenever they or the plugins change; None if
            changes of them are not to be noticed.
        arguments: More arguments of `OpenTabs`.

    Raises:
        FleetError: NATS cannot be reached, or another worker has the name.
        BrowserError: No Chromium, or it did not start or connect.
        ConfigError: A setting is not valid.
    """
    async with nats_link(options) as link:
        unnumbered = Identity(name, labels=options.labels, max_calls=max_calls)
        claim = WorkerClaim(link, unnumbered, browsers=browsers)
        identity = await claim.make()
        async with OpenTabs(
            settings=_for_worker(settings),
            read_settings=None if read_settings is None else lambda: _for_worker(read_settings()),
            browsers=browsers,
            _seams=Seams(first_number=identity.number, stream_prefix=identity.instance),
            **arguments,
        ) as session:
            # A session's own error would send its reader to the endpoint's console and settings.
            gate = session.internals.registry.gate
            gate.nobody_to_ask = partial(worker_cannot_ask, identity.name)
            worker = FleetWorker(
                link,
                identity,
                WorkerSession(session.internals),
                longest_message=longest_body(settings.message_limit),
            )
            await on_ready(session, worker)
            await claim.end()
            async with anyio.create_task_group() as tasks:
                server = session.internals
                if server.launches_browser:
                    for browser in server.browsers:
                        tasks.start_soon(_keep_open, browser)
                    if recycle_after != NEVER:
                        recycling = Recycling(server.browsers, server.pages, recycle_after)
                        tasks.start_soon(recycling.run)
                tasks.start_soon(_measure, session, worker)
                if read_settings is not None:
                    tasks.start_soon(session.watch_plugins)
                await worker.run()
                tasks.cancel_scope.cancel()


def _for_worker(settings: Settings) -> Settings:
    # Endpoints know the tools of plugins, but not of pages, which come and go.
    return settings.model_copy(update={"webmcp": (), "hands": False})


class WorkerSession:
    """A running session, as a worker sees it.

    Args:
        server: The parts of the session.
    """

    def __init__(self, server: "SessionServer") -> None:
        self._server = server

    @property
    def registry(self) -> ListedTools:
        """The tools."""
        return self._server.tool_calls.registry

    @property
    def caller(self) -> SessionCaller:
        """Calls the tools."""
        return self._server.tool_calls

    @property
    def browsers(self) -> Sequence[str]:
        """The names of its browsers."""
        if not self._server.launches_browser:
            return []
        return [browser.bridge.name for browser in self._server.browsers]

    @property
    def restarts(self) -> int:
        """How often its browsers were relaunched."""
        return sum(browser.restarts for browser in self._server.browsers)

    def ready(self) -> Mapping[str, int]:
        """Return in how many tabs each plugin works now."""
        return ready_by_plugin(self._server.pages.tabs.documents)

    def patterns(self, owner: str) -> Sequence[str]:
        """Return the URL patterns of a plugin's pages."""
        plugin = self._server.plugin_set.find(owner)
        return () if plugin is None else plugin.manifest.url_patterns

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the tabs."""
        return self._server.pages.changed()

    def has_tabs(self, client: SessionKey) -> bool:
        """Return whether a client has opened tabs."""
        return bool(self._server.pages.tabs.owners.of(client))

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of a client, which may have opened tabs."""
        self._server.handle_client_gone(client)


async def _measure(session: OpenTabs, worker: FleetWorker) -> None:
    """Announce how much memory the worker has, with its browsers, until cancelled."""
    while True:
        memory = proportional_memory(psutil.Process())
        for browser in session.internals.browsers:
            if browser.launch is not None:
                memory += await browser.launch.memory()
        worker.set_memory(memory)
        await anyio.sleep(MEASURE_EVERY)


async def _keep_open(browser: SessionBrowser) -> None:
    """Relaunch a browser whenever it has died; without its tabs, no call would come to do so."""
    delay = RELAUNCH_AFTER
    while True:
        await browser.wait_gone()
        if not browser.closed_by_us:
            logger.warning("The browser %s exited; relaunching it", browser.name)
        try:
            await browser.relaunch()
        except BrowserError as error:
            logger.warning("%s Trying again in %g s", error, delay)
            await anyio.sleep(delay)
            delay = min(2 * delay, RELAUNCH_AFTER_AT_MOST)
        else:
            delay = RELAUNCH_AFTER
