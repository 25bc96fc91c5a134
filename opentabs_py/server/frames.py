"""The frames of tools' streams, on their way to a client: during the call, and after it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import anyio
from mcp import types
from mcp.server.session import ServerSession

from opentabs_py.served import Followed, Frame

logger = logging.getLogger(__name__)

HUNG_CLIENT: Final = 1.0  # s; how long a frame may wait for a client that does not read
TOOL_NAME_KEY: Final = "tool_name"
DROPPED_KEY: Final = "opentabs/dropped"


@dataclass(frozen=True, slots=True)
class FrameSender:
    """Sends single frames: as progress of the call, or as log messages where it has no token.

    Attributes:
        session: The client's.
        request_id: Of the call.
        token: Its progress token, if it has one.
        logs: Whether the client takes log messages of the level info.
    """

    session: ServerSession
    request_id: types.RequestId | None
    token: types.ProgressToken | None
    logs: bool

    async def during(self, stream: Followed, frame: Frame, dropped: int) -> None:
        """Send a frame on the stream of the call's request."""
        if self.token is None:
            # A client in this process has its callback, and no token.
            await self.session.report_progress(frame.number, None, frame.text)
        await self._send(stream, frame, dropped, self.request_id)

    async def after(self, stream: Followed, frame: Frame, dropped: int) -> None:
        """Send a frame on the session's own stream, when the call has its response.

        MCP has no progress after the response. Clients of streams expect these all the same.
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
    """The streams of one call, and how much of each was sent."""

    def __init__(self) -> None:
        self._sent: list[tuple[Followed, int]] = []

    def __bool__(self) -> bool:
        return bool(self._sent)

    def follow(self, stream: Followed) -> None:
        """Send this one too, from its first frame."""
        self._sent.append((stream, 0))

    async def send(self, send: Callable[[Followed, Frame, int], Awaitable[None]]) -> bool:
        """Send what has come, in the order of each stream.

        Returns:
            Whether the client took it all.
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
        """Forget the streams that have ended, when all of them was sent."""
        self._sent = [(s, sent) for s, sent in self._sent if s.is_open or s.since(sent)]


class LateFrames:
    """The frames of one connection's calls that have returned."""

    def __init__(self) -> None:
        self._feeds: list[tuple[Feed, FrameSender]] = []
        self._changed = anyio.Event()

    def take_over(self, feed: Feed, sender: FrameSender) -> None:
        """Send the rest of a call's streams."""
        self._feeds.append((feed, sender))
        self.wake()

    def wake(self) -> None:
        """A stream has changed."""
        self._changed.set()

    async def run(self) -> None:
        """Send what comes, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            for feed, sender in list(self._feeds):
                await feed.send(sender.after)
                feed.drop_ended()
            self._feeds = [each for each in self._feeds if each[0]]
