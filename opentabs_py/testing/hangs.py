"""Explain why a tool hangs: which requests got no response, and at which line it was waiting."""

from collections.abc import Sequence
from math import inf
from time import time
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Request

from opentabs_py.core.text import shorten, visible
from opentabs_py.core.trace.hops import BEGUN
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.isolation import pages_of
from opentabs_py.testing.sync_session import QUICK
from opentabs_py.testing.thread import ServerThread

REQUESTS: Final = 5  # shown
URL: Final = 200  # characters shown
STOPPED_WITHIN: Final = 1.0  # s; takes a few ms in a page that answers
_BUSY: Final = (
    "Its page does not answer: a script runs without a pause, as in an endless loop, or a dialog "
    "is open"
)
_RUNS_ON: Final = (
    "It runs on, although context.signal has fired: pass the signal on, to see here where it waits"
)


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

    def listen(self) -> None:
        """Gather, until the test's listeners are removed."""
        self._context.on("request", self._note_request)
        self._context.on("requestfinished", self._note_end)
        self._context.on("requestfailed", self._note_end)

    def explain(self, records: Sequence[CallRecord]) -> str:
        """Return why the tools of calls hang, as far as that is known; "" if it is not.

        Args:
            records: The calls, which have timed out or still run.
        """
        parts: list[str] = []
        for record in records:
            if why := self._why(record):
                lines = [f"{record.name} ({record.call_id[:8]}):", *(f"  {each}" for each in why)]
                parts.append("\n".join(map(str.rstrip, lines)))
        return visible("\n\n".join(parts))

    def _why(self, record: CallRecord) -> list[str]:
        pages = [page for page in pages_of(self._context) if _plain(page.url) == record.url]
        if not pages:
            return []
        if not all(map(self._thread.answers, pages)):
            return [_BUSY]
        return [*self._waits(record), *self._where(record)]

    def _waits(self, record: CallRecord) -> list[str]:
        """Return the requests that began during a call, and that had no response at its end."""
        waits = [
            f"No complete response: {request.method} {shorten(_plain(request.url), URL)}"
            for request, (began, ended) in self._requests.items()
            if record.started <= began < _end(record) <= ended
        ]
        left_out = len(waits) - REQUESTS
        return waits[:REQUESTS] + ([f"({left_out} more requests)"] if left_out > 0 else [])

    def _where(self, record: CallRecord) -> list[str]:
        """Return where the tool of a call waited that has timed out, if it has stopped."""
        if record.outcome != "timed_out" or BEGUN not in record.stamps:
            return []
        if record.plugin not in [each.name for each in self._session.plugins]:
            return []  # a page's own tool
        wait = self._session.internals.stopped_tools.wait
        text = self._thread.run(wait, record.call_id, STOPPED_WITHIN, within=QUICK)
        return [_RUNS_ON] if text is None else text.splitlines()

    def _note_request(self, request: Request) -> None:
        self._requests[request] = (time(), inf)

    def _note_end(self, request: Request) -> None:
        began, _ = self._requests.get(request, (0.0, inf))
        self._requests[request] = (began, time())


def _end(record: CallRecord) -> float:
    return record.started + record.seconds


def _plain(url: str) -> str:
    """Return a URL without its query and fragment, as both may contain secrets."""
    return urlsplit(url)._replace(query="", fragment="").geturl()
