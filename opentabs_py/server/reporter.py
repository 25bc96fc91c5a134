"""What a client is sent while its call runs: progress, and what the plugin logs."""

import logging
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import Any, get_args

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

logger = logging.getLogger(__name__)

SETTLE = 0.02  # s; TypeScript clients lose progress that arrives in one read with the result
HUNG_CLIENT = 1.0  # s; how long the last report may wait for a client that does not read
WAITING_LOGS = 1000  # records that wait for a client to read; then the oldest go
LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)  # from least to worst


class CallReporter:
    """Sends one call's progress and logs while it runs. No failure of it touches the result.

    Args:
        ctx: The request that made the call.
        logger: The name that its logs bear.
        least: The least level of logs that the client has set (`logging/setLevel`); from
            2026-07-28 on each request says it for itself.
        pace: How often progress is sent.
    """

    def __init__(
        self,
        ctx: ServerRequestContext[Any],
        *,
        logger: str | None,
        least: types.LoggingLevel,
        pace: Pace,
    ) -> None:
        self._logger = logger
        self._session = ctx.session
        self._request_id = ctx.request_id
        allowed = allowed_log_levels(ctx.protocol_version, ctx.meta)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._levels = allowed if modern else frozenset(LEVELS[LEVELS.index(least) :])
        self._filter = ProgressFilter(pace, started=anyio.current_time())
        self._logs: deque[LogEntry] = deque(maxlen=WAITING_LOGS)
        self._keeps_alive = pace.keepalive is not None
        self._tasks: TaskGroup | None = None
        # Made with the task that sends, and so not for a call that reports nothing.
        self._fed: anyio.Event | None = None
        self._sending = anyio.Lock()
        # On the wire a client without a token is sent nothing; one in this process needs none.
        # Over stdio, which has no HTTP request, the transport waits until the client has read all.
        reports = (ctx.meta or {}).get("progress_token") is not None
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
        await anyio.sleep_until(self._sent_at + self._settle)

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
