"""A test's recording: replayed, or made."""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext

from opentabs_py import __version__
from opentabs_py.config.files import locked
from opentabs_py.core.recording.exchange import Exchange, RecordedCall, RecordedSocket, Recording
from opentabs_py.core.recording.replay import Index, Replay
from opentabs_py.core.recording.scrub import scrub
from opentabs_py.core.recording.settling import Settling
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import RecordingError
from opentabs_py.recording.drivers import SyncDriver
from opentabs_py.recording.files import read_recording, write_recording
from opentabs_py.recording.traffic import TrafficRecorder
from opentabs_py.recording.values import CallNotes, WholeValues
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.marks import ReplayTiming
from opentabs_py.testing.notes import UnansweredRequests
from opentabs_py.testing.recordings.replays import SiteReplay, Sockets
from opentabs_py.testing.thread import ServerThread

RecordMode = Literal["none", "missing", "all"]

LOOK_EVERY = 0.02  # s
EXPLAINED = 3  # requests that are not in the recording; of more, only the URL is shown
SHOWN = 50  # lines


@dataclass(frozen=True, slots=True)
class MarkedRecording:
    """The recording that a test's mark names, and what to do with it.

    Attributes:
        file: The HAR.
        mode: Replay it, replay it and record what is missing, or record all of it.
        timing: When messages of WebSockets and event streams arrive in a replay.
        written: The recordings that this run has written; several tests may name the same one.
    """

    file: Path
    mode: RecordMode
    timing: ReplayTiming
    written: "WrittenRecordings"

    @property
    def is_offline(self) -> bool:
        """Whether nothing may leave this machine."""
        return self.mode == "none"

    @property
    def is_replayed(self) -> bool:
        """Whether what has been recorded answers for the site."""
        return self.mode != "all"

    def read(self, volatile: tuple[str, ...]) -> Index:
        """Return the recording that is there; an empty one if it is yet to be made.

        Args:
            volatile: Names of members that are not compared.

        Raises:
            RecordingError: There is none, or it cannot be read and is not replaced.
        """
        if self.file.exists():
            with nullcontext() if self.is_offline else locked(self.file):
                try:
                    return _read(self.file, self.file.stat().st_mtime_ns, volatile)
                except RecordingError as error:
                    if self.is_replayed:
                        again = "To replace it, run this test with --opentabs-record=all."
                        raise RecordingError(f"{error} {again}") from error
                    return Index(Recording(""))  # it is damaged, and is about to be replaced
        if self.is_offline:
            raise RecordingError(
                f"There is no recording {self.file}. Record it with `opentabs record`, or run this "
                "test once with --opentabs-record=missing."
            )
        return Index(Recording(""))


class WrittenRecordings:
    """The recordings that a run has written, whichever of its processes did.

    Args:
        directory: A directory that the processes of the run share, and no other run.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __contains__(self, file: Path) -> bool:
        return self._mark(file).exists()

    def add(self, file: Path) -> None:
        """Note that a recording was written."""
        self._mark(file).touch()

    def _mark(self, file: Path) -> Path:
        name = sha256(os.fsencode(file.resolve())).hexdigest()[:20]
        return self._directory / f"recorded-{name}"


@lru_cache(maxsize=4)  # the tests of a file often share one
def _read(file: Path, _changed: int, volatile: tuple[str, ...]) -> Index:
    return Index(read_recording(file), volatile)


class ReplayedSite:
    """What a test can read of its recording: `opentabs.recording`."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def url(self) -> str:
        """The page that was opened first.

        Raises:
            LookupError: The recording does not exist yet.
        """
        if not self._recording.url:
            raise LookupError(
                "The recording does not exist yet, so it has no URL. Open the page by its own URL."
            )
        return self._recording.url

    @property
    def calls(self) -> Sequence[RecordedCall]:
        """The recorded calls of tools, with their arguments and values."""
        return self._recording.calls


