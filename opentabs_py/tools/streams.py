"""Modules of tools whose updates go on after their call has returned."""

import logging
import threading
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from opentabs_py.core.text import shorten
from opentabs_py.errors import ToolError
from opentabs_py.tools.declare import Timeouts
from opentabs_py.tools.run import ToolRun, current_run
from opentabs_py.tools.stream import Stream

logger = logging.getLogger(__name__)


class StreamOpenError(ToolError, RuntimeError):
    """A stream of that name is open already; its caller reads this."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="STREAM_OPEN", retryable=True)


class ToolStream:
    """A stream that a tool opened. Its methods may be called from any thread.

    Attributes:
        name: As the tool called it.
    """

    def __init__(self, stream: Stream) -> None:
        self.name = stream.name
        self._stream = stream

    @property
    def is_open(self) -> bool:
        """Whether it takes updates: a client, or the server, may have ended it."""
        return self._stream.is_open

    def update(self, text: str) -> None:
        """Send an update. When the stream has ended, that is logged."""
        if not self._stream.update(str(text)):
            _log_lost(self.name, text)

    def stop(self) -> None:
        """End it; one that has ended stays as it is."""
        self._stream.end("its tool ended it")


class Module:
    """Methods that are tools, and the streams of updates that they open.

        class Counter(Module):
            @skill
            def count(self) -> str:
                stream = self.start_tool("count")
                threading.Thread(target=self._count, args=(stream,)).start()
                return "Counting."

    The updates go to the client that made the call, also when the call has returned. Each client
    session has its own stream of a name. `tool_update` and the other methods that take a name mean
    the one of the call that they are made in; in a thread of the tool's own, the only open one.

    Attributes:
        stream_timeouts: What ends a stream that its tool leaves open: a silence, and a total.
    """

    stream_timeouts: ClassVar[Timeouts] = Timeouts(idle=300.0, ceiling=3600.0)
    _streams: WeakValueDictionary[tuple[str, str], Stream]  # by name and session
    _by_name: set[str]  # those that threads have updated or ended by their names
    _streams_lock: threading.Lock

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Make it so that a derived class need not call `super().__init__()`."""
        module = super().__new__(cls)
        module._streams = WeakValueDictionary()
        module._by_name = set()
        module._streams_lock = threading.Lock()
        return module

    def start_tool(self, name: str) -> ToolStream:
        """Open a stream, in the call of a tool and for the client that made it.

        Raises:
            RuntimeError: This is in no tool's call, or the stream is open already in this session.
                So it is in another session if threads update it by its name: they could mean
                either.
        """
        run = current_run.get()
        if run is None or run.is_over:
            raise RuntimeError(
                f"start_tool({name!r}) must be called in the call of a tool, in the task or the "
                "thread that the tool was called in: a stream is of the client that made the "
                "call. Open it there, then update it from wherever you like."
            )
        with self._streams_lock:
            streams = self._open(name)
            if (session := _session(run)) in streams:
                raise StreamOpenError(
                    f"The stream {name!r} is open already. Call stop_tool({name!r}) first, or "
                    "wait until it ends."
                )
            if streams and name in self._by_name:
                raise StreamOpenError(
                    f"The stream {name!r} is open for another client. Wait until it ends. (For the "
                    "tool's author: two clients can have it at once if its threads call update() "
                    "and stop() of what start_tool() returns, in place of tool_update() and "
                    "stop_tool().)"
                )
            stream = run.open_stream(name, self.stream_timeouts)
            self._streams[name, session] = stream
        return ToolStream(stream)

    def tool_update(self, name: str, text: str) -> None:
        """Send an update, from any thread. If no stream is meant, or several, that is logged."""
        stream = self._find(name)
        if stream is None or not stream.update(str(text)):
            _log_lost(name, text)

    def stop_tool(self, name: str) -> None:
        """End a stream, from any thread; one that has ended, or never began, stays as it is."""
        stream = self._find(name)
        if stream is not None:
            stream.end("its tool ended it")

    def tool_is_open(self, name: str) -> bool:
        """Whether anybody may still read a stream: a client, or the server, may have ended it."""
        with self._streams_lock:
            return bool(self._meant(name))

    def stop(self) -> None:
        """End all streams of this module."""
        for stream in list(self._streams.values()):
            stream.end("its tool ended it")

    def _find(self, name: str) -> Stream | None:
        """Return the open stream that a name means here; None where it means none, or several."""
        with self._streams_lock:
            found = self._meant(name)
            if current_run.get() is None:
                self._by_name.add(name)
        if len(found) > 1:
            logger.warning(
                "The stream %r is open for %d clients, and its name does not say which one is "
                "meant. Keep what start_tool() returns, and call its update() and stop().",
                name,
                len(found),
            )
        return found[0] if len(found) == 1 else None

    def _meant(self, name: str) -> list[Stream]:
        """Return the open streams that a name can mean here."""
        streams, run = self._open(name), current_run.get()
        if run is None:
            return list(streams.values())
        if (session := _session(run)) in streams:
            return [streams[session]]
        return [each for each in streams.values() if run.session is each.opener.session is None]

    def _open(self, name: str) -> dict[str, Stream]:
        """Return the open streams of a name, by session."""
        return {
            session: stream
            for (named, session), stream in self._streams.items()
            if named == name and stream.is_open
        }


def _session(run: ToolRun) -> str:
    """Return what tells a call's streams from those of others: without a session, the call."""
    return run.call_id if run.session is None else run.session


def _log_lost(name: str, text: str) -> None:
    logger.warning("No stream %r is open: %s", name, shorten(str(text), 100))
