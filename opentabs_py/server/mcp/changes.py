"""Notify clients when the tools or the streams change."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent, ToolsListChanged

from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.streams import StreamSource
from opentabs_py.server.mcp.workarounds import narrow

Subscribe = Callable[[Callable[[], None]], Callable[[], None]]
"""Registers a function to call whenever the tool list changes; returns the unsubscriber."""


class ChangeNotifier:
    """Notifies clients of both eras of changes to the tool list and to streams.

    Args:
        subscribe: Subscribes to the tool list; None if it never changes.
        streams: The streams served as resources; None if no tool ever has any.
        on_stop: Notified when the server stops, which ends the clients' subscriptions with their
            results.
    """

    def __init__(
        self,
        subscribe: Subscribe | None,
        streams: StreamSource | None,
        on_stop: Listeners[[]] | None,
    ) -> None:
        self._subscribe = subscribe
        self._streams = streams
        self._handler = ListenHandler(self)
        if on_stop is not None:
            on_stop.subscribe(self._handler.close)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve `subscriptions/listen` (MCP 2026-07-28) until client or server ends it."""
        params.notifications = narrow(
            params.notifications,
            tools_change=self._subscribe is not None,
            has_streams=self._streams is not None and self._streams.is_served,
        )
        return await self._handler(ctx, params)

    async def notify(self, session: ServerSession, subscribed: AbstractSet[str]) -> None:
        """Notify a client of the initialize era of each change, until cancelled.

        Changes to the same thing that arrive while others are being sent are merged.

        Args:
            session: The client's session.
            subscribed: The URIs of the streams it currently subscribes to.
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
        """Raise an error: only the registry and the streams publish changes."""
        raise NotImplementedError

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call a function with each change; return the unsubscriber."""
        ends = ExitStack()
        if self._subscribe is not None:
            ends.callback(self._subscribe(lambda: listener(ToolsListChanged())))
        if self._streams is not None:
            ends.callback(self._streams.subscribe(lambda uri: listener(ResourceUpdated(uri))))
        return ends.close
