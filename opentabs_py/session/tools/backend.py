"""Where the tools of a session run that need a page."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext

from opentabs_py.bridge.own_tabs import OwnTabs
from opentabs_py.bridge.pages import Pages
from opentabs_py.browser.stage import StagedExtension
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.tool import Tool
from opentabs_py.config.settings import Settings
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import ConfigError
from opentabs_py.server.mcp.sdk_loading import load_sdk
from opentabs_py.server.tools.page_tool_list import PageToolList
from opentabs_py.server.tools.ready_tools import Ready, ReadyInPages
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.plugins.plugins import PluginSet
from opentabs_py.session.tools.setup import create_registry, create_tab_tools

if TYPE_CHECKING:
    from opentabs_py.hands.tools import Hands


class ToolBackend(Protocol):
    """Serves a session's tools: from its own browsers, or from the workers of a fleet."""

    @property
    def ready(self) -> Ready:
        """Where plugins are ready."""
        ...

    @property
    def page_tools(self) -> PageToolList:
        """The tools that pages register themselves.

        Raises:
            ConfigError: They are not served.
        """
        ...

    async def serve(self) -> ToolRegistry:
        """Return the registry of the session's tools."""
        ...

    async def start(self, tasks: TaskGroup) -> None:
        """Start what runs as long as the session, before anything connects."""
        ...

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of an MCP client: close its tabs, and forget what was kept for it."""
        ...

    async def close_tabs(self) -> None:
        """Close the tabs of all clients; needed only if their browsers stay open."""
        ...


class BrowserBackend:
    """Serves tools from the browsers that a session launches, attaches to or waits for.

    Args:
        browsers: The browsers.
        pages: Their pages.
        plugins: The plugins.
        settings: Which other tools to serve.
        clock: The clock of the calls' timers.
        extensions: The extensions that the browsers load.
        own_pages: Match patterns of our own pages, in which no plugin runs, and no hand acts.
        drive: As in `Seams`.
    """

    def __init__(
        self,
        browsers: Sequence[SessionBrowser],
        pages: Pages,
        plugins: PluginSet,
        settings: Settings,
        clock: AlarmClock,
        *,
        extensions: Sequence[StagedExtension],
        own_pages: Sequence[str],
        drive: Callable[[], Awaitable[BrowserContext]] | None,
    ) -> None:
        self._browsers = browsers
        self._pages = pages
        self._plugins = plugins
        self._settings = settings
        self._clock = clock
        self._extensions = extensions
        self._own_pages = own_pages
        self._drive = drive
        self._own_tabs = OwnTabs(pages, keep=settings.keep_tabs)
        self._hands: Hands | None = None
        self._page_tools: PageToolList | None = None
        self._registry: ToolRegistry  # set by `serve`

    @property
    def ready(self) -> Ready:
        """Where plugins are ready."""
        return ReadyInPages(self._pages)

    @property
    def page_tools(self) -> PageToolList:
        """The tools that pages register themselves.

        Raises:
            ConfigError: The setting `webmcp` names no pages.
        """
        if self._page_tools is None:
            raise ConfigError(
                "The tools that pages register are not served. Name the pages: serve --webmcp "
                'PATTERN, or webmcp = ["PATTERN"] in the settings.'
            )
        return self._page_tools

    async def serve(self) -> ToolRegistry:
        """Return the registry, with the plugins' tools and those about tabs in it."""
        tools = await self._tab_tools()
        self._registry = create_registry(self._settings, self._pages, tools, clock=self._clock)
        await self._plugins.serve(
            self._pages.bridges, self._registry, self._extensions, own_pages=self._own_pages
        )
        return self._registry

    async def _tab_tools(self) -> Sequence[Tool]:
        """Return the tools about tabs; with hands, also those that use pages."""
        if not self._settings.hands:
            return create_tab_tools(self._pages, self._own_tabs)
        # It needs Playwright, which a session without a browser does not load, and the MCP SDK,
        # which a thread may be loading now.
        await load_sdk("opentabs_py.session.tools.hands")
        from opentabs_py.session.tools.hands import create_hands

        self._hands, hand_tools = create_hands(
            self._browsers,
            self._pages,
            self._settings,
            self._clock,
            self._drive,
            self._own_pages,
        )
        tab_tools = create_tab_tools(self._pages, self._own_tabs, self._hands.list_tabs)
        return [*tab_tools, *hand_tools]

    async def start(self, tasks: TaskGroup) -> None:
        """Start to follow the pages, if the tools that they register are served."""
        if self._settings.webmcp:
            self._page_tools = PageToolList(
                self._pages, self._registry, message_limit=self._settings.message_limit
            )
            self._page_tools.refresh()
            tasks.start_soon(self._page_tools.run)

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of an MCP client: close its tabs, and forget what was kept for it."""
        if self._hands is not None:
            self._hands.pages.forget_client(client)
        self._own_tabs.handle_client_gone(client)

    async def close_tabs(self) -> None:
        """Close the tabs of all clients, unless they are kept."""
        await self._own_tabs.close_all()
