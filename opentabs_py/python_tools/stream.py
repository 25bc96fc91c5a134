"""A tool's stream of updates, and all streams of a server."""

import asyncio
import logging
import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from opentabs_py.calling.changes import Changes
from opentabs_py.calling.client import CallClient
from opentabs_py.calling.clock import Alarm, AlarmClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.loop import call_on_loop
from opentabs_py.calling.streams import STREAM_URI, StreamReader, StreamUpdate
from opentabs_py.core import failures
from opentabs_py.core.limits import MESSAGE_LIMIT, Limits
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import well_formed
from opentabs_py.python_tools.timers import RunningTimers

logger = logging.getLogger(__name__)

KEPT: Final = 10_000  # updates per stream; beyond that, the oldest are dropped
READ_AT_ONCE: Final = 1_000  # updates
AROUND_TEXT: Final = 8  # characters, if each is six in JSON: enough for the number of an update
TEXT_LIMIT: Final = 65_536  # characters of an update
READABLE_FOR: Final = 300.0  # s; how long a stream can be read after it has ended
MOST_ENDED: Final = 100  # ended streams that can still be read
OUR_SESSION: Final[SessionKey] = ""  # of the streams of calls that this process itself makes
NOTIFY_EVERY: Final = 0.1  # s; the shortest interval between change notifications of a stream


class Opener(Protocol):
    """The call that opened a stream."""

    @property
    def client(self) -> CallClient | None:
        """The client that made the call."""
        ...

    @property
    def stream_session(self) -> SessionKey | None:
        """The key of the session whose stream it is, in which its name is unique.

        `OUR_SESSION` if no client made the call; None if its client has no session.
        """
        ...

    def handle_update(self, update: StreamUpdate) -> None:
        """Receive an update; called on the event loop."""
        ...


