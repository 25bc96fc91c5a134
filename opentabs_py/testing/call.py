"""A call made by a test."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from opentabs_py.calling.running import CallLog, RunningCall
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.text import quantity
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.testing.thread import ServerThread

if TYPE_CHECKING:
    from concurrent.futures import Future

    from playwright.sync_api import Page


BEGINS_WITHIN: Final = 1.0  # s; takes some ms, unless the page is busy


class Call:
    """A call made by a test; use `expect(call)` to check its outcome.

    Attributes:
        running: The same call in the server's thread.
    """

    def __init__(
        self,
        running: RunningCall,
        thread: ServerThread,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.running = running
        self._look = look  # called after a wait that has seen its end
        self._thread = thread
        self._end: Future[RunningCall] = thread.start(running.wait)

    def __repr__(self) -> str:
        state = "ended" if self.ended else "running"
        return f"<Call {self.name} {state}, {quantity(len(self.running.progress), 'report')}>"

    @property
    def name(self) -> str:
        """The tool's MCP name."""
        return self.running.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the call."""
        return self.running.arguments

    @property
    def ended(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self.running.ended

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.running.cancelled

    @property
    def value(self) -> Any:
        """The tool's return value, a JSON value.

        Raises:
            CallError: The call failed; `error.detail` says why.
            RuntimeError: The call has not ended, or was cancelled.
        """
        __tracebackhide__ = True
        return self.running.value

    @property
    def error(self) -> Exception | None:
        """Why it failed: a `CallError`; None while it is running, or if it succeeded."""
        return self.running.error

    @property
    def progress(self) -> Sequence[ProgressReport]:
        """Every progress report so far, in order."""
        return tuple(self.running.progress)

    @property
    def logs(self) -> Sequence[CallLog]:
        """What the plugin logged in its page during the call."""
        return tuple(self.running.logs)

    @property
    def record(self) -> CallRecord | None:
        """Its hops, timers and logs, once it has ended."""
        return self.running.record

    def record_so_far(self) -> CallRecord | None:
        """Return its hops and timers as they are now."""
        return self._thread.do(self.running.record_so_far)

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """The tool's output schema, as JSON Schema."""
        return self.running.output_schema

    def wait(self, within: float = 30.0) -> "Call":
        """Wait until the call has ended, however it ends; page routes and events keep working.

        Raises:
            TimeoutError: The call is still running.
        """
        if not self._thread.wait(self._end, within):
            raise TimeoutError(f"{self.name} is still running after {within:g} s.")
        self._look()
        return self

    def cancel(self) -> None:
        """Cancel the call, and wait until it has ended; the tool's signal fires in the page."""
        self._thread.do(self.running.cancel)
        self.wait()

    def wait_begun(self) -> None:
        """Wait until the tool has started, for up to a second.

        For this package's own use.
        """
        with suppress(TimeoutError):
            self._thread.run(self.running.wait_begun, within=BEGINS_WITHIN)

    def wait_up_to(self, seconds: float) -> None:
        """Wait for the end of the call, at most this long.

        For this package's own use.
        """
        if self._thread.wait(self._end, seconds):
            self._look()


class Caller(Protocol):
    """What the tools of a page and the hands call with: the chain."""

    @property
    def page(self) -> "Page":
        """The page to act in by default."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /) -> Any:
        """Call a tool, wait until it has ended, and return its value."""
        ...

    def start(self, name: str, arguments: Mapping[str, Any] | None = None, /) -> Call:
        """Start a call; see `SyncOpenTabs.start`."""
        ...
