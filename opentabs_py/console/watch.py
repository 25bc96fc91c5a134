"""Keeps the board current, and sends its changes to the pages that look at it.

A call costs two entries in the board. Everything else is read on demand, while a page is open.
"""

import secrets
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from opentabs_py.bridge.pages import Pages
from opentabs_py.console.log_tail import LogTail
from opentabs_py.console.plugins import ServedPlugins
from opentabs_py.console.rows import (
    browser_rows,
    plugin_rows,
    problem_rows,
    question_rows,
    tab_rows,
)
from opentabs_py.console.stream import QUIET_AT_MOST, event
from opentabs_py.core.console.board import Board, in_parts
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.plugins.plugin import Plugin
from opentabs_py.server.tools.tool_calls import ToolCalls

if TYPE_CHECKING:
    from opentabs_py.fleet.link import NatsLink

LOOK_AGAIN: Final = 0.1  # s; what users see as at once
LOOKS_AT_MOST: Final = 0.1  # of the time, however many calls run
LOOK_AT_PLUGINS: Final = 1.0  # s; nothing says when a problem has come or gone


class Watch:
    """Tracks a server's activity for open console pages.

    Args:
        calls: The calls of the server's tools.
        pages: The tabs in which tools run.
        plugins: The plugins that are served.
        wall: The time, in seconds since the epoch.
        link: How an endpoint reaches its fleet, whose workers have the browsers.

    Attributes:
        board: The calls that pages show.
    """

    def __init__(
        self,
        calls: ToolCalls,
        pages: Pages,
        plugins: ServedPlugins,
        *,
        wall: Callable[[], float],
        link: "NatsLink | None" = None,
    ) -> None:
        self.board = Board()
        self._calls = calls
        self._pages = pages
        self._plugins = plugins
        self._wall = wall
        self._link = link
        self._questions = calls.registry.gate.questions
        self._has_new_questions = True
        self._boot = secrets.token_hex(8)
        self._running: dict[str, RecordSoFar] = {}
        self._logs = LogTail()
        # Pages outlive servers: that of another one must not look like this one's.
        self._revision = secrets.randbelow(2**32)
        self._is_stale = True  # the list of plugins, or their tools
        self._tabs_changed: anyio.Event | None = None
        self._looked_at_plugins = float("-inf")
        self._look_at = float("-inf")
        self._stopping = anyio.Event()

    @contextmanager
    def watching(self, logs: LogTail | None = None) -> Generator[None]:
        """Remember calls and logs while the context is open, even if no page looks.

        Calls that begin while none does are not traced, because that costs each some time: what
        they report is known, but not when they passed each hop.

        Args:
            logs: Has kept what was logged before.
        """
        self._logs = logs or self._logs
        ends = [
            self._calls.records.observe(
                self._handle_end, on_start=self._handle_start, traced=False
            ),
            self._calls.registry.subscribe(self._handle_tools),
            self._calls.registry.gate.subscribe(self._handle_tools),
            self._questions.subscribe(self._handle_questions),
        ]
        try:
            with self._logs.listening():
                yield
        finally:
            for end in ends:
                end()

    def stop(self) -> None:
        """End the streams of all pages."""
        self._stopping.set()

    async def stream(
        self, send: Callable[[bytes], Awaitable[None]], *, boot: str, version: int
    ) -> None:
        """Send what changes, as server-sent events, until the server stops.

        Each event is what has changed since the one before was read, at most ten times a second.
        One comes at the beginning, and in a while without changes, although it says nothing: the
        page then knows that the server is there.

        Args:
            send: Sends to the page; waits while the page does not read.
            boot: The server's run that the page knows; empty if it knows none.
            version: The version of that run that it knows.
        """
        if boot != self._boot:
            version = 0
        quiet_until = float("-inf")
        with self._looking():
            while not self._stopping.is_set():
                self._look()
                update = self.board.since(version)
                if update is None and anyio.current_time() >= quiet_until:
                    update = {"version": version}
                if update is not None:
                    quiet_until = anyio.current_time() + QUIET_AT_MOST
                    version = update["version"]
                    for part in in_parts(update):
                        await send(event(part, boot=self._boot, now=self._wall()))
                with anyio.move_on_after(LOOK_AGAIN):
                    await self._stopping.wait()

    @contextmanager
    def _looking(self) -> Generator[None]:
        """Let a page look while the context is open; its user can answer questions."""
        end_tracing = self._calls.records.observe(lambda _: None)  # so that calls are traced
        try:
            with self._questions.shown():
                yield
        finally:
            end_tracing()

    def record(self, call_id: str) -> CallRecord | None:
        """Return the record of a call, so far if it runs; None if there is none."""
        so_far = self._running.get(call_id)
        return self.board.record(call_id) if so_far is None else so_far()

    def is_running(self, call_id: str) -> bool:
        """Return whether a call runs."""
        return call_id in self._running

    def _look(self) -> None:
        """Update the board, unless another page has just done so."""
        now = anyio.current_time()
        if now < self._look_at:
            return
        self._look_at_calls()
        if self._has_new_questions:
            self._has_new_questions = False
            self.board.set("questions", question_rows(self._questions, self._wall()))
        for entry in self._logs.drain():
            self.board.handle_log(entry)
        if self._tabs_changed is None or self._tabs_changed.is_set():
            self._tabs_changed = self._pages.changed()
            self._is_stale = True  # readiness is shown with the plugins
            self.board.set("tabs", tab_rows(self._pages))
        if self._is_stale or now >= self._looked_at_plugins + LOOK_AT_PLUGINS:
            self._look_at_plugins()
            self._looked_at_plugins = now
        took = anyio.current_time() - now
        self._look_at = now + max(0.9 * LOOK_AGAIN, took / LOOKS_AT_MOST)

    def _look_at_calls(self) -> None:
        for call_id, so_far in self._running.items():
            record, known = so_far(), self.board.record(call_id)
            if known is None or _seen(record) != _seen(known):
                self.board.handle_call(record)

    def _look_at_plugins(self) -> None:
        self._is_stale = False
        plugins: Sequence[Plugin] = self._plugins.plugins
        rows: Mapping[str, Any] = plugin_rows(
            plugins,
            self._calls.registry,
            self._pages,
            standings=self._plugins.standings,
            revision=self._revision,
        )
        self.board.set("plugins", rows)
        self.board.set("problems", problem_rows(self._plugins.skipped, self._pages, self._link))
        if self._link is None:
            self.board.set("browsers", browser_rows(self._pages))  # what to do changes without tabs

    def _handle_tools(self) -> None:
        self._revision += 1
        self._is_stale = True

    def _handle_questions(self) -> None:
        self._has_new_questions = True

    def _handle_start(self, so_far: RecordSoFar) -> None:
        record = so_far()
        self._running[record.call_id] = so_far
        self.board.handle_call(record)

    def _handle_end(self, record: CallRecord) -> None:
        self._running.pop(record.call_id, None)
        self.board.handle_end(record)


def _seen(record: CallRecord) -> tuple[object, ...]:
    """Return what a list shows of a running call, apart from its time."""
    return record.report_count, record.log_count, record.tab_id, record.attempts
