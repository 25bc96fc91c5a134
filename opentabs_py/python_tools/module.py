"""Modules of tools whose updates continue after their call has returned."""

import logging
import threading
from typing import Any, ClassVar, Final, Self
from weakref import WeakValueDictionary

from opentabs_py.core import codes
from opentabs_py.core.limits import Limits
from opentabs_py.core.text import shorten
from opentabs_py.errors import ToolError
from opentabs_py.python_tools.run import ToolRun, current_run
from opentabs_py.python_tools.stream import Stream

logger = logging.getLogger(__name__)

_LOST: Final = "No stream %r is open, so its updates are dropped, from this one on: %s"
_AMBIGUOUS: Final = (
    "The stream %r is open for %d clients, so its name alone is ambiguous. Keep the return value "
    "of start_tool(), and call its update() and stop()."
)


class StreamOpenError(ToolError, RuntimeError):
    """A stream of that name is already open; the caller reads this text."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code=codes.STREAM_OPEN, retryable=True)


class ToolStream:
    """A stream that a tool opened. Its methods may be called from any thread.

    Attributes:
        name: The tool's name for it.
    """

    def __init__(self, stream: Stream) -> None:
        self.name = stream.name
        self._stream = stream
        self._has_lost = False

    @property
    def is_open(self) -> bool:
        """Whether it accepts updates: a client or the server may have ended it."""
        return self._stream.is_open

    def update(self, text: str) -> None:
        """Send an update; the first one after the end of the stream logs a warning."""
        if not self._stream.update(str(text)) and not self._has_lost:
            self._has_lost = True
            logger.warning(_LOST, self.name, shorten(str(text), 100))

    def stop(self) -> None:
        """End the stream; does nothing if it has already ended."""
        self._stream.end("its tool ended it")


class Module:
    """Methods that are tools, and the streams of updates that they open.

        class Counter(Module):
            @skill
            def count(self) -> str:
                stream = self.start_tool("count")
                threading.Thread(target=self._count, args=(stream,)).start()
                return "Counting."

    The updates go to the client that made the call, even after the call has returned. Each client
    session has its own stream of a given name. `tool_update` and the other methods that take a
    name refer to the stream of the current call or, in the tool's own threads, to the only open
    one.

    Attributes:
        stream_limits: End a stream that its tool leaves open.
    """

    stream_limits: ClassVar[Limits] = Limits(idle=300.0, ceiling=3600.0)
    _streams: WeakValueDictionary[tuple[str, str], Stream]  # by name and session
    _by_name: set[str]  # names that threads have used to update or end a stream
    _warned: set[tuple[str, str]]  # names and what was logged of them since a stream was opened
    _streams_lock: threading.Lock

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Set up the state, so that a subclass need not call `super().__init__()`."""
        module = super().__new__(cls)
        module._streams = WeakValueDictionary()
        module._by_name = set()
        module._warned = set()
        module._streams_lock = threading.Lock()
        return module

    def start_tool(self, name: str) -> ToolStream:
        """Open a stream, within the call of a tool and for the client that made it.

        Raises:
            RuntimeError: This is not within a tool's call, or the stream is already open in this
                session. Or it is open in another session, and threads update it by name, so that
                they could mean either.
        """
        run = current_run.get()
        if run is None or run.is_over:
            raise RuntimeError(
                f"start_tool({name!r}) must be called while a tool is being called, in its task "
                "or thread, because a stream belongs to the client that made the call. Open it "
                "there, then update it from anywhere."
            )
        with self._streams_lock:
            streams = self._open(name)
            if (session := _session(run)) in streams:
                raise StreamOpenError(
                    f"The stream {name!r} is already open. Call stop_tool({name!r}) first, or "
                    "wait until it ends."
                )
            if streams and name in self._by_name:
                raise StreamOpenError(
                    f"The stream {name!r} is open for another client. Wait until it ends. (For the "
                    "tool's author: several clients can have it at once if its threads use the "
                    "update() and stop() of start_tool()'s return value, not tool_update() and "
                    "stop_tool().)"
                )
            stream = run.open_stream(name, self.stream_limits)
            self._streams[name, session] = stream
            self._warned = {each for each in self._warned if each[0] != name}
        return ToolStream(stream)

    def tool_update(self, name: str, text: str) -> None:
        """Send an update, from any thread; log a warning unless exactly one stream is meant.

        Further such updates log no warning until a stream of that name is opened.
        """
        stream = self._find(name)
        if stream is None or not stream.update(str(text)):
            self._warn(name, _LOST, shorten(str(text), 100))

    def stop_tool(self, name: str) -> None:
        """End a stream, from any thread; does nothing if it has ended or never began."""
        stream = self._find(name)
        if stream is not None:
            stream.end("its tool ended it")

    def tool_is_open(self, name: str) -> bool:
        """Return whether a stream is open: a client or the server may have ended it."""
        with self._streams_lock:
            return bool(self._meant(name))

    def stop(self) -> None:
        """End all streams of this module."""
        for stream in list(self._streams.values()):
            stream.end("its tool ended it")

    def _find(self, name: str) -> Stream | None:
        """Return the open stream that a name means here; None if it means none, or several."""
        with self._streams_lock:
            found = self._meant(name)
            if current_run.get() is None:
                self._by_name.add(name)
        if len(found) > 1:
            self._warn(name, _AMBIGUOUS, len(found))
        return found[0] if len(found) == 1 else None

    def _warn(self, name: str, text: str, more: object) -> None:
        with self._streams_lock:
            is_known = (name, text) in self._warned
            self._warned.add((name, text))
        if not is_known:
            logger.warning(text, name, more)

    def _meant(self, name: str) -> list[Stream]:
        """Return the open streams that a name can mean here."""
        streams, run = self._open(name), current_run.get()
        if run is None:
            return list(streams.values())
        if (session := _session(run)) in streams:
            return [streams[session]]
        return [
            each
            for each in streams.values()
            if run.stream_session is each.opener.stream_session is None
        ]

    def _open(self, name: str) -> dict[str, Stream]:
        """Return the open streams of a name, by session."""
        return {
            session: stream
            for (named, session), stream in self._streams.items()
            if named == name and stream.is_open
        }


def _session(run: ToolRun) -> str:
    """Return the key that separates a call's streams from others: its session; else the call."""
    return run.call_id if run.stream_session is None else run.stream_session
