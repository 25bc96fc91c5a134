"""One test's turn with a chain: set it up, record what happens, and undo it afterwards."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, WebError

from opentabs_py import __version__
from opentabs_py.calling.running import keep_record, keep_start
from opentabs_py.core.fault_injection import FaultLog
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import LogParams
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.errors import TraceError
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.clock import Clock
from opentabs_py.testing.expectations.breaches import breach_text, find_breaches, unfired_text
from opentabs_py.testing.expectations.verdicts import CallSnapshot
from opentabs_py.testing.failure_report import CALLS, failure_report
from opentabs_py.testing.hangs import Hangs
from opentabs_py.testing.isolation import pages_of
from opentabs_py.testing.marks import RunsOn
from opentabs_py.testing.notes import RunListener
from opentabs_py.testing.recordings.recording import ActiveRecording, MarkedRecording, ReplayedSite
from opentabs_py.testing.screenshots import Screenshots
from opentabs_py.testing.steps import Steps
from opentabs_py.testing.sync_session import QUICK, SyncOpenTabs
from opentabs_py.testing.thread import ServerThread
from opentabs_py.testing.transcript import PluginLog, Transcript
from opentabs_py.tracing.file import TraceWriter

logger = logging.getLogger(__name__)

SLACK = 5.0  # s; how long after its ceiling a call may end on a busy machine
LOOK_EVERY = 0.05  # s; how quickly Enter is noticed
PAGES_GONE_WITHIN = 2.0  # s; the server learns of a closed page within tens of ms
_NOT_LOADED = "Failed to load resource"  # Chromium's message


class ArtifactsRecorder(Protocol):
    """pytest-playwright's recorder for a test's traces, videos and screenshots."""

    def on_did_create_browser_context(self, context: Any) -> None:
        """Start recording a new context."""
        ...

    def on_will_close_browser_context(self, context: Any) -> None:
        """Stop recording a context that is about to close."""
        ...


class Turn:
    """One test's turn, from `begin` to `end`.

    Attributes:
        tabs: The value of the `opentabs` fixture.
        context: The value of the `context` fixture.
        output: The directory of the test's artifacts.
    """

    def __init__(
        self,
        chain: Chain,
        thread: ServerThread,
        *,
        limits: Limits,
        recorder: ArtifactsRecorder,
        output: Path,
        runs_on: RunsOn | None = None,
        faults_seed: int = 0,
        traced: bool = False,
        marked: MarkedRecording | None = None,
        listener: RunListener | None = None,
    ) -> None:
        self.has_passed = False
        self._listener = listener or RunListener()
        self._screenshots = Screenshots(self._listener, chain.session, chain.context, thread)
        self._transcript = Transcript()
        self.context = chain.context
        self._chain = chain
        self._thread = thread
        self._recorder = recorder
        self.output = output
        self._recorded = _Recorded(chain.context)
        self._hangs = Hangs(chain.session, chain.context, thread)
        self._endings: list[Callable[[], object]] = []
        # A fixture that fails in its teardown is reported after the last test's server has stopped.
        self._plugins = chain.session.internals.plugin_set
        self._at_end: tuple[list[CallRecord], FaultLog] | None = None
        self.tabs = SyncOpenTabs(
            chain.session,
            chain.context,
            thread,
            self._transcript,
            clock=Clock(chain.clock, chain.session.internals.bridge, thread, runs_on=runs_on),
            faults=chain.faults,
            steps=Steps(chain.context.tracing if traced else None),
            screenshots=self._screenshots,
            patience=QUICK if runs_on == "manual" else limits.ceiling + SLACK,
        )
        self._limits = limits
        self._faults_seed = faults_seed
        self._recording: ActiveRecording | None = None
        self._marked = marked

    def begin(self, storage_state: Any = None) -> None:
        """Prepare the server and the browser for this test, and start recording.

        Args:
            storage_state: A saved session, in Playwright's format, to load into the browser.
        """
        chain = self._chain
        self._thread.do(chain.clock.stop if self.tabs.clock.is_manual else chain.clock.resume)
        self._thread.do(self._prepare_server)
        chain.faults.begin(self._faults_seed)
        self._endings.append(chain.clear_faults)
        self._listen()
        self._recorder.on_did_create_browser_context(self._recorded)
        if self._marked is not None:
            self._recording = self._read_recording(self._marked)
            if storage_state is None and chain.session.settings.profile is None:
                storage_state = self._recording.storage_state
        if storage_state is not None:
            chain.context.set_storage_state(storage_state)
        if self._recording is not None:
            self._recording.begin()

    def _read_recording(self, marked: MarkedRecording) -> ActiveRecording:
        session = self._chain.session
        index = marked.read(session.settings.volatile)
        self.tabs.set_recording(ReplayedSite(index.recording))
        return ActiveRecording(
            marked,
            index,
            context=self.context,
            session=session,
            thread=self._thread,
            sockets=self._chain.sockets,
        )

    def complaints(self, *, allow_breaches: bool) -> list[str]:
        """Return the reasons why this passing test must fail; see `breaches`."""
        self._drain_consoles()
        found: list[str] = [] if self._recording is None else self._recording.complaints()
        calls = [CallSnapshot.of(call.running) for call in self._transcript.calls]
        breaches = find_breaches(calls, self._transcript.page_warnings)
        if breaches and not allow_breaches:
            found.append(breach_text(breaches))
        if unfired := self._chain.faults.wait_unfired():
            found.append(unfired_text(unfired))
        return found

    def failure_report(self, *, shown: str) -> str:
        """Return the report of a failure; see `failure_report`."""
        running, faults = self._at_end or self._state()
        known = Counter(record.name for record in running)
        unknown: list[CallSnapshot] = []
        for call in self._transcript.calls:
            if not call.ended:
                known[call.name] -= 1
                if known[call.name] < 0:  # it has not reached the server
                    unknown.append(CallSnapshot.of(call.running))
        text = failure_report(self._transcript, running, unknown, shown=shown, faults=faults)
        complaints = [] if self._recording is None else self._recording.complaints()
        whole = "\n\n".join([text, *(each for each in complaints if each not in shown)])
        return self._plugins.read_positions(whole)

    def _state(self) -> tuple[list[CallRecord], FaultLog]:
        """Return the calls that run, and what was done to messages, which the server knows."""
        self._thread.catch_up(self.context)
        return self._thread.do(self._transcript.running), self._chain.faults.log_so_far()

    def explain_hangs(self) -> str:
        """Return why calls timed out, or still run, as far as that is known."""
        if self._at_end is not None:
            return ""  # the test's pages, which would say so, are gone
        timed_out = [each for each in self._transcript.records if each.outcome == "timed_out"]
        running = self._thread.do(self._transcript.running)
        return self._hangs.explain([*timed_out[-CALLS:], *running[-CALLS:]])

    def _drain_consoles(self) -> None:
        """Receive what the pages of calls have written to their consoles, such as late reports."""
        if self._transcript.calls:
            for page in self._recorded.pages:
                self._thread.answers(page)
        self._thread.catch_up(self.context)

    @property
    def browser_is_gone(self) -> bool:
        """Whether the browser was closed or died."""
        return self._chain.session.browser.is_gone

    def pause(self, is_over: Callable[[], bool]) -> None:
        """Wait, with the pages alive, until `is_over()` is true or the browser is closed."""
        while not (is_over() or self.browser_is_gone):
            with suppress(Error):
                self._thread.sleep(LOOK_EVERY)

    def write_trace(self, name: str) -> Path:
        """Write the calls to a file among the test's artifacts; return its path.

        Raises:
            TraceError: The file cannot be written.
        """
        try:
            self.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceError(
                f"Cannot write the trace to {self.output}: {error.strerror}. Choose another "
                "directory with --output."
            ) from None
        path = self.output / name
        with TraceWriter(path, version=__version__) as file:
            for record in self._transcript.records:
                file.write(record)
        return path

    def show_end(self, *, failed: bool) -> None:
        """Let those who watch see how the test's own code has ended, while its pages are open."""
        self._listener.show_end(
            self._screenshots.pages_for,
            running=self._thread.do(self._transcript.running),
            faults=self._chain.faults.log_so_far(),
            unanswered=None if self._recording is None else self._recording.unanswered,
            failed=failed,
        )

    def end(self) -> None:
        """Cancel running calls, save the browser's artifacts, and undo everything else."""
        for call in self._transcript.calls:
            if not call.ended:
                with suppress(TimeoutError):
                    call.cancel()
        try:
            self._at_end = self._state()
            if self._recording is not None:
                self._recording.end(has_passed=self.has_passed)
        finally:
            self._undo()

    def _undo(self) -> None:
        # In reverse order: the last one is called first. Each is called, whatever fails before it.
        with ExitStack() as stack:
            stack.callback(self._wait_until_pages_are_gone)
            stack.callback(self._chain.clean)
            stack.callback(self._recorded.close)
            stack.callback(self._stop_artifacts)
            for end in reversed(self._endings):
                stack.callback(end)

    def _stop_artifacts(self) -> None:
        with suppress(Error):  # the browser died, or the test closed it
            self._recorder.on_will_close_browser_context(self._recorded)

    def _wait_until_pages_are_gone(self) -> None:
        if not self._chain.isolation.is_dirty:
            with suppress(TimeoutError):
                self._thread.run(self._pages_gone, within=PAGES_GONE_WITHIN)

    def _prepare_server(self) -> None:
        """Prepare the server for this test and record what it does; runs in its thread."""
        session = self._chain.session
        calls = session.internals.tool_calls
        calls.limits = self._limits
        end_observing = calls.records.observe(self._note_record, on_start=self._note_start)
        before = session.internals.bridge.on_log

        def note_log(params: LogParams) -> None:
            self._transcript.logs.extend(
                PluginLog(params.plugin, entry.level, entry.message) for entry in params.entries
            )
            before(params)

        def end() -> None:
            end_observing()
            session.internals.bridge.on_log = before

        session.internals.bridge.on_log = note_log
        self._endings.append(lambda: self._thread.do(end))

    def _note_start(self, so_far: RecordSoFar) -> None:
        self._transcript.started.append(so_far)
        self._listener.start_call(so_far())
        keep_start(so_far)

    def _note_record(self, record: CallRecord) -> None:
        self._transcript.records.append(record)
        self._listener.end_call(record)
        keep_record(record)
        if self._recording is not None:
            self._recording.note(record)

    def _listen(self) -> None:
        def note_console(message: ConsoleMessage) -> None:
            if message.type == "error":
                self._note_page_error(message)
            elif message.type == "warning":
                self._transcript.page_warnings.append(message.text)
            elif message.type == "debug":
                self._chain.faults.note_console(message.text)

        def note_error(error: WebError) -> None:
            self._transcript.page_errors.append(str(error.error))

        # These are removed together with the test's own listeners.
        self.context.on("console", note_console)
        self.context.on("weberror", note_error)
        self._hangs.listen()

    def _note_page_error(self, message: ConsoleMessage) -> None:
        url = urlsplit(message.location["url"])
        if url.path == "/favicon.ico" and message.text.startswith(_NOT_LOADED):
            return  # Chromium asks every site for one
        place = url._replace(query="", fragment="").geturl()  # both may contain secrets
        self._transcript.page_errors.append(message.text + (f" ({place})" if place else ""))

    async def _pages_gone(self) -> None:
        bridge = self._chain.session.internals.bridge
        while bridge.connected and bridge.tabs.documents:
            await bridge.changed().wait()


class _Recorded:
    """The browser as pytest-playwright's recorder expects it: one that exists for one test."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._listeners: list[tuple[str, Callable[..., Any]]] = []

    @property
    def tracing(self) -> Any:
        return self._context.tracing

    @property
    def pages(self) -> Iterable[Any]:
        return pages_of(self._context)

    def on(self, event: str, listener: Callable[..., Any]) -> None:
        self._listeners.append((event, listener))
        self._context.on(event, listener)  # type: ignore[call-overload]

    def close(self) -> None:
        for event, listener in self._listeners:
            with suppress(KeyError):
                self._context.remove_listener(event, listener)
