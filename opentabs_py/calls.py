"""A call under way, for those who look on while it runs."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

import anyio

from opentabs_py.core.dispatch import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.records import CallRecord
from opentabs_py.errors import CallError

_PACKAGE = "opentabs_py."


class Caller(Protocol):
    """What calls tools: a `Toolbox`."""

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        on_log: Callable[[Sequence[LogEntry]], None] | None = None,
        on_sent: Callable[[], None] | None = None,
        on_recording: Callable[[Callable[[], CallRecord]], None] | None = None,
    ) -> Any:
        """Call a tool and return its value.

        A call that is recorded hands `on_recording` a function that returns its record so far.
        """
        ...


class RunningCall:
    """A call under way, and then what came of it.

    Attributes:
        name: The tool's MCP name.
        arguments: What it was called with.
        output_schema: What the tool promises of its value, as JSON Schema.
        reports: Every progress report so far, in order.
        logs: What its plugin logged in its page meanwhile.
        error: Why it gave no value.
        cancelled: Whether `cancel` ended it.
        record: Its hops and timers, where somebody observes calls and puts it here.
    """

    record: CallRecord | None = None

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        output_schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.output_schema = output_schema
        self.reports: list[ProgressReport] = []
        self.logs: list[LogEntry] = []
        self.error: Exception | None = None
        self.cancelled = False
        self._value: Any = None
        self._record_so_far: Callable[[], CallRecord] | None = None
        self._sent = anyio.Event()
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()

    @property
    def ended(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self._ended.is_set()

    @property
    def value(self) -> Any:
        """What the tool gave.

        Raises:
            CallError: It gave no value.
            RuntimeError: It has not ended, or was cancelled.
        """
        __tracebackhide__ = True  # pytest then shows the line that asks for the value
        if not self.ended:
            raise RuntimeError(f"{self.name} has not ended yet: wait for it first.")
        if self.error is not None:
            raise _without_our_frames(self.error)
        if self.cancelled:
            raise RuntimeError(f"{self.name} was cancelled, so it gave no value.")
        return self._value

    def record_so_far(self) -> CallRecord | None:
        """Return its hops and timers as they are now; None where nobody observes calls."""
        if self.ended or self._record_so_far is None:
            return self.record
        return self._record_so_far()

    async def wait(self) -> Any:
        """Wait for the end, and return the value; see `value` for what is raised."""
        __tracebackhide__ = True
        await self._ended.wait()
        return self.value

    async def wait_end(self) -> None:
        """Wait for the end, whatever it is."""
        await self._ended.wait()

    async def wait_sent(self) -> None:
        """Wait until it was sent to its page, or has ended before."""
        await self._sent.wait()

    def cancel(self) -> None:
        """Stop it: the tool's signal fires. Once it has ended, this does nothing."""
        self._scope.cancel()

    async def run(self, caller: Caller, limits: Limits | None) -> None:
        """Make the call; to be run once, in a task of its own."""
        current_call.set(self)
        try:
            with self._scope:
                self._value = await caller.call(
                    self.name,
                    self.arguments,
                    limits=limits,
                    on_progress=self.reports.extend,
                    on_log=self.logs.extend,
                    on_sent=self._sent.set,
                    on_recording=self._take_recording,
                )
            self.cancelled = self._scope.cancelled_caught
        except Exception as error:  # noqa: BLE001
            self.error = error  # raised where the call is waited for, not in this task
        except BaseException:
            self.cancelled = True
            raise
        finally:
            self._sent.set()
            self._ended.set()

    def _take_recording(self, so_far: Callable[[], CallRecord]) -> None:
        self._record_so_far = so_far


def _without_our_frames(error: Exception) -> Exception:
    """Leave in an error's traceback what lies below this package: the code of a Python tool."""
    if not isinstance(error, CallError):
        return error  # a fault of this package, which its frames tell of
    below = error.__traceback__
    while below is not None and below.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        below = below.tb_next
    return error.with_traceback(below)


current_call: ContextVar[RunningCall] = ContextVar("current_call")
"""The call that a task makes, for who observes calls from inside it."""


def keep_record(record: CallRecord) -> None:
    """Put a record into the call that it is of; to observe calls with."""
    if (call := current_call.get(None)) is not None:
        call.record = record
