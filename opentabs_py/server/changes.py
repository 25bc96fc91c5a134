"""What clients are sent when the tools or the streams change."""

from collections.abc import Callable
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent, ToolsListChanged

from opentabs_py.served import StreamSource
from opentabs_py.server.ending import Ending

Subscribe = Callable[[Callable[[], None]], Callable[[], None]]
"""Has a function called whenever the list of tools changes; returns what ends that."""


def never(_listener: Callable[[], None]) -> Callable[[], None]:
    """Subscribe to tools that stay as they are."""
    return lambda: None


class Changes:
    """Serves `subscriptions/listen` (MCP 2026-07-28): changes of the list of tools, and of streams.

    Args:
        subscribe: To the list of tools.
        streams: Those that are served as resources; None where no tool has any.
        ending: Ends the clients' streams with their results when the server stops.
    """

    def __init__(self, subscribe: Subscribe, streams: StreamSource | None, ending: Ending) -> None:
        self._subscribe = subscribe
        self._streams = streams
        self._ending = ending
        self._handler = ListenHandler(self)

    async def listen(
        self, ctx: ServerRequestContext[Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Send a client what changes, until it hangs up or the server stops."""
        with self._ending.calls(self._handler.close):
            return await self._handler(ctx, params)

    # --- for the SDK: its `SubscriptionBus` ---

    async def publish(self, event: ServerEvent) -> None:
        """Refuse: the toolbox and the streams alone say when they change."""
        raise NotImplementedError

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Call a function with each change; returns what ends that."""
        ends = [self._subscribe(lambda: listener(ToolsListChanged()))]
        if self._streams is not None:
            ends.append(self._streams.subscribe(lambda uri: listener(ResourceUpdated(uri))))

        def end() -> None:
            for each in ends:
                each()

        return end


async def tell_changes(subscribe: Subscribe, session: ServerSession) -> None:
    """Send a client of the initialize era each change of the list of tools, until cancelled.

    Changes that come while one is being sent are sent as one.
    """
    changed = anyio.Event()

    def note() -> None:
        changed.set()

    unsubscribe = subscribe(note)
    try:
        while True:
            await changed.wait()
            changed = anyio.Event()
            await session.send_tool_list_changed()
    finally:
        unsubscribe()
