"""Record the browser of a session, and the calls of its tools."""

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from opentabs_py.calling.changes import Changes
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.recording.settling import SETTLE_WITHIN, Settling
from opentabs_py.core.text import quantity
from opentabs_py.errors import BrowserError
from opentabs_py.recording.drivers import AsyncDriver
from opentabs_py.recording.traffic import TrafficRecorder
from opentabs_py.recording.values import CallNotes, WholeValues

if TYPE_CHECKING:
    from opentabs_py.session.session import OpenTabs


class SessionRecorder:
    """A recording that is being made; see `start`."""

    def __init__(self, session: "OpenTabs", url: str, state: Mapping[str, Any]) -> None:
        self._context = session.context
        self._url = url
        self._state = state
        self._notes = CallNotes()
        records = session.internals.tool_calls.records
        self._end_keeping = records.keep_values(WholeValues())
        self._end_observing = records.observe(self._notes.note, traced=False)
        ours = urlsplit(session.mcp_url).netloc
        self._changes = Changes()
        self._driver = AsyncDriver()
        self._traffic = TrafficRecorder(
            session.context,
            self._driver,
            ignores=lambda url: urlsplit(url).netloc == ours,
            on_ended=self._changes.notify,
        )

    @classmethod
    async def start(cls, session: "OpenTabs", url: str) -> "SessionRecorder":
        """Record from now on.

        Args:
            session: The session.
            url: The page that will be opened first.

        Raises:
            BrowserError: The browser is gone.
        """
        from opentabs_py.browser.driver import FAILURES  # it is loaded once there is one

        try:
            state = await session.context.storage_state()
        except FAILURES as error:
            session.check_driver()
            reason = str(error).partition("\n")[0]
            raise BrowserError(f"Cannot record the browser: {reason}. Is it closed?") from error
        return cls(session, url, dict(state))

    @property
    def summary(self) -> str:
        """How much there is so far, in one line."""
        traffic = self._traffic
        requests = quantity(traffic.count, "request")
        return f"{requests}, {traffic.pending} running, {quantity(len(self._notes.calls), 'call')}"

    async def wait_read(self) -> None:
        """Wait until all responses requested so far have been read.

        Chromium drops the bodies of a page's responses when the page goes away.
        """
        await self._catch_up()
        with anyio.move_on_after(SETTLE_WITHIN):
            while self._traffic.pending:
                await self._changes.next().wait()

    async def stop(self, *, within: float = inf) -> Recording:
        """Stop, and return the recording, with all its secrets.

        Args:
            within: How long to wait at most for what is on its way, in seconds.
        """
        self._end_observing()
        self._end_keeping()
        with anyio.move_on_after(within):
            await self._settle()
        exchanges, sockets = self._traffic.stop()
        state = await self._state_now()
        return Recording(
            self._url,
            exchanges,
            sockets,
            self._notes.calls,
            self._state,
            storage_at_end=state,
        )

    async def _settle(self) -> None:
        await self._catch_up()
        settling = Settling(anyio.current_time())
        while (left := self._left(settling)) > 0:
            with anyio.move_on_after(left):
                await self._changes.next().wait()
        await self._driver.wait(SETTLE_WITHIN)

    def _left(self, settling: Settling) -> float:
        traffic = self._traffic
        now = anyio.current_time()
        return settling.left(now, unanswered=traffic.unanswered, pending=traffic.pending)

    async def _catch_up(self) -> None:
        self._driver.run(self._traffic.catch_up())
        await self._driver.wait(SETTLE_WITHIN)

    async def _state_now(self) -> Mapping[str, Any] | None:
        """Return the cookies and the local storage; None if the browser has been closed."""
        from opentabs_py.browser.driver import FAILURES  # it is loaded once there is one

        try:
            return dict(await self._context.storage_state())
        except FAILURES:
            return None
