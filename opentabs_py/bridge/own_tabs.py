"""The tabs that clients open for themselves: opened, closed, and closed when their client goes."""

from typing import Final

import anyio

from opentabs_py.bridge.pages import Pages
from opentabs_py.core import failures
from opentabs_py.core.tabs.browsers import choose_for_new
from opentabs_py.core.tabs.owners import SessionKey

CLOSE_WITHIN: Final = 2.0  # s; closing a tab takes tens of ms, unless its page asks the user


class OwnTabs:
    """Opens and closes clients' own tabs, in any of the browsers.

    Args:
        pages: The pages of all browsers.
        keep: Leave the tabs of a client that goes, and those at the end, open for the user.
    """

    def __init__(self, pages: Pages, *, keep: bool = False) -> None:
        self._pages = pages
        self._keep = keep

    async def open(self, url: str, *, browser: str | None, client: SessionKey | None) -> int:
        """Open a tab for a client and return its number among the tabs of all browsers.

        Args:
            url: The page, with its scheme.
            browser: The name of the browser; by default the one in which the client has tabs of
                its own, else the one that it used last.
            client: The client's session; without one, the tab belongs to no particular client.

        Raises:
            CallError: It cannot be opened, or it is not clear in which browser.
        """
        own, gone = self._pages.tabs.owners.of(client), self._pages.gone_browsers()
        preferred = self._pages.index_of(own[0]) if own else self._pages.preferred_browser(client)
        if own:
            gone.discard(preferred)  # what the client has there may come back
        index = choose_for_new([*self._pages.names.values()], browser, preferred, gone)
        if not isinstance(index, int):
            raise index
        bridge = self._pages.bridges[index]
        await bridge.ensure_browser()
        tab = await bridge.tab_requests.open(url)
        if tab is None:
            raise failures.tab_not_opened(url)
        self._pages.tabs.owners.add(tab, client, bridge.plugin_sync.serving(url))
        return tab

    async def close(self, tab: int, *, client: SessionKey | None) -> None:
        """Close a tab that a client opened.

        Raises:
            CallRefusedError: The client did not open it.
        """
        if not self._pages.tabs.owners.has_opened(client, tab):
            raise failures.not_own_tab(tab)
        self.discard(tab)
        await self._wait_closed([tab])

    def discard(self, tab: int) -> None:
        """Close a tab without waiting for it."""
        self._pages.bridges[self._pages.index_of(tab)].tab_requests.close(tab)

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of a client: close its tabs, unless they are kept."""
        owners = self._pages.tabs.owners
        for tab in owners.of(client):
            if self._keep:
                owners.remove(tab)
            else:
                self.discard(tab)

    async def close_all(self) -> None:
        """Close the tabs of all clients, unless they are kept."""
        tabs = [] if self._keep else self._pages.tabs.owners.every()
        for tab in tabs:
            self.discard(tab)
        await self._wait_closed(tabs)

    async def _wait_closed(self, tabs: list[int]) -> None:
        with anyio.move_on_after(CLOSE_WITHIN):
            while self._pages.connected and not set(tabs).isdisjoint(
                self._pages.tabs.owners.every()
            ):
                await self._pages.changed().wait()
