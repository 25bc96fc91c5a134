"""What a client is sent while its call runs: progress, and what the plugin logs."""

import logging
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import get_args

import anyio
from anyio.abc import TaskGroup
from mcp import types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from opentabs_py.core.progress import (
    Pace,
    ProgressFilter,
    ProgressNotification,
    ProgressReport,
)
from opentabs_py.core.protocol import LogEntry
from opentabs_py.served import Followed
from opentabs_py.server.clients import reads_links
from opentabs_py.server.connections import Connection, Connections
from opentabs_py.server.frames import Feed, FrameSender

logger = logging.getLogger(__name__)

SETTLE = 0.02  # s; TypeScript clients lose progress that arrives in one read with the result
HUNG_CLIENT = 1.0  # s; how long the last report may wait for a client that does not read
WAITING_LOGS = 1000  # records that wait for a client to read; then the oldest go
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)  # from least to worst


class CallReporter:
    """Sends one call's progress, logs and streams while it runs; no failure of it is the call's.

    Args:
        ctx: The request that made the call.
        connection: What it came by.
        logger: The name that its logs bear.
        pace: How often progress is sent.
        late: Whether streams that go on after the response are sent on, where there is a way.

    Attributes:
        owner: The client's session.
        takes_links: Whether it reads links to resources.
    """

    def __init__(
        self,
        ctx: ServerRequestContext[Connections],
        *,
        connection: Connection,
        logger: str | None,
        pace: Pace,
        late: bool = True,
    ) -> None:
        self.owner: str | None = ctx.lifespan_context.owner(ctx)
        self.takes_links = reads_links(ctx)
        self._logger = logger
        self._session = ctx.session
        self._request_id = ctx.request_id
        allowed = allowed_log_levels(ctx.protocol_version, ctx.meta)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._levels = allowed if modern else frozenset(LEVELS[LEVELS.index(connection.least) :])
        self._filter = ProgressFilter(pace, started=anyio.current_time())
        self._logs: deque[LogEntry] = deque(maxlen=WAITING_LOGS)
        self._keeps_alive = pace.keepalive is not None
        self._tasks: TaskGroup | None = None
        # Made with the task that sends, and so not for a call that reports nothing.
        self._fed: anyio.Event | None = None
        self._sending = anyio.Lock()
        # On the wire a client without a token is sent nothing; one in this process needs none.
        # Over stdio, which has no HTTP request, the transport waits until the client has read all.
        token = (ctx.meta or {}).get("progress_token")
        reports = token is not None
        self._feed = Feed()
        self._sender = FrameSender(ctx.session, ctx.request_id, token, "info" in self._levels)
        # Where there are no sessions, there is no stream of a session's own, either.
        self._late = connection.late if late and not modern else None
        self._is_over = False
        self._settle = SETTLE if reports and ctx.request is not None else 0.0
        self._sent_at = float("-inf")

    def feed(self, reports: Sequence[ProgressReport]) -> None:
        """Take reports; what of them the client is sent `core.progress` says."""
        now = anyio.current_time()
        for report in reports:
            self._filter.report(report, now)
        self._wake()

    def feed_logs(self, entries: Sequence[LogEntry]) -> None:
        """Take log records; the client is sent those of the levels that it wants."""
        wanted = [entry for entry in entries if entry.level in self._levels]
        if wanted:
            self._logs.extend(wanted)
            self._wake()

    def follow(self, stream: Followed) -> None:
        """Send a stream's frames, each of them, as long as there is a way."""
        self._feed.follow(stream)
        self.wake()

    def wake(self) -> None:
        """A stream has changed."""
        if not self._is_over:
            self._wake()
        elif self._late is not None:
            self._late.wake()

    def start(self, tasks: TaskGroup) -> None:
        """Send what there is to send, in a task of this group from the first on."""
        self._tasks = tasks
        if self._keeps_alive:
            self._wake()

    def _wake(self) -> None:
        if self._fed is not None:
            self._fed.set()
        elif self._tasks is not None:
            self._fed = anyio.Event()
            self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        while True:
            self._fed = anyio.Event()
            async with self._sending:
                await self._send_logs()
                await self._send(self._filter.take(anyio.current_time()))
                await self._send_frames()
            next_time = self._filter.next_time()
            with anyio.CancelScope(deadline=inf if next_time is None else next_time):
                await self._fed.wait()

    async def finish(self) -> None:
        """Send what is left, and let the client read it before the result comes."""
        if self._fed is None:
            return  # there was nothing
        with anyio.move_on_after(HUNG_CLIENT):
            async with self._sending:
                await self._send_logs()
                await self._send(self._filter.finish(anyio.current_time()))
        if self._feed:  # however many: each has its own bound
            async with self._sending:
                await self._send_frames()
        await anyio.sleep_until(self._sent_at + self._settle)

    def leave(self) -> None:
        """Leave the streams that go on to the connection, before the response is sent."""
        self._is_over = True
        if self._late is not None and self._feed:
            self._late.take_over(self._feed, self._sender)

    async def _send_frames(self) -> None:
        if self._feed:
            await self._feed.send(self._sender.during)
            self._sent_at = anyio.current_time()

    async def _send_logs(self) -> None:
        while self._logs:
            entry = self._logs.popleft()
            params = types.LoggingMessageNotificationParams(
                level=entry.level, data=entry.message, logger=self._logger
            )
            try:
                # On the stream of the request, in every era.
                await self._session.send_notification(
                    types.LoggingMessageNotification(params=params), self._request_id
                )
            except Exception as error:  # noqa: BLE001
                logger.debug("A log message was not sent: %r", error)

    async def _send(self, notifications: Sequence[ProgressNotification]) -> None:
        for notification in notifications:
            self._sent_at = anyio.current_time()
            try:
                await self._session.report_progress(
                    notification.progress, notification.total, notification.message
                )
            except Exception as error:  # noqa: BLE001
                # Fire and forget: a client that hung up its stream does not end its call.
                logger.debug("A progress notification was not sent: %r", error)
