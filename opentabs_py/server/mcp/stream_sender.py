"""Send the updates of tools' streams to a client, during the call and after it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import types
from mcp.server.session import ServerSession

from opentabs_py.calling.streams import Followed, StreamUpdate
from opentabs_py.server.mcp.client_limits import HUNG_CLIENT

logger = logging.getLogger(__name__)

TOOL_NAME_KEY: Final = "tool_name"
DROPPED_KEY: Final = "opentabs/dropped"


@dataclass(frozen=True, slots=True)
class UpdateSender:
    """Sends single updates as progress of the call, or as log messages if it has no token.

    Attributes:
        session: The client's session.
        request_id: The call's request id.
        token: The call's progress token, if it has one.
        logs: Whether the client wants log messages of level info.
    """

    session: ServerSession
    request_id: types.RequestId | None
    token: types.ProgressToken | None
    logs: bool

    async def during(self, stream: Followed, update: StreamUpdate, dropped: int) -> None:
        """Send an update on the stream of the call's request."""
        if self.token is None:
            # A client in this process has a callback instead of a token.
            await self.session.report_progress(update.number, None, update.text)
        await self._send(stream, update, dropped, self.request_id)

    async def after(self, stream: Followed, update: StreamUpdate, dropped: int) -> None:
        """Send an update on the session's own stream, after the call's response.

        MCP has no progress after the response, but clients of streams expect it anyway.
        """
        await self._send(stream, update, dropped, None)

    async def _send(
        self, stream: Followed, update: StreamUpdate, dropped: int, related: types.RequestId | None
    ) -> None:
        meta: dict[str, Any] = {TOOL_NAME_KEY: stream.name}
        if dropped:
            meta[DROPPED_KEY] = dropped
        notification: types.ServerNotification
        if self.token is not None:
            notification = types.ProgressNotification(
                params=types.ProgressNotificationParams(
                    progress_token=self.token,
                    progress=update.number,
                    message=update.text,
                    _meta=meta,
                )
            )
        elif self.logs:
            notification = types.LoggingMessageNotification(
                params=types.LoggingMessageNotificationParams(
                    level="info", logger=stream.name, data=update.text, _meta=meta
                )
            )
        else:
            return
        try:
            await self.session.send_notification(notification, related)
        except Exception as error:  # noqa: BLE001
            # A client that hung up does not end the tool's stream.
            logger.debug("An update of %s was not sent: %r", stream.name, error)


class Feed:
    """The streams of one call, and how much of each has been sent."""

    def __init__(self) -> None:
        self._sent: list[tuple[Followed, int]] = []

    def __bool__(self) -> bool:
        return bool(self._sent)

    def follow(self, stream: Followed) -> None:
        """Send a stream too, from its first update."""
        self._sent.append((stream, 0))

    async def send(self, send: Callable[[Followed, StreamUpdate, int], Awaitable[None]]) -> None:
        """Send the new updates of each stream, in order, until the client does not accept one."""
        for place, (stream, already) in enumerate(self._sent):
            last = already
            for update in stream.since(already):
                with anyio.move_on_after(HUNG_CLIENT) as scope:
                    await send(stream, update, update.number - last - 1)
                if scope.cancelled_caught:
                    return
                last = update.number
                self._sent[place] = stream, last

    def drop_ended(self) -> None:
        """Forget the streams that have ended and been sent completely."""
        self._sent = [(s, sent) for s, sent in self._sent if s.is_open or s.since(sent)]


class LateUpdates:
    """Sends the updates of one connection's calls that have already returned."""

    def __init__(self) -> None:
        self._feeds: list[tuple[Feed, UpdateSender]] = []
        self._changed = anyio.Event()

    def add(self, feed: Feed, sender: UpdateSender) -> None:
        """Send the rest of a call's streams from now on."""
        self._feeds.append((feed, sender))
        self.wake()

    def wake(self) -> None:
        """Handle a change in a stream."""
        self._changed.set()

    async def run(self) -> None:
        """Send updates as they arrive, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            for feed, sender in list(self._feeds):
                await feed.send(sender.after)
                feed.drop_ended()
            self._feeds = [each for each in self._feeds if each[0]]
