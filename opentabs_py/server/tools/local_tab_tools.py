"""`tabs_list`, `tabs_open` and `tabs_close` in the browsers of this server."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio

from opentabs_py.bridge.own_tabs import OwnTabs
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.tabs.listing import describe_opened, has_reported, list_tabs
from opentabs_py.server.tools.tab_tools import TabsClose, TabsList, TabsOpen

LOADS_WITHIN: Final = 10.0  # s; a page that takes longer is reported as it is
REDIRECTS_WITHIN: Final = 2.0  # s; in which a page without plugins may lead to one that has some

ListTabs = Callable[[str | None], Awaitable[Sequence[dict[str, Any]]]]


class LocalTabsList(TabsList):
    """`tabs_list`, over what the extensions have reported; it needs no page.

    Args:
        pages: The pages of all browsers.
        list_all: Returns all tabs that a client may use, if tools can use those without plugins.
    """

    def __init__(self, pages: Pages, list_all: ListTabs | None = None) -> None:
        self._pages = pages
        self._list_all = list_all

    async def list_tabs(self, call: ToolCall) -> Any:
        """Return the tabs that the call's client may use."""
        tabs = self._pages.tabs
        if tabs.has_browser:  # without one there are no tabs, which is not an error
            await self._pages.wait_reconnected()
        listed: Any = list_tabs(
            tabs.documents,
            tabs.loading,
            self._pages.names,
            owners=tabs.owners,
            client=call.session_key,
        )
        if self._list_all is None:
            return listed
        known = {each["tabId"] for each in listed["tabs"]}
        others = [
            each for each in await self._list_all(call.session_key) if each["tabId"] not in known
        ]
        return {"tabs": [*listed["tabs"], *others]}


class LocalTabsOpen(TabsOpen):
    """`tabs_open`.

    Args:
        pages: The pages of all browsers.
        own_tabs: Opens tabs in them.
    """

    def __init__(self, pages: Pages, own_tabs: OwnTabs) -> None:
        self._pages = pages
        self._own_tabs = own_tabs

    async def open_tab(self, call: ToolCall, url: str, browser: str | None) -> Any:
        """Open a tab, and return it when it has loaded."""
        tab = await self._own_tabs.open(url, browser=browser, client=call.session_key)
        try:
            await self._wait_loaded(tab, url)
        except anyio.get_cancelled_exc_class():
            self._own_tabs.discard(tab)  # the client will not know of it
            raise
        tabs = self._pages.tabs
        return describe_opened(
            tab,
            url,
            tabs.documents,
            tabs.loading,
            self._pages.names,
            owners=tabs.owners,
            client=call.session_key,
        )

    async def _wait_loaded(self, tab: int, url: str) -> None:
        has_plugin = any(bridge.plugin_sync.serving(url) for bridge in self._pages.bridges)
        with anyio.move_on_after(LOADS_WITHIN if has_plugin else REDIRECTS_WITHIN):
            while not has_reported(tab, self._pages.tabs.documents):
                await self._pages.changed().wait()


class LocalTabsClose(TabsClose):
    """`tabs_close`.

    Args:
        own_tabs: Closes tabs.
    """

    def __init__(self, own_tabs: OwnTabs) -> None:
        self._own_tabs = own_tabs

    async def close_tab(self, call: ToolCall, tab: int) -> Any:
        """Close a tab that the call's client opened."""
        await self._own_tabs.close(tab, client=call.session_key)
        return {"closed": tab}
