"""What clients are sent when the tools or the streams change."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent, ToolsListChanged

from opentabs_py.served import StreamSource
from opentabs_py.server.ending import Ending
from opentabs_py.server.workarounds import narrow

Subscribe = Callable[[Callable[[], None]], Callable[[], None]]
"""Has a function called whenever the list of tools changes; returns what ends that."""


class Changes:
    """Sends clients of both eras the changes of the list of tools, and of streams.

    Args:
        subscribe: To the list of tools; None where it stays as it is.
        streams: Those that are served as resources; None where no tool has any.
        ending: Ends the clients' streams with their results when the server stops.
    """

    def __init__(
        self, subscribe: Subscribe | None, streams: StreamSource | None, ending: Ending
    ) -> None:
        self._subscribe = subscribe
        self._streams = streams
        self._ending = ending
        self._handler = ListenHandler(self)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve `subscriptions/listen` (MCP 2026-07-28) until the client hangs up, or the end."""
        params.notifications = narrow(
            params.notifications,
            tools_change=self._subscribe is not None,
            has_streams=self._streams is not None,
        )
        with self._ending.calls(self._handler.close):
            return await self._handler(ctx, params)

    async def tell(self, session: ServerSession, subscribed: AbstractSet[str]) -> None:
        """Send a client of the initialize era each change, until cancelled.

        Changes of one thing that come while others are being sent are sent as one.

        Args:
            session: The client's.
            subscribed: The addresses of the streams that it wants to hear of, now.
        """
        changed = anyio.Event()
        waiting: dict[ServerEvent, None] = {}

        def note(event: ServerEvent) -> None:
            if not isinstance(event, ResourceUpdated) or event.uri in subscribed:
                waiting[event] = None
                changed.set()

        unsubscribe = self.subscribe(note)
        try:
            while True:
                await changed.wait()
                changed = anyio.Event()
                while waiting:
                    event = next(iter(waiting))
                    del waiting[event]
                    if isinstance(event, ResourceUpdated):
                        await session.send_resource_updated(event.uri)
                    else:
                        await session.send_tool_list_changed()
        finally:
            unsubscribe()

    # --- for the SDK: its `SubscriptionBus` ---

    async def publish(self, event: ServerEvent) -> None:
        """Refuse: the toolbox and the streams alone say when they change."""
        raise NotImplementedError

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call a function with each change; returns what ends that."""
        ends: list[Callable[[], None]] = []
        if self._subscribe is not None:
            ends.append(self._subscribe(lambda: listener(ToolsListChanged())))
        if self._streams is not None:
            ends.append(self._streams.subscribe(lambda uri: listener(ResourceUpdated(uri))))

        def end() -> None:
            for each in ends:
                each()

        return end
