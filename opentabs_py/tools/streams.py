"""Modules of tools whose updates go on after their call has returned."""

import logging
import threading
from typing import Any, ClassVar, Self

from opentabs_py.core.text import shorten
from opentabs_py.errors import ToolError
from opentabs_py.tools.declare import Timeouts
from opentabs_py.tools.run import current_run
from opentabs_py.tools.stream import Stream

logger = logging.getLogger(__name__)


class StreamOpenError(ToolError, RuntimeError):
    """A stream of that name is open already; its caller reads this."""


class Module:
    """Methods that are tools, and the streams of updates that they open.

        class Counter(Module):
            @skill
            def count(self) -> str:
                self.start_tool("count")
                threading.Thread(target=self._count).start()
                return "Counting."

    The updates go to the client that made the call, also when the call has returned.

    Attributes:
        stream_timeouts: What ends a stream that its tool leaves open: a silence, and a total.
    """

    stream_timeouts: ClassVar[Timeouts] = Timeouts(idle=300.0, ceiling=3600.0)
    _streams: dict[str, Stream]
    _streams_lock: threading.Lock

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Make it so that a derived class need not call `super().__init__()`."""
        module = super().__new__(cls)
        module._streams = {}
        module._streams_lock = threading.Lock()
        return module

    def start_tool(self, name: str) -> None:
        """Open a stream, in the call of a tool and for the client that made it.

        Raises:
            RuntimeError: This is in no tool's call, or the stream is open already.
        """
        run = current_run.get()
        if run is None or run.is_over:
            raise RuntimeError(
                f"start_tool({name!r}) must be called in the call of a tool, in the task or the "
                "thread that the tool was called in: a stream is of the client that made the "
                "call. Open it there, then update it from wherever you like."
            )
        with self._streams_lock:
            stream = self._streams.get(name)
            if stream is not None and stream.is_open:
                raise StreamOpenError(
                    f"The stream {name!r} is open already. Call stop_tool({name!r}) first, or "
                    "wait until it ends.",
                    code="STREAM_OPEN",
                    retryable=True,
                )
            self._streams[name] = run.open_stream(name, self.stream_timeouts)

    def tool_update(self, name: str, text: str) -> None:
        """Send an update, from any thread. Where no such stream is open, that is logged."""
        stream = self._streams.get(name)
        if stream is None or not stream.update(str(text)):
            logger.warning("No stream %r is open: %s", name, shorten(str(text), 100))

    def stop_tool(self, name: str) -> None:
        """End a stream, from any thread; one that has ended, or never began, stays as it is."""
        with self._streams_lock:
            stream = self._streams.pop(name, None)
        if stream is not None:
            stream.end("its tool ended it")

    def tool_is_open(self, name: str) -> bool:
        """Whether anybody may still read a stream: a client, or the server, may have ended it."""
        stream = self._streams.get(name)
        return stream is not None and stream.is_open

    def stop(self) -> None:
        """End all streams of this module."""
        for name in list(self._streams):
            self.stop_tool(name)
