"""Ask one browser's extension to open, close or report tabs, and wait for its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from opentabs_py.bridge.connection import AnyResult, Connection
from opentabs_py.bridge.plugin_sync import PluginSync
from opentabs_py.core import protocol
from opentabs_py.core.tabs.numbers import own_number
from opentabs_py.core.tabs.selection import Tabs

QUERY_WITHIN = 2.0  # s; an answer takes a few ms
OPEN_WITHIN = 15.0  # s; an answer takes tens of ms, and the extension itself gives up after 10 s


class TabRequests:
    """The requests about tabs that one browser's extension answers.

    Args:
        tabs: The state of its tabs.
        numbers: The numbers of its tabs among those of all browsers.
        sync: Its plugins.
        connection: Returns the connection to it; None if there is none.
        wait_reconnected: Waits for it if it has just disconnected; raises if it is not connected.
    """

    def __init__(
        self,
        tabs: Tabs,
        numbers: Sequence[int],
        sync: PluginSync,
        *,
        connection: Callable[[], Connection | None],
        wait_reconnected: Callable[[], Awaitable[None]],
    ) -> None:
        self._tabs = tabs
        self._numbers = numbers
        self._sync = sync
        self._connection = connection
        self._wait_reconnected = wait_reconnected

    async def query(self, plugin: str | None) -> None:
        """Wait for the extension to report its tabs, which the bridge's `tabs` then show.

        Args:
            plugin: First this plugin's pages are asked whether it is ready.
        """
        # A worker that has just started knows no plugins, so it would know no tabs of them either.
        await self._sync.wait()
        query = protocol.QueryParams(plugin=plugin)
        await self._ask(
            lambda number: protocol.TabsQuery(id=number, params=query),
            protocol.TabsParams,
            QUERY_WITHIN,
        )

    async def targets(self) -> Sequence[protocol.TabTarget]:
        """Return which tab, by its number, is which target of Chrome's debugging protocol.

        Returns:
            All tabs; none if the extension lacks the permission to ask.

        Raises:
            ChainError: It is not connected.
        """
        await self._wait_reconnected()
        params = protocol.TargetsParams()
        found = await self._ask(
            lambda number: protocol.TabsTargets(id=number, params=params),
            protocol.TabTargets,
            QUERY_WITHIN,
        )
        return [
            each.model_copy(update={"tab_id": self._numbers[each.tab_id]})
            for each in (() if found is None else found.tabs)
        ]

    async def open(self, url: str) -> int | None:
        """Open a tab and return its number; None if the browser does not open it.

        No call uses the tab without naming it. If this is cancelled, or takes too long, it is
        closed as soon as it is open.

        Raises:
            ChainError: The extension is not connected.
        """
        await self._wait_reconnected()
        params = protocol.OpenParams(url=url)
        opened = await self._ask(
            lambda number: protocol.TabsOpen(id=number, params=params),
            protocol.OpenedTab,
            OPEN_WITHIN,
            late=self._close_late,
        )
        return None if opened is None else self._numbers[opened.tab_id]

    def _close_late(self, answer: "asyncio.Future[protocol.OpenedTab | None]") -> None:
        opened = None if answer.cancelled() else answer.result()
        if opened is not None:
            self.close(self._numbers[opened.tab_id])

    def close(self, tab_id: int) -> None:
        """Close a tab, which no call uses now; at the next hello, if there is none now."""
        self._tabs.owners.abandon(tab_id)
        if (connection := self._connection()) is not None:
            params = protocol.CloseParams(tab_id=own_number(tab_id))
            connection.request(
                lambda number: protocol.TabsClose(id=number, params=params), protocol.ClosedTab
            )

    async def _ask(
        self,
        make: Callable[[int], protocol.Message],
        result: type[AnyResult],
        within: float,
        late: "Callable[[asyncio.Future[AnyResult | None]], None] | None" = None,
    ) -> AnyResult | None:
        """As `Connection.ask`; None without a connection."""
        if (connection := self._connection()) is None:
            return None
        return await connection.ask(make, result, within=within, late=late)
