"""Send a client progress, the plugin's logs and streams while its call runs."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import get_args

import anyio
from anyio.abc import TaskGroup
from mcp import types
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from opentabs_py.calling.client import Asker
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.streams import Followed
from opentabs_py.core.progress import (
    Pace,
    ProgressFilter,
    ProgressNotification,
    ProgressReport,
    WaitReport,
)
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.server.mcp.client_limits import HUNG_CLIENT, WAITING_LOGS
from opentabs_py.server.mcp.clients import client_name, reads_links
from opentabs_py.server.mcp.connections import (
    ClientConnection,
    ClientConnections,
    find_http_headers,
)
from opentabs_py.server.mcp.stream_sender import Feed, UpdateSender

logger = logging.getLogger(__name__)

SETTLE = 0.02  # s; TypeScript clients lose progress that arrives in the same read as the result
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)  # by increasing severity


class ProgressSender(CallObserver):
    """Sends one call's progress, logs and streams while it runs; its failures never fail the call.

    Args:
        ctx: The request that made the call.
        connection: The connection it arrived on.
        logger: The logger name for its logs.
        pace: How often to send progress.
        late: Whether to keep sending streams after the response, where possible.
        find_asker: Returns what asks the client's user, if anything can.
        uses_gateway: Whether the client calls every tool through `opentabs_call`.

    Attributes:
        session_key: The key of the client's session.
        name: The client's name and version.
        takes_links: Whether the client reads resource links.
        uses_gateway: Whether it calls every tool through `opentabs_call`.
    """

    reads_streams = True

    def __init__(
        self,
        ctx: ServerRequestContext[ClientConnections],
        *,
        connection: ClientConnection,
        logger: str | None,
        pace: Pace,
        late: bool = True,
        find_asker: Callable[[], Asker | None] = lambda: None,
        uses_gateway: bool = False,
    ) -> None:
        self._find_asker = find_asker
        self._asker: Asker | None = None
        self.session_key: SessionKey | None = ctx.lifespan_context.session_key(ctx)
        self.name = client_name(ctx)
        self.takes_links = reads_links(ctx)
        self.uses_gateway = uses_gateway
        self._logger = logger
        self._session = ctx.session
        self._request_id = ctx.request_id
        allowed = allowed_log_levels(ctx.protocol_version, ctx.meta)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._levels = (
            allowed if modern else frozenset(LEVELS[LEVELS.index(connection.log_level) :])
        )
        self._filter = ProgressFilter(pace, started=anyio.current_time())
        self._logs: deque[LogEntry] = deque(maxlen=WAITING_LOGS)
        self._keeps_alive = pace.keepalive is not None
        self._tasks: TaskGroup | None = None
        # Created with the sending task, so a call that reports nothing has none.
        self._fed: anyio.Event | None = None
        self._sending = anyio.Lock()
        self._reporting = anyio.CancelScope()  # what is sent without a timeout
        # Over the wire, a client without a token receives nothing; one in this process needs none.
        # Over stdio, which has no HTTP request, the transport waits until the client has read it.
        token = (ctx.meta or {}).get("progress_token")
        reports = token is not None
        self._feed = Feed()
        self._sender = UpdateSender(ctx.session, ctx.request_id, token, "info" in self._levels)
        # Without sessions, a session has no stream of its own either.
        self._late = connection.late if late and not modern else None
        self._is_over = False
        self._settle = SETTLE if reports and find_http_headers(ctx) is not None else 0.0
        self._sent_at = float("-inf")

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        """Receive progress reports; `core.progress` decides which of them are sent."""
        now = anyio.current_time()
        for report in reports:
            self._filter.report(report, now)
        if reports:
            self._wake()

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        """Receive log records; those of the levels the client wants are sent."""
        wanted = [entry for entry in entries if entry.level in self._levels]
        if wanted:
            self._logs.extend(wanted)
            self._wake()

    @property
    def asker(self) -> Asker | None:
        """Asks the client's user, with the answers that the call came with; None if it cannot."""
        self._asker = self._asker or self._find_asker()
        return self._asker

    def on_waiting(self, why: str, /) -> None:
        """Send as progress why the call has to wait, so that the client continues to wait."""
        self.on_reports([WaitReport(0, message=why)])

    def follow(self, stream: Followed) -> None:
        """Send every update of a stream, as long as that is possible."""
        self._feed.follow(stream)
        self.wake()

    def wake(self) -> None:
        """Handle a change in a stream."""
        if not self._is_over:
            self._wake()
        elif self._late is not None:
            self._late.wake()

    def start(self, tasks: TaskGroup) -> None:
        """Start sending, in a task of this group once there is something to send."""
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
                with anyio.CancelScope() as self._reporting:
                    await self._send_logs()
                    await self._send(self._filter.drain(anyio.current_time()))
                await self._send_updates()
            next_time = self._filter.next_time()
            with anyio.CancelScope(deadline=inf if next_time is None else next_time):
                await self._fed.wait()

    async def finish(self) -> None:
        """Send what is left, and let the client read it before the result arrives."""
        if self._fed is None:
            return  # there was nothing
        with anyio.move_on_after(HUNG_CLIENT):
            async with self._sending:
                await self._send_logs()
                await self._send(self._filter.finish(anyio.current_time()))
        if self._feed:  # each update has its own timeout
            self._reporting.cancel()  # or it could hold the lock for ever
            async with self._sending:
                await self._send_updates()
        await anyio.sleep_until(self._sent_at + self._settle)

    def hand_over(self) -> None:
        """Hand the streams that continue over to the connection, before the response is sent."""
        self._is_over = True
        if self._late is not None and self._feed:
            self._late.add(self._feed, self._sender)

    async def _send_updates(self) -> None:
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
                logger.debug("Could not send a log message: %r", error)

    async def _send(self, notifications: Sequence[ProgressNotification]) -> None:
        for notification in notifications:
            self._sent_at = anyio.current_time()
            try:
                await self._session.report_progress(
                    notification.progress, notification.total, notification.message
                )
            except Exception as error:  # noqa: BLE001
                # Fire and forget: a client that closed its stream does not end its call.
                logger.debug("Could not send a progress notification: %r", error)