class Stream:
    """A tool's numbered updates, in order; any thread may add one.

    Attributes:
        id: An unguessable id.
        name: The tool's name for it.
        ended: Why it ended; None while it is open.
        opener: The call that opened it.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        loop: asyncio.AbstractEventLoop,
        changed: Callable[["Stream"], None],
        *,
        id_prefix: str = "",
    ) -> None:
        # Lower case, because some clients lower-case addresses.
        self.id = f"{id_prefix}{secrets.token_hex(16)}"
        self.name = well_formed(name)
        self.opener = opener
        self.ended: str | None = None
        self._loop = loop
        self._on_change = changed
        self._lock = threading.Lock()
        self._updates: deque[StreamUpdate] = deque(maxlen=KEPT)
        self._count = 0
        self._passed_on = 0
        self._is_awaited = False
        self._changes = Changes()
        self._timers: RunningTimers | None = None

    @property
    def uri(self) -> str:
        """Its URI as an MCP resource."""
        return f"{STREAM_URI}{self.id}"

    @property
    def is_open(self) -> bool:
        """Whether it may get more updates."""
        return self.ended is None

    @property
    def count(self) -> int:
        """How many updates it has received."""
        return self._count

    def since(self, number: int) -> Sequence[StreamUpdate]:
        """Return the retained updates after that number, in order."""
        with self._lock:
            first = self._count - len(self._updates)  # how many were dropped
            skipped = max(0, min(number, self._count) - first)
            return list(islice(self._updates, skipped, None))

    def update(self, text: str) -> bool:
        """Add an update; return whether the stream was open."""
        text = well_formed(text[:TEXT_LIMIT])
        with self._lock:
            if self.ended is not None:
                return False
            self._count += 1
            self._updates.append(StreamUpdate(self._count, text))
        self._wake()
        return True

    def end(self, why: str) -> None:
        """End the stream; further updates are refused."""
        with self._lock:
            if self.ended is not None:
                return
            self.ended = why
        self._wake()

    async def wait_past(self, number: int) -> None:
        """Wait until there is an update after that number, or the stream has ended."""
        while self._count <= number and self.is_open:
            await self._changes.next().wait()

    # --- on the event loop ---

    def begin(self, clock: AlarmClock, limits: Limits) -> None:
        """Start its timers."""
        if self.is_open:
            self._timers = RunningTimers(clock, limits, lambda which: self.end(_TIMED_OUT[which]))

    def pass_on(self) -> None:
        """Deliver the updates since the last time."""
        with self._lock:
            self._is_awaited = False
        for update in self.since(self._passed_on):
            self._passed_on = update.number
            if self._timers is not None:
                self._timers.record_activity()
            self.opener.handle_update(update)
        if not self.is_open and self._timers is not None:
            self._timers.stop()
        self._changes.notify()
        if self.opener.client is not None:
            self.opener.client.wake()
        self._on_change(self)

    def _wake(self) -> None:
        if _is_running(self._loop):
            self.pass_on()
            return
        with self._lock:
            if self._is_awaited:
                return
            self._is_awaited = True
        try:
            call_on_loop(self._loop, self.pass_on)
        except RuntimeError:  # the loop is closed: there is no one left to deliver to
            logger.debug("The stream %r outlived its server", self.name)


_TIMED_OUT: Final = {
    "idle": "it was silent for too long",
    "ceiling": "it was open for too long",
}


class Streams:
    """The streams of one server.

    Args:
        clock: The clock of their timers.
        read_limit: How many characters of updates are read at once; one update is always read.
        id_prefix: What their ids begin with.

    Attributes:
        is_served: Whether there is, or was, a module among the tools.
    """

    def __init__(
        self, clock: AlarmClock, *, read_limit: int = MESSAGE_LIMIT, id_prefix: str = ""
    ) -> None:
        self.is_served = False
        self._clock = clock
        self._read_limit = read_limit
        self._id_prefix = id_prefix
        self._by_id: dict[str, Stream] = {}
        self._ended: dict[Stream, Alarm] = {}  # which forgets it
        self._listeners: Listeners[[str]] = Listeners("changes of streams")
        self._notified: dict[str, asyncio.TimerHandle | None] = {}

    def open(
        self, name: str, opener: Opener, limits: Limits, loop: asyncio.AbstractEventLoop
    ) -> Stream:
        """Open a stream, from any thread."""
        stream = Stream(name, opener, loop, self._handle_change, id_prefix=self._id_prefix)
        self._by_id[stream.id] = stream

        def begin() -> None:
            stream.begin(self._clock, limits)
            if opener.client is not None:
                opener.client.follow(stream)

        if _is_running(loop):
            begin()
        else:
            call_on_loop(loop, begin)
        return stream

    def find(self, stream_id: str, reader: StreamReader | None) -> Stream:
        """Return a stream if the reader may read it: its own session, or this process.

        If the client that opened it has no session, anyone who knows the id may read it.

        Raises:
            CallRefusedError: There is no such stream, or not for that reader.
        """
        stream = self._by_id.get(stream_id)
        if stream is None or not _is_for(stream, reader):
            raise failures.no_stream(stream_id)
        return stream

    def read(self, stream_id: str, after: int, reader: StreamReader | None) -> dict[str, Any]:
        """Return the description of a stream for a reader; raises as `find` does."""
        return self.describe(self.find(stream_id, reader), after)

    def describe(self, stream: Stream, after: int) -> dict[str, Any]:
        """Return a stream's updates after a number, and its state, as readers see them."""
        updates: list[StreamUpdate] = []
        size = 0
        for update in stream.since(after)[:READ_AT_ONCE]:
            size += len(update.text) + AROUND_TEXT
            if updates and size > self._read_limit:
                break
            updates.append(update)
        first = updates[0].number if updates else stream.count + 1
        last = updates[-1].number if updates else max(after, 0)
        return {
            "id": stream.id,
            "name": stream.name,
            "open": stream.is_open,
            "ended": stream.ended,
            "updates": [{"n": update.number, "text": update.text} for update in updates],
            "next": last,
            "more": last < stream.count,
            "dropped": max(0, first - 1 - max(after, 0)) if updates else 0,
        }

    def of(self, reader: StreamReader | None) -> list[Stream]:
        """Return the streams of a reader's session; none without one, because ids are secret."""
        if reader is None or reader.session_key is None:
            return []
        streams = list(self._by_id.values())  # tools open more in threads of their own
        return [each for each in streams if _is_for(each, reader) and _session_key(each)]

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call a function, which must not raise, with the URI of each stream that changes.

        A stream that changes often is reported at most ten times a second.

        Returns:
            The unsubscriber.
        """
        return self._listeners.subscribe(listener)

    def handle_client_gone(self, client: SessionKey) -> None:
        """End the streams of a session that has ended: nobody else may read them."""
        for stream in list(self._by_id.values()):
            if _session_key(stream) == client:
                stream.end("the session of its client ended")

    def close(self) -> None:
        """End all streams."""
        for stream in list(self._by_id.values()):
            stream.end("the server is stopping")
        for handle in self._notified.values():
            if handle is not None:
                handle.cancel()
        self._notified.clear()

    def _handle_change(self, stream: Stream) -> None:
        # It may have been forgotten before its thread was heard.
        is_known = stream.id in self._by_id
        if is_known and not stream.is_open and stream not in self._ended:
            forget = partial(self._forget, stream)
            self._ended[stream] = self._clock.set_alarm(self._clock.now() + READABLE_FOR, forget)
            while len(self._ended) > MOST_ENDED:
                self._forget(next(iter(self._ended)))
        if stream.uri in self._notified:
            self._notified[stream.uri] = self._notified[stream.uri] or self._later(stream.uri)
        else:
            self._notify(stream.uri)

    def _later(self, uri: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(NOTIFY_EVERY, self._notify, uri)

    def _notify(self, uri: str) -> None:
        self._notified.pop(uri, None)  # perhaps a handle, which has fired
        self._listeners.notify(uri)
        if self._listeners:
            asyncio.get_running_loop().call_later(NOTIFY_EVERY, self._rest, uri)
            self._notified[uri] = None

    def _rest(self, uri: str) -> None:
        if self._notified.get(uri) is None:
            self._notified.pop(uri, None)

    def _forget(self, stream: Stream) -> None:
        self._ended.pop(stream).cancel()
        del self._by_id[stream.id]


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether that event loop runs in this thread."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _session_key(stream: Stream) -> str | None:
    client = stream.opener.client
    return None if client is None else client.session_key


def _is_for(stream: Stream, reader: StreamReader | None) -> bool:
    if reader is None:
        return True
    if stream.opener.client is None:
        return False
    session_key = _session_key(stream)
    return session_key is None or session_key == reader.session_key
