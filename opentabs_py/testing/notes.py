"""Notes of a running test for the page that shows it: its calls, faults and screenshots.

Screenshots are taken in the test's thread, where Playwright is: before a call is started, once the
test sees that it has ended, and at a failure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final

from playwright.sync_api import Error, Page

from opentabs_py.core.fault_injection import FaultLog
from opentabs_py.core.runner.events import CallSeen, Event, FaultsSeen, ScreenshotTaken, Unanswered
from opentabs_py.core.trace.record import CallRecord

PATIENCE: Final = 8.0  # s that a test waits in all for screenshots of a page that does not answer
MOST_UNANSWERED: Final = 100  # requests that are listed; a page that polls makes thousands
_QUALITY: Final = 70  # of JPEG; text is still sharp

PagesFor = Callable[[str], Sequence[Page]]  # returns the pages to show for a tool


@dataclass(frozen=True, slots=True)
class UnansweredRequests:
    """What a test's recording did not answer.

    Attributes:
        recording: The name of its file.
        requests: Each as text, and how often it was made.
    """

    recording: str
    requests: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ScreenshotStore:
    """Where a run's screenshots are kept.

    Attributes:
        directory: The directory.
        names: The names of their files.
        calls: How many calls of a test have some; a test with a thousand would take minutes longer.
    """

    directory: Path
    names: Iterator[str]
    calls: int


class RunListener:
    """Ignores all events of a test, for runs that nobody watches."""

    def start_call(self, record: CallRecord) -> None:
        """Handle the start of a call; called in the server's thread."""

    def end_call(self, record: CallRecord) -> None:
        """Handle the end of a call; called in the server's thread."""

    def look_before(self, tool: str, pages: PagesFor) -> None:
        """Called when a call is about to start."""

    def look_after(self, pages: PagesFor) -> None:
        """Called when calls may have ended."""

    def show_end(
        self,
        pages: PagesFor,
        *,
        running: Sequence[CallRecord],
        faults: FaultLog,
        unanswered: UnansweredRequests | None,
        failed: bool,
    ) -> None:
        """Handle the end of the test's own code."""


class Notes(RunListener):
    """Sends what happens in one test's browser to those who watch, or read about it later.

    Args:
        send: The way there.
        test: The test's id.
        browser: The browser's name, in a test with several.
        store: Where screenshots are kept.
    """

    def __init__(
        self, send: Callable[[Event], None], test: str, browser: str, store: ScreenshotStore
    ) -> None:
        self._send = send
        self._test = test
        self._browser = browser
        self._store = store
        self._lock = Lock()
        self._before: list[tuple[str, str]] = []  # tools and their screenshots, not yet called
        self._ended: list[tuple[str, str]] = []  # calls and tools, without a screenshot yet
        self._left = store.calls
        self._lost: dict[Page, float] = {}  # s, in screenshots that failed

    def start_call(self, record: CallRecord) -> None:
        """Send that a call has started, with the screenshot before it."""
        self._send_call(record, running=True)
        with self._lock:
            found = next((each for each in self._before if each[0] == record.name), None)
            if found is not None:
                self._before.remove(found)
        if found is not None:
            self._send_screenshot("before", [record.call_id], found[1])

    def end_call(self, record: CallRecord) -> None:
        """Send that a call has ended."""
        self._send_call(record, running=False)
        with self._lock:
            self._ended.append((record.call_id, record.name))

    def look_before(self, tool: str, pages: PagesFor) -> None:
        """Take a screenshot of the page that a call is about to run in."""
        self.look_after(pages)
        if self._left > 0 and (file := self._take_screenshot(pages(tool))) is not None:
            with self._lock:
                self._before.append((tool, file))

    def look_after(self, pages: PagesFor) -> None:
        """Take screenshots of the pages of the calls that have ended since."""
        with self._lock:
            ended, self._ended = self._ended, []
        for tool in dict.fromkeys(tool for _, tool in ended):
            if self._left <= 0:
                return
            self._left -= 1
            if (file := self._take_screenshot(pages(tool))) is not None:
                self._send_screenshot("after", [call for call, name in ended if name == tool], file)

    def show_end(
        self,
        pages: PagesFor,
        *,
        running: Sequence[CallRecord],
        faults: FaultLog,
        unanswered: UnansweredRequests | None,
        failed: bool,
    ) -> None:
        """Send what there is to see at the end of the test, or at its failure."""
        for record in running:
            self._send_call(record, running=True)
        if not faults.is_empty:
            self._send(
                FaultsSeen(
                    test=self._test,
                    browser=self._browser,
                    seed=faults.seed,
                    rules=tuple(map(str, faults.injected)),
                    done=faults.done,
                    log=faults.to_json() if faults.injected else "",
                )
            )
        if unanswered is not None:
            self._send(
                Unanswered(
                    test=self._test,
                    browser=self._browser,
                    recording=unanswered.recording,
                    requests=unanswered.requests[:MOST_UNANSWERED],
                    more=max(0, len(unanswered.requests) - MOST_UNANSWERED),
                )
            )
        self.look_after(pages)
        if failed and (file := self._take_screenshot(pages(""))) is not None:
            self._send_screenshot("failure", [], file)

    def _take_screenshot(self, pages: Sequence[Page]) -> str | None:
        """Take a screenshot of the first page that answers; return the file's name."""
        for page in pages:
            patience = PATIENCE - self._lost.get(page, 0.0)
            if page.is_closed() or patience <= 0:
                continue
            file = next(self._store.names)
            options: dict[str, Any] = {
                "path": self._store.directory / file,
                "type": "jpeg",
                "quality": _QUALITY,
                "scale": "css",
                "timeout": 1_000 * patience,
            }
            started = monotonic()
            try:
                page.screenshot(**options)
            except Error:  # it hangs, has just gone, or its disk is full
                self._lost[page] = PATIENCE - patience + monotonic() - started
            else:
                return file
        return None

    def _send_call(self, record: CallRecord, *, running: bool) -> None:
        event = CallSeen(test=self._test, browser=self._browser, running=running, record=record)
        self._send(event)

    def _send_screenshot(self, when: Any, calls: Sequence[str], file: str) -> None:
        event = ScreenshotTaken(
            test=self._test, browser=self._browser, when=when, calls=tuple(calls), file=file
        )
        self._send(event)
