"""A running call, for code that observes it while it runs."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, Self

import anyio

from opentabs_py.calling.clock import MS
from opentabs_py.calling.observer import CallObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.text import quantity
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.errors import CallError

_PACKAGE = "opentabs_py."


@dataclass(frozen=True, slots=True)
class CallLog:
    """What a plugin logged in its page during a call.

    Attributes:
        level: "debug", "info", "warning" or "error".
        message: Its text.
        time: When, in seconds since the epoch, by the page's clock.
    """

    level: str
    message: str
    time: float


class ToolCaller(Protocol):
    """Calls tools: `ToolCalls`."""

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        /,
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> Any:
        """Call a tool and return its value."""
        ...


class RunningCall:
    """A running call, and later its outcome.

    Attributes:
        name: The tool's MCP name.
        arguments: The arguments of the call.
        output_schema: The JSON Schema of the tool's value.
        progress: Every progress report so far, in order.
        logs: What the plugin logged in its page during the call.
        error: Why it returned no value.
        cancelled: Whether `cancel` ended it.
        record: Its hops and timers, if an observer of calls stores them here.
    """

    record: CallRecord | None = None
    _record_so_far: RecordSoFar | None = None
    _call_id: str | None = None

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        /,
        *,
        output_schema: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.arguments = arguments
        self.output_schema = output_schema
        self.progress: list[ProgressReport] = []
        self.logs: list[CallLog] = []
        self.error: Exception | None = None
        self.cancelled = False
        self._value: Any = None
        self._sent = anyio.Event()
        self._begun = anyio.Event()
        self._ended = anyio.Event()
        self._scope = anyio.CancelScope()

    def __repr__(self) -> str:
        state = "ended" if self.ended else "running"
        return f"<RunningCall {self.name} {state}, {quantity(len(self.progress), 'report')}>"

    @property
    def ended(self) -> bool:
        """Whether it has ended, in any way."""
        return self._ended.is_set()

    @property
    def value(self) -> Any:
        """The tool's return value.

        Raises:
            CallError: It returned no value.
            RuntimeError: It has not ended, or was cancelled.
        """
        __tracebackhide__ = True  # pytest then shows the line that asks for the value
        if not self.ended:
            raise RuntimeError(f"{self.name} has not ended yet. Wait for it first.")
        if self.error is not None:
            raise _without_our_frames(self.error)
        if self.cancelled:
            raise RuntimeError(f"{self.name} was cancelled, so it has no value.")
        return self._value

    def record_so_far(self) -> CallRecord | None:
        """Return its hops and timers as they are now; None if no observer is registered."""
        if self.ended or self._record_so_far is None:
            return self.record
        return self._record_so_far()

    async def result(self) -> Any:
        """Wait for the end, and return the value; raises as `value` does."""
        __tracebackhide__ = True
        await self._ended.wait()
        return self.value

    async def wait(self) -> Self:
        """Wait until the call has ended, however it ends."""
        await self._ended.wait()
        return self

    async def wait_sent(self) -> None:
        """Wait until it has been sent to its page, or has ended before that."""
        await self._sent.wait()

    async def wait_begun(self) -> None:
        """Wait until its tool has started, or it has ended before that.

        Of a tool in a page this is known only if an observer is registered.
        """
        await self._begun.wait()

    def cancel(self) -> None:
        """Cancel the call: the tool's signal fires, or the tool does not start.

        Does nothing once the call has ended.
        """
        self._scope.cancel()

    async def run(self, caller: ToolCaller, limits: Limits | None) -> None:
        """Make the call; run this once, in its own task.

        For this package's own use.
        """
        current_call.set(self)
        observer = _Observer(self._sent, self._begun, self.progress, self.logs)
        try:
            with self._scope:
                self._value = await caller.call(
                    self.name, self.arguments, limits=limits, observers=[observer]
                )
            self.cancelled = self._scope.cancelled_caught
        except Exception as error:  # noqa: BLE001
            self.error = error  # raised where the call is waited for, not in this task
        except BaseException:
            self.cancelled = True
            raise
        finally:
            self._sent.set()
            self._begun.set()
            self._ended.set()

    # Calls that its tool makes run in its context too, but start later, and have other ids.

    def _keep_start(self, so_far: RecordSoFar) -> None:
        if self._call_id is None:
            self._call_id = so_far().call_id
            self._record_so_far = so_far

    def _keep_record(self, record: CallRecord) -> None:
        if record.call_id == self._call_id:
            self.record = record


@dataclass(frozen=True, slots=True)
class _Observer(CallObserver):
    sent: anyio.Event
    begun: anyio.Event
    progress: list[ProgressReport]
    logs: list[CallLog]

    def on_sent(self) -> None:
        self.sent.set()

    def on_begun(self) -> None:
        self.begun.set()

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        self.progress.extend(reports)

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        self.logs.extend(CallLog(each.level, each.message, each.time / MS) for each in entries)


def _without_our_frames(error: Exception) -> Exception:
    """Remove this package's frames from an error's traceback; a Python tool's code remains."""
    if not isinstance(error, CallError):
        return error  # a bug in this package, which its frames show
    below = error.__traceback__
    while below is not None and below.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        below = below.tb_next
    return error.with_traceback(below)


current_call: ContextVar[RunningCall] = ContextVar("current_call")
"""The call that the current task makes, for observers called within it."""


def keep_record(record: CallRecord) -> None:
    """Store a record in the call it belongs to; an observer of calls."""
    if (call := current_call.get(None)) is not None:
        call._keep_record(record)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]


def keep_start(so_far: RecordSoFar) -> None:
    """Let a call return its record so far; an observer of starts."""
    if (call := current_call.get(None)) is not None:
        call._keep_start(so_far)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
