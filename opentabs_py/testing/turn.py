"""One test's turn with a chain: what it is given, what is noted of it, what is undone after it."""

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, WebError

from opentabs_py import __version__
from opentabs_py.calls import keep_record
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.protocol import LogParams
from opentabs_py.core.records import CallRecord
from opentabs_py.testing.breaches import breach_text, find_breaches, unfired_text
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.clock import Clock
from opentabs_py.testing.expectations import seen
from opentabs_py.testing.marks import Clock as RunsOn
from opentabs_py.testing.report import failure_report
from opentabs_py.testing.tabs import QUICK, SyncOpenTabs
from opentabs_py.testing.thread import ServerThread
from opentabs_py.testing.transcript import PluginLog, Transcript
from opentabs_py.tracing.file import TraceWriter

logger = logging.getLogger(__name__)

SLACK = 5.0  # s; how much later than its ceiling a call may end on a loaded machine
LOOK_EVERY = 0.05  # s; how soon an Enter is noticed
PAGES_GONE_WITHIN = 2.0  # s; the server hears of a closed page in tens of ms
_NOT_LOADED = "Failed to load resource"  # Chromium's words


class Recorder(Protocol):
    """What pytest-playwright records a test's traces, videos and screenshots with."""

    def on_did_create_browser_context(self, context: Any) -> None:
        """A context is there: start."""
        ...

    def on_will_close_browser_context(self, context: Any) -> None:
        """It is to be closed: stop."""
        ...


class Turn:
    """One test's turn, from `begin` to `end`.

    Attributes:
        tabs: What the `opentabs` fixture gives.
        context: What the `context` fixture gives.
        transcript: What happened.
    """

    def __init__(
        self,
        chain: Chain,
        thread: ServerThread,
        *,
        limits: Limits,
        recorder: Recorder,
        output: Path,
        runs_on: RunsOn | None = None,
        faults_seed: int = 0,
    ) -> None:
        self.transcript = Transcript()
        self.context = chain.context
        self._chain = chain
        self._thread = thread
        self._recorder = recorder
        self._output = output
        self._recorded = _Recorded(chain.context)
        self._endings: list[Callable[[], object]] = []
        self.tabs = SyncOpenTabs(
            chain.session,
            chain.context,
            thread,
            self.transcript,
            clock=Clock(chain.clock, chain.session.bridge, thread, runs_on=runs_on),
            faults=chain.faults,
            patience=QUICK if runs_on == "manual" else limits.ceiling + SLACK,
        )
        self._limits = limits
        self._faults_seed = faults_seed

    def begin(self, storage_state: Any = None) -> None:
        """Set the server and the browser for this test, and note what they do from now on.

        Args:
            storage_state: A saved session, as Playwright has it, to be put into the browser.
        """
        chain = self._chain
        self._thread.do(chain.clock.stop if self.tabs.clock.is_manual else chain.clock.go)
        self._thread.do(self._attend)
        chain.faults.begin(self._faults_seed)
        self._endings.append(chain.faults.clear)
        self._listen()
        self._recorder.on_did_create_browser_context(self._recorded)
        if storage_state is not None:
            chain.context.set_storage_state(storage_state)

    def complaints(self, *, allow_breaches: bool) -> list[str]:
        """Return what fails this test though it passed; see `breaches`."""
        with suppress(Error):
            self._thread.sleep(0)  # what pages have written is handed out
        found: list[str] = []
        calls = [seen(call.running) for call in self.transcript.calls]
        breaches = find_breaches(calls, self.transcript.page_warnings)
        if breaches and not allow_breaches:
            found.append(breach_text(breaches))
        if unfired := self._chain.faults.wait_unfired():
            found.append(unfired_text(unfired))
        return found

    def failure_report(self, *, told: str) -> str:
        """Write what happened; see `report.failure_report`."""
        with suppress(Error):
            self._thread.sleep(0)
        running = [
            (seen(call.running), call.record_so_far())
            for call in self.transcript.calls
            if not call.ended
        ]
        faults = self._chain.faults.log_so_far()
        return failure_report(self.transcript, running, told=told, faults=faults)

    def stay(self, is_over: Callable[[], bool]) -> None:
        """Let time pass, and the pages live on, until something is so, or the browser is closed."""
        while not (is_over() or self._chain.session.browser_is_gone):
            with suppress(Error):
                self._thread.sleep(LOOK_EVERY)

    def write_trace(self, name: str) -> Path:
        """Write the calls to a file among the test's artifacts; give its path."""
        self._output.mkdir(parents=True, exist_ok=True)
        path = self._output / name
        with TraceWriter(path, version=__version__) as file:
            for record in self.transcript.records:
                file.write(record)
        return path

    def end(self) -> None:
        """Stop what still runs, keep what is to be kept of the browser, and undo the rest."""
        for call in self.transcript.calls:
            if not call.ended:
                with suppress(TimeoutError):
                    call.cancel()
        for end in self._endings:
            end()
        with suppress(Error):  # the browser died, or the test closed it
            self._recorder.on_will_close_browser_context(self._recorded)
        self._recorded.close()
        self._chain.isolation.clean()
        if not self._chain.isolation.is_spoilt:
            with suppress(TimeoutError):
                self._thread.run(self._pages_gone, within=PAGES_GONE_WITHIN)

    def _attend(self) -> None:
        """Set the server for this test, and note what it does; in the server's thread."""
        session = self._chain.session
        session.toolbox.limits = self._limits
        end_observing = session.toolbox.observe(self._note_record)
        before = session.bridge.on_log

        def note_log(params: LogParams) -> None:
            self.transcript.logs.extend(
                PluginLog(params.plugin, entry.level, entry.message) for entry in params.entries
            )
            before(params)

        def end() -> None:
            end_observing()
            session.bridge.on_log = before

        session.bridge.on_log = note_log
        self._endings.append(lambda: self._thread.do(end))

    def _note_record(self, record: CallRecord) -> None:
        self.transcript.records.append(record)
        keep_record(record)

    def _listen(self) -> None:
        def note_console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self._note_page_error(message)
            elif message.type == "warning":
                self.transcript.page_warnings.append(message.text)
            elif message.type == "debug":
                self._chain.faults.note_console(message.text)

        def note_error(error: WebError) -> None:
            self.transcript.page_errors.append(str(error.error))

        # They are taken away with the test's own.
        self.context.on("console", note_console)
        self.context.on("weberror", note_error)

    def _note_page_error(self, message: ConsoleMessage) -> None:
        url = urlsplit(message.location["url"])
        if url.path == "/favicon.ico" and message.text.startswith(_NOT_LOADED):
            return  # Chromium asks every site for one
        place = url._replace(query="", fragment="").geturl()  # both may hold what is secret
        self.transcript.page_errors.append(message.text + (f" ({place})" if place else ""))

    async def _pages_gone(self) -> None:
        bridge = self._chain.session.bridge
        while bridge.connected and bridge.tabs.documents:
            await bridge.changed().wait()


class _Recorded:
    """The browser as pytest-playwright's recorder takes it: one that is there for one test."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._listeners: list[tuple[str, Callable[..., Any]]] = []

    @property
    def tracing(self) -> Any:
        return self._context.tracing

    @property
    def pages(self) -> Iterable[Any]:
        return self._context.pages[1:]  # the first is not the test's

    def on(self, event: str, listener: Callable[..., Any]) -> None:
        self._listeners.append((event, listener))
        self._context.on(event, listener)  # type: ignore[call-overload]

    def close(self) -> None:
        for event, listener in self._listeners:
            with suppress(KeyError):
                self._context.remove_listener(event, listener)
