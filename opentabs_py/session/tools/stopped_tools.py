"""What becomes of tools in pages after their calls have timed out, and where they waited."""

from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup

from opentabs_py.bridge.timed_out import TimedOut, TimedOutCalls
from opentabs_py.calling.changes import Changes
from opentabs_py.calling.plugin_log import plugin_logger
from opentabs_py.core.protocol import StoppedParams
from opentabs_py.core.text import duration, shorten, visible

KEPT: Final = 100  # texts, of the calls that timed out last
ERROR: Final = 100  # characters shown of what a tool threw when it ended
STOPS_WITHIN: Final = 2.0  # s; takes a few ms if the tool passes its signal on
_RUNS_ON: Final = (
    "It has not stopped: it does not pass context.signal on, which would show here where it waits; "
    "or its page is busy, as in an endless loop."
)


class StoppedTools:
    """Logs where tools waited whose calls have timed out, as they say themselves when they end.

    A timeout says only that nothing was heard of a tool. It fires the tool's signal, which lets
    the tool throw in the line in which it waits.

    Args:
        tasks: Tasks that run as long as the session.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.
    """

    def __init__(self, tasks: TaskGroup, read_stack: Callable[[str, str], Awaitable[str]]) -> None:
        self._tasks = tasks
        self._read_stack = read_stack
        self._expected: set[str] = set()  # ids of calls of whose tools nothing is logged yet
        self._texts: dict[str, str] = {}
        self._changes = Changes()

    def watch(self, calls: TimedOutCalls) -> None:
        """Watch the calls in a browser's pages that have timed out."""
        calls.on_timed_out = self._handle_timed_out
        calls.on_stopped = self._handle_stopped

    async def wait(self, call_id: str, within: float) -> str | None:
        """Return how and where the tool of a call that timed out ended.

        Args:
            call_id: The call's id.
            within: How long to wait for that, in seconds.

        Returns:
            Empty if it did not say where; None if it still runs, or its page cannot say.
        """
        with anyio.move_on_after(within):
            while call_id not in self._texts:
                await self._changes.next().wait()
        return self._texts.get(call_id)

    async def wait_to_explain(self, call_id: str) -> str:
        """Return what is logged of the tool of a call, once that is known.

        Args:
            call_id: The call's id.

        Returns:
            Empty if there is nothing to say, as of a call that has not timed out in a page.
        """
        if call_id not in self._expected and call_id not in self._texts:
            return ""
        text = await self.wait(call_id, STOPS_WITHIN)
        return _RUNS_ON if text is None else text

    async def wait_logged(self) -> None:
        """Wait until it is logged of each call that has timed out what becomes of its tool."""
        while self._expected:
            await self._changes.next().wait()

    def _handle_timed_out(self, timed_out: TimedOut) -> None:
        self._expected.add(timed_out.call_id)
        self._tasks.start_soon(self._expect_end, timed_out)

    async def _expect_end(self, timed_out: TimedOut) -> None:
        if await self.wait(timed_out.call_id, STOPS_WITHIN) is None:
            _log(timed_out, _RUNS_ON)
        self._expected.discard(timed_out.call_id)
        self._changes.notify()

    def _handle_stopped(self, timed_out: TimedOut, stopped: StoppedParams) -> None:
        self._tasks.start_soon(self._add, timed_out, stopped, anyio.current_time())

    async def _add(self, timed_out: TimedOut, stopped: StoppedParams, now: float) -> None:
        text = await self._describe(timed_out, stopped, now - timed_out.time)
        if len(self._texts) >= KEPT:
            del self._texts[next(iter(self._texts))]
        self._texts[timed_out.call_id] = text
        self._changes.notify()
        if text:
            _log(timed_out, text)

    async def _describe(self, timed_out: TimedOut, stopped: StoppedParams, later: float) -> str:
        if not stopped.started:
            return "It was not started, because isReady() had not answered."
        if stopped.stack is None:
            return f"It returned {duration(later)} later. Let it stop when context.signal fires."
        read = (await self._read_stack(timed_out.plugin, stopped.stack)).rstrip()
        head, _, frames = read.partition("\n")
        lines = [*([] if timed_out.reason in head else [shorten(head, ERROR)]), frames]
        shown = "\n".join(filter(None, lines))
        return shown and f"It waited here:\n{shown}"


def _log(timed_out: TimedOut, text: str) -> None:
    log = plugin_logger(timed_out.plugin)
    log.warning("The tool %s timed out. %s", timed_out.tool, visible(text))
