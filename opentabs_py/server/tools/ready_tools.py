"""List only the tools that work now, because a tab of their site is open and ready."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

import anyio

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.tool import ListedTools, Tool
from opentabs_py.core.tabs.listed_plugins import ListedPlugins


class Ready(Protocol):
    """Where plugins are ready: in the tabs of browsers, or in the workers of a fleet."""

    def follow(self, plugins: ListedPlugins, now: float) -> float:
        """Report the ready plugins; return when to call this again if nothing changes."""
        ...

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change."""
        ...


class ReadyInPages:
    """Where plugins are ready in the tabs of our own browsers.

    Args:
        pages: The pages of all browsers.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def follow(self, plugins: ListedPlugins, now: float) -> float:
        """Report the ready plugins; return when to call this again if nothing changes."""
        return plugins.step(self._pages.tabs, now)

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change."""
        return self._pages.changed()


class ReadyTools:
    """The listed tools, without those of plugins that are ready in no tab.

    Args:
        listed: All tools.
        ready: Where plugins are ready.
        plugins: Decides which plugins are ready, and how often that may change.
    """

    def __init__(
        self, listed: ListedTools, ready: Ready, plugins: ListedPlugins | None = None
    ) -> None:
        self._listed = listed
        self._ready = ready
        self._plugins = plugins or ListedPlugins()
        self._listeners: Listeners[[]] = Listeners("changes of the ready tools")
        self._all: Sequence[Tool] = ()
        self._listed_plugins: frozenset[str] = frozenset()
        self._tools: Sequence[Tool] = ()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools, sorted by name; the same object until they change."""
        if self._all is not self._listed.tools or self._listed_plugins is not self._plugins.names:
            self._all, self._listed_plugins = self._listed.tools, self._plugins.names
            self._tools = [tool for tool in self._all if self._works(tool)]
        return self._tools

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools change; return the unsubscriber."""
        ends = ExitStack()
        ends.callback(self._listed.subscribe(listener))
        ends.callback(self._listeners.subscribe(listener))
        return ends.close

    async def run(self) -> None:
        """Follow the tabs until cancelled."""
        while True:
            changed, before = self._ready.changed(), self._plugins.names
            until = self._ready.follow(self._plugins, anyio.current_time())
            if self._plugins.names is not before:
                self._listeners.notify()
            with anyio.CancelScope(deadline=until):
                await changed.wait()

    def _works(self, tool: Tool) -> bool:
        listing = tool.listing
        return not listing.needs_tab or listing.is_of_page or listing.owner in self._listed_plugins
