"""Explain why a tool hangs: which requests got no response, and at which line it was waiting."""

from collections.abc import Sequence
from contextlib import suppress
from math import inf
from time import time
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request

from opentabs_py.core.text import shorten, visible
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.isolation import pages_of
from opentabs_py.testing.runtime_notes import parse_note
from opentabs_py.testing.sync_session import QUICK
from opentabs_py.testing.thread import ServerThread

REQUESTS: Final = 5  # shown
URL: Final = 200  # characters shown
ERROR: Final = 100  # characters shown of what a tool threw when it stopped
CANCELLED_WITHIN: Final = 1000.0  # ms; takes a few in a page that answers
_BUSY: Final = (
    "its page does not answer: a script runs without a pause, as in an endless loop, or a dialog "
    "is open"
)
_RUNS_ON: Final = (
    "it runs on, although context.signal has fired: pass the signal on, to see here where it waits"
)
_STOPPED: Final = "it stopped when context.signal fired; it had waited here:"


class Hangs:
    """Gathers, during a test, what explains why a tool hangs.

    Args:
        session: The test's server.
        context: The test's browser.
        thread: The server's thread.
    """

    def __init__(self, session: OpenTabs, context: BrowserContext, thread: ServerThread) -> None:
        self._session = session
        self._context = context
        self._thread = thread
        self._requests: dict[Request, tuple[float, float]] = {}  # when it began, and ended
        self._cancelled: dict[str, float] = {}  # when a tool's run was, the last one
        self._stacks: dict[str, str] = {}  # where it stopped then; "" if it threw nothing

    def listen(self) -> None:
        """Gather, until the test's listeners are removed."""
        self._context.on("request", self._note_request)
        self._context.on("requestfinished", self._note_end)
        self._context.on("requestfailed", self._note_end)
        self._context.on("console", self._note_console)

    def explain(self, records: Sequence[CallRecord]) -> str:
        """Return why the tools of calls hang, as far as that is known; "" if it is not.

        Args:
            records: The calls, which have timed out or still run.
        """
        parts: list[str] = []
        latest = {_tool(each): each for each in records if each.outcome == "timed_out"}
        for record in records:
            if why := self._why(record, is_latest=latest.get(_tool(record)) is record):
                lines = [f"{record.name} ({record.call_id[:8]}):", *(f"  {each}" for each in why)]
                parts.append("\n".join(map(str.rstrip, lines)))
        return visible("\n\n".join(parts))

    def _why(self, record: CallRecord, *, is_latest: bool) -> list[str]:
        pages = [page for page in pages_of(self._context) if _plain(page.url) == record.url]
        if not pages:
            return []
        if not all(map(self._thread.answers, pages)):
            return [_BUSY]
        # What a page says about a tool that has stopped does not name the call.
        where = self._where(record, pages[0]) if is_latest else []
        return [*self._waits(record), *where]

    def _waits(self, record: CallRecord) -> list[str]:
        """Return the requests that began during a call, and that had no response at its end."""
        waits = [
            f"no complete response: {request.method} {shorten(_plain(request.url), URL)}"
            for request, (began, ended) in self._requests.items()
            if record.started <= began < _end(record) <= ended
        ]
        left_out = len(waits) - REQUESTS
        return waits[:REQUESTS] + ([f"({left_out} more requests)"] if left_out > 0 else [])

    def _where(self, record: CallRecord, page: Page) -> list[str]:
        """Return where the tool of a call waited that has timed out, if it has stopped."""
        tool = _tool(record)

        def is_cancelled(_: object = None) -> bool:
            return self._cancelled.get(tool, 0.0) >= _end(record)

        if not is_cancelled():  # its signal fires later than the call ends
            with suppress(Error):
                self._context.wait_for_event("console", is_cancelled, timeout=CANCELLED_WITHIN)
        self._thread.answers(page)  # what stops at once has done so by then
        stack = self._stacks.get(tool)
        if stack is None and is_cancelled():
            return [_RUNS_ON]
        if not stack:
            return []
        read = self._session.internals.plugin_set.read_stack
        head, *frames = self._thread.run(read, record.plugin, stack, within=QUICK).splitlines()
        is_reason = record.error is not None and record.error.message in head
        return [_STOPPED, *([] if is_reason else [shorten(head, ERROR)]), *frames]

    def _note_request(self, request: Request) -> None:
        self._requests[request] = (time(), inf)

    def _note_end(self, request: Request) -> None:
        began, _ = self._requests.get(request, (0.0, inf))
        self._requests[request] = (began, time())

    def _note_console(self, message: ConsoleMessage) -> None:
        note = parse_note(message.text) if message.type == "debug" else None
        if note is None:
            return
        if note.has_stopped:
            self._stacks[note.tool] = note.stack
        else:
            self._cancelled[note.tool] = time()
            self._stacks.pop(note.tool, None)


def _tool(record: CallRecord) -> str:
    return f"{record.plugin} {record.tool}"


def _end(record: CallRecord) -> float:
    return record.started + record.seconds


def _plain(url: str) -> str:
    """Return a URL without its query and fragment, as both may contain secrets."""
    return urlsplit(url)._replace(query="", fragment="").geturl()
