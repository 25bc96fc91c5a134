"""A session as an endpoint of a fleet: it serves the tools of the workers."""

from contextlib import AsyncExitStack

import anyio
from anyio.abc import TaskGroup

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.clock import AlarmClock, Clock
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import Settings
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.limits import longest_body
from opentabs_py.core.tabs.listed_plugins import ListedPlugins
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import ConfigError
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.fleet.link import nats_link
from opentabs_py.fleet.remote_tool import RemoteTool
from opentabs_py.server.tools.page_tool_list import PageToolList
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.remote_tab_tools import (
    RemoteTabsClose,
    RemoteTabsList,
    RemoteTabsOpen,
)
from opentabs_py.session.plugins.plugins import PluginSet
from opentabs_py.session.tools.setup import create_registry


class FleetBackend:
    """Serves the tools of a fleet's workers.

    Args:
        fleet: The workers.
        pages: The session's own pages: there are none, but the registry needs them.
        plugins: Keeps the permissions of the tools current.
        settings: The session's settings.
        clock: The clock of the calls' timers.
    """

    def __init__(
        self,
        fleet: Fleet,
        pages: Pages,
        plugins: PluginSet,
        settings: Settings,
        clock: AlarmClock,
    ) -> None:
        self._fleet = fleet
        self._pages = pages
        self._plugins = plugins
        self._settings = settings
        self._clock = clock
        self._tasks: TaskGroup  # set by `start`

    @property
    def ready(self) -> "ReadyInFleet":
        """Where plugins are ready."""
        return ReadyInFleet(self._fleet)

    @property
    def page_tools(self) -> PageToolList:
        """The tools that pages register themselves.

        Raises:
            ConfigError: Always; workers do not announce them.
        """
        raise ConfigError("An endpoint of a fleet does not serve the tools that pages register.")

    async def serve(self) -> ToolRegistry:
        """Return the registry, with the tools of the workers, which come and go, in it."""
        fleet, limit = self._fleet, self._settings.message_limit
        registry = create_registry(
            self._settings,
            self._pages,
            [RemoteTabsList(fleet), RemoteTabsOpen(fleet), RemoteTabsClose(fleet)],
            clock=self._clock,
            status=fleet.status,
            why_empty=fleet.why_empty,
        )

        def list_tools() -> None:
            registry.set_remote(
                RemoteTool(fleet, entry, message_limit=limit) for entry in fleet.catalog.entries
            )

        self._plugins.follow(registry)
        fleet.catalog.subscribe(list_tools)
        list_tools()
        return registry

    async def start(self, tasks: TaskGroup) -> None:
        """Start to listen to the workers."""
        self._tasks = tasks
        await self._fleet.start(tasks)

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of an MCP client, whose tabs the workers close."""
        self._tasks.start_soon(self._fleet.handle_client_gone, client)

    async def close_tabs(self) -> None:
        """Do nothing: workers close the tabs of an endpoint that is gone."""


async def join_fleet(
    stack: AsyncExitStack, options: FleetOptions, settings: Settings, clock: Clock
) -> Fleet:
    """Connect to a fleet.

    Raises:
        FleetError: NATS cannot be reached, or refuses the connection.
        ConfigError: A file with certificates cannot be used.
    """
    link = await stack.enter_async_context(nats_link(options))
    fleet = Fleet(
        link,
        clock,
        labels=options.labels,
        quotas=Quotas(queue=options.queue, calls_per_client=options.calls_per_client),
        longest_message=longest_body(settings.message_limit),
    )
    stack.push_async_callback(fleet.close)
    return fleet


class ReadyInFleet:
    """Where plugins are ready in the workers of a fleet.

    Args:
        fleet: The workers.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def follow(self, plugins: ListedPlugins, now: float) -> float:
        """Pass on which plugins are ready; return when to do so again, if that does not change."""
        workers = self._fleet.directory.usable
        ready = (name for each in workers for name, count in each.total_ready.items() if count)
        return plugins.follow(frozenset(ready), now)

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change."""
        return self._fleet.changed()
