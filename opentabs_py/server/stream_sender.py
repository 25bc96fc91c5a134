"""Send the frames of tools' streams to a client, during the call and after it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import types
from mcp.server.session import ServerSession

from opentabs_py.calling.tool import Followed, Frame

logger = logging.getLogger(__name__)

HUNG_CLIENT: Final = 1.0  # s; how long a frame may wait for a client that does not read
TOOL_NAME_KEY: Final = "tool_name"
DROPPED_KEY: Final = "opentabs/dropped"


@dataclass(frozen=True, slots=True)
class FrameSender:
    """Sends single frames as progress of the call, or as log messages if it has no token.

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

    async def during(self, stream: Followed, frame: Frame, dropped: int) -> None:
        """Send a frame on the stream of the call's request."""
        if self.token is None:
            # A client in this process has a callback instead of a token.
            await self.session.report_progress(frame.number, None, frame.text)
        await self._send(stream, frame, dropped, self.request_id)

    async def after(self, stream: Followed, frame: Frame, dropped: int) -> None:
        """Send a frame on the session's own stream, after the call's response.

        MCP has no progress after the response, but clients of streams expect it anyway.
        """
        await self._send(stream, frame, dropped, None)

    async def _send(
        self, stream: Followed, frame: Frame, dropped: int, related: types.RequestId | None
    ) -> None:
        meta: dict[str, Any] = {TOOL_NAME_KEY: stream.name}
        if dropped:
            meta[DROPPED_KEY] = dropped
        notification: types.ServerNotification
        if self.token is not None:
            notification = types.ProgressNotification(
                params=types.ProgressNotificationParams(
                    progress_token=self.token,
                    progress=frame.number,
                    message=frame.text,
                    _meta=meta,
                )
            )
        elif self.logs:
            notification = types.LoggingMessageNotification(
                params=types.LoggingMessageNotificationParams(
                    level="info", logger=stream.name, data=frame.text, _meta=meta
                )
            )
        else:
            return
        try:
            await self.session.send_notification(notification, related)
        except Exception as error:  # noqa: BLE001
            # A client that hung up does not end the tool's stream.
            logger.debug("A frame of %s was not sent: %r", stream.name, error)


class Feed:
    """The streams of one call, and how much of each has been sent."""

    def __init__(self) -> None:
        self._sent: list[tuple[Followed, int]] = []

    def __bool__(self) -> bool:
        return bool(self._sent)

    def follow(self, stream: Followed) -> None:
        """Send a stream too, from its first frame."""
        self._sent.append((stream, 0))

    async def send(self, send: Callable[[Followed, Frame, int], Awaitable[None]]) -> bool:
        """Send the new frames of each stream, in order.

        Returns:
            Whether the client accepted them all.
        """
        for place, (stream, already) in enumerate(self._sent):
            last = already
            for frame in stream.since(already):
                with anyio.move_on_after(HUNG_CLIENT) as scope:
                    await send(stream, frame, frame.number - last - 1)
                if scope.cancelled_caught:
                    return False
                last = frame.number
                self._sent[place] = stream, last
        return True

    def drop_ended(self) -> None:
        """Forget the streams that have ended and been sent completely."""
        self._sent = [(s, sent) for s, sent in self._sent if s.is_open or s.since(sent)]


class LateFrames:
    """Sends the frames of one connection's calls that have already returned."""

    def __init__(self) -> None:
        self._feeds: list[tuple[Feed, FrameSender]] = []
        self._changed = anyio.Event()

    def take_over(self, feed: Feed, sender: FrameSender) -> None:
        """Take responsibility for the rest of a call's streams."""
        self._feeds.append((feed, sender))
        self.wake()

    def wake(self) -> None:
        """Handle a change in a stream."""
        self._changed.set()

    async def run(self) -> None:
        """Send frames as they arrive, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            for feed, sender in list(self._feeds):
                await feed.send(sender.after)
                feed.drop_ended()
            self._feeds = [each for each in self._feeds if each[0]]
