"""A call, as a test holds it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opentabs_py.calls import RunningCall
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.records import CallRecord
from opentabs_py.testing.thread import ServerThread

if TYPE_CHECKING:
    from concurrent.futures import Future


class Call:
    """A call that a test made; `expect(call)` says what must come of it.

    Attributes:
        running: The same call, as the server's thread has it.
    """

    def __init__(self, running: RunningCall, thread: ServerThread) -> None:
        self.running = running
        self._thread = thread
        self._end: Future[None] = thread.start(running.wait_end)

    def __repr__(self) -> str:
        state = "ended" if self.ended else "running"
        return f"<Call {self.name} {state}, {len(self.running.reports)} reports>"

    @property
    def name(self) -> str:
        """The tool's MCP name."""
        return self.running.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What the tool was called with."""
        return self.running.arguments

    @property
    def ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.running.ended

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.running.cancelled

    @property
    def value(self) -> Any:
        """What the tool gave, a JSON value.

        Raises:
            CallError: It gave none; `error.detail` says why.
            RuntimeError: It has not ended, or was cancelled.
        """
        __tracebackhide__ = True
        return self.running.value

    @property
    def error(self) -> Exception | None:
        """Why it gave no value: a `CallError`; None while it runs, and when it succeeded."""
        return self.running.error

    @property
    def progress(self) -> Sequence[ProgressReport]:
        """Every progress report so far, in order."""
        return tuple(self.running.reports)

    @property
    def logs(self) -> Sequence[LogEntry]:
        """What its plugin logged in its page while it ran."""
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
        """What the tool promises of its value, as JSON Schema."""
        return self.running.output_schema

    def wait(self, within: float = 30.0) -> "Call":
        """Wait for the end, whatever it is, while the page's routes and events go on.

        Raises:
            TimeoutError: It still runs.
        """
        if not self._thread.wait(self._end, within):
            raise TimeoutError(f"{self.name} still runs after {within:g} s.")
        return self

    def cancel(self) -> None:
        """Stop it, and wait until it has ended: the tool's signal fires in the page."""
        self._thread.do(self.running.cancel)
        self.wait()

    def let_time_pass(self, seconds: float) -> None:
        """Wait for the end, or for this long."""
        if self.ended:
            self._thread.sleep(seconds)
        else:
            self._thread.wait(self._end, seconds)