class ActiveRecording:
    """Replays or makes a recording during one test.

    Args:
        marked: Which one, and how.
        index: What is there already.
        context: The browser.
        session: The server.
        thread: The server's thread.
        sockets: Answers WebSockets, in a browser that cannot reach any site.
    """

    def __init__(
        self,
        marked: MarkedRecording,
        index: Index,
        *,
        context: BrowserContext,
        session: OpenTabs,
        thread: ServerThread,
        sockets: Sockets | None,
    ) -> None:
        self._marked = marked
        self._before = index.recording if marked.is_replayed else Recording("")
        self._session = session
        self._end_keeping: Callable[[], None] = lambda: None
        self._thread = thread
        self._sockets = sockets
        self._notes = CallNotes()
        self._traffic: TrafficRecorder | None = None
        self._own_address = urlsplit(session.mcp_url).netloc
        self._site = SiteReplay(
            Replay(index),
            is_ours=self._is_ours,
            sleep=thread.sleep,
            timed=marked.timing == "recorded",
            open_for_new=not marked.is_offline,
        )
        self._context = context
        self._state: Mapping[str, Any] | None = None

    @property
    def storage_state(self) -> Mapping[str, Any] | None:
        """The storage with which a replay begins, in Playwright's format."""
        return self._before.storage_state

    def begin(self) -> None:
        """Replay or record from now on."""
        if self._marked.is_replayed:
            self._site.serve(self._context)
            if self._sockets is not None:
                self._sockets.site = self._site
            elif self._before.sockets:
                self._context.route_web_socket(lambda _url: True, self._site.connect)
        if not self._marked.is_offline:
            self._state = dict(self._context.storage_state())
            self._traffic = TrafficRecorder(
                self._context,
                SyncDriver(),
                ignores=self._is_ours,
                skip=self._site.answered.__contains__,
            )
            records = self._session.internals.tool_calls.records
            self._end_keeping = records.keep_values(WholeValues())

    def _is_ours(self, url: str) -> bool:
        return urlsplit(url).netloc == self._own_address

    def note(self, record: CallRecord) -> None:
        """Record a call that has ended."""
        self._notes.note(record)

    def end(self, *, has_passed: bool) -> None:
        """Stop; write the recording if it is one that is made, and the test has passed.

        Args:
            has_passed: Whether the test has passed.

        Raises:
            RecordingError: It cannot be written.
        """
        if self._sockets is not None:
            self._sockets.site = None
        if self._traffic is None:
            return
        exchanges, sockets = self._stop(self._traffic)
        if has_passed and (exchanges or sockets):
            self._write(exchanges, sockets)

    def _stop(
        self, traffic: TrafficRecorder
    ) -> tuple[Sequence[Exchange], Sequence[RecordedSocket]]:
        """Stop recording once nothing is under way, and return what was recorded."""
        self._end_keeping()
        SyncDriver().run(traffic.catch_up())
        self._settle(traffic)
        return traffic.stop()

    def _write(self, exchanges: Sequence[Exchange], sockets: Sequence[RecordedSocket]) -> None:
        file, before = self._marked.file, self._before
        opened = (each.request.url for each in exchanges if each.request.kind == "document")
        with locked(file):
            if file in self._marked.written:  # by another test of this run
                before = read_recording(file)
            url = before.url or next(opened, "")
            new = Recording(url, exchanges, sockets, self._notes.calls, self._state)
            new = scrub(new, self._session.settings.scrub, earlier=before.scrubbed)
            write_recording(_merged(before, new), file, version=__version__)
            self._marked.written.add(file)

    def _settle(self, traffic: TrafficRecorder) -> None:
        waited = 0.0
        settling = Settling(waited)
        while settling.left(waited, unanswered=traffic.unanswered, pending=traffic.pending) > 0:
            self._thread.sleep(LOOK_EVERY)
            waited += LOOK_EVERY

    @property
    def unanswered(self) -> UnansweredRequests | None:
        """What it did not answer; None if it answered everything."""
        texts = Counter([*map(str, self._site.replay.unanswered), *self._site.broken])
        return UnansweredRequests(self._marked.file.name, tuple(texts.items())) if texts else None

    def complaints(self) -> list[str]:
        """Return why the test must fail, although it has passed so far."""
        unanswered = self.unanswered
        if unanswered is None:
            return []
        lines: list[str] = []
        for index, (text, count) in enumerate(unanswered.requests):
            first, *rest = text.splitlines()
            lines.append(f"  {first}" + (f"  ({count} times)" if count > 1 else ""))
            if index < EXPLAINED:
                lines += [f"  {line}" for line in rest]
        shown = "\n".join(lines[:SHOWN])
        more = f"\n  and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        text = (
            f"The recording {unanswered.recording} does not answer:\n{shown}{more}\n"
            "If these requests are expected, record them: "
            "pytest --opentabs-record=missing, or =all to record everything again."
        )
        return [text]


def _merged(before: Recording, new: Recording) -> Recording:
    """Return a recording with what an earlier one has and what was recorded now."""
    if not (before.exchanges or before.sockets):
        return new
    made = [(each.tool, each.arguments) for each in new.calls]
    kept = [each for each in before.calls if (each.tool, each.arguments) not in made]
    return replace(
        new,
        exchanges=[*before.exchanges, *new.exchanges],
        sockets=[*before.sockets, *new.sockets],
        calls=[*kept, *new.calls],
        storage_state=before.storage_state,
        storage_at_end=before.storage_at_end,
        scrubbed=[*before.scrubbed, *new.scrubbed],
    )
