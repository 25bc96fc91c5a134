"""Reports of a tool's progress, and signs that it is alive."""

import math
import numbers
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

from opentabs_py.core.progress import MESSAGE_MAX, ProgressReport
from opentabs_py.core.text import well_formed

_NO_CALL = (
    "This Progress belongs to no call, so it cannot call tools. Use the one that the server passes "
    "to the tool."
)

Kind = Literal["report", "callback", "yield", "page", "heartbeat", "stream"]


@dataclass(frozen=True, slots=True)
class CallReport:
    """One report of a running tool.

    Attributes:
        kind: How it was reported.
        data: The data for the application.
        message: What the tool is doing, for users.
        progress: How far it is.
        total: The value of `progress` at the end.
    """

    kind: Kind
    data: Any = None
    message: str | None = None
    progress: float | None = None
    total: float | None = None

    @classmethod
    def of_report(cls, report: ProgressReport) -> "CallReport":
        """Return a plugin tool's report in this form, with all of it as the data."""
        message, progress, total = report.message, report.progress, report.total
        return cls("page", _said(message, progress, total), message, progress, total)

    @property
    def says_something(self) -> bool:
        """Whether it contains anything that an MCP client can receive."""
        return self.message is not None or self.progress is not None


class ReportingCall(Protocol):
    """A call of a tool, as its `Progress` sees it."""

    call_id: str

    @property
    def cancelled(self) -> bool:
        """Whether the caller no longer waits for it."""
        ...

    def record(self, report: CallReport) -> None:
        """Receive a report of the tool, from any thread. Must not raise."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call."""
        ...

    def call_from_thread(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call, from a thread."""
        ...


class Progress:
    """Reports the progress of one call; passed to tools that have a parameter of this type.

    All methods may be used in any thread. An instance created by hand, to call the function
    without a server, discards all reports.
    """

    __slots__ = ("_run",)

    def __init__(self, run: ReportingCall | None = None) -> None:
        self._run = run

    def report(
        self,
        message: str | None = None,
        *,
        progress: float | None = None,
        total: float | None = None,
        data: Any = None,
    ) -> None:
        """Report progress. Restarts the idle timer, never blocks, never raises.

        Args:
            message: What the tool is doing, for users.
            progress: How far it is; without it, reports are counted.
            total: The value of `progress` at the end.
            data: Anything, only for the application's handlers.
        """
        if self._run is None:
            return
        text, number, end = _text(message), _number(progress), _number(total)
        if data is None:
            data = _said(text, number, end)
        self._run.record(CallReport("report", data, text, number, end))

    def heartbeat(self) -> None:
        """Restart the idle timer without reporting anything."""
        if self._run is not None:
            self._run.record(CallReport("heartbeat"))

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or timed out, so that no caller waits for the result."""
        return self._run is not None and self._run.cancelled

    @property
    def call_id(self) -> str:
        """The call's id, as progress handlers receive it."""
        return "" if self._run is None else self._run.call_id

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call another tool, such as a plugin tool, and return its value.

        Its reports count as this call's as well. Sync tools use `call_from_thread`.

        Raises:
            CallError: The other tool returned no value.
            RuntimeError: This call has ended, or no server is running.
        """
        if self._run is None:
            raise RuntimeError(_NO_CALL)
        return await self._run.call(name, arguments or {})

    def call_from_thread(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call another tool from a sync tool, and wait for its value; see `call`."""
        if self._run is None:
            raise RuntimeError(_NO_CALL)
        return self._run.call_from_thread(name, arguments or {})


def progress_callback(run: ReportingCall) -> Callable[[Any], Awaitable[None]]:
    """Return the `progress_callback` for one call."""

    def callback(data: Any) -> "AlreadyDone":
        fields: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            fields = cast(Mapping[str, Any], data)
        message = _text(fields.get("message"))
        if message is None:
            message = _text(fields.get("status"))
        progress, total = _number(fields.get("progress")), _number(fields.get("total"))
        run.record(CallReport("callback", data, message, progress, total))
        return AlreadyDone()

    return callback


class AlreadyDone(Coroutine[Any, Any, None]):
    """An awaitable for work already done. Awaiting it yields to the event loop, but is optional."""

    __slots__ = ("_let",)

    def __init__(self) -> None:
        self._let = False

    def __await__(self) -> Generator[None, Any, None]:
        """Yield to the event loop once."""
        yield

    def send(self, value: Any, /) -> None:  # noqa: ARG002
        """Yield to the event loop the first time, then end."""
        if self._let:
            raise StopIteration
        self._let = True

    def throw(self, *error: Any) -> Any:
        """End with the given exception."""
        self._let = True
        raise error[0]

    def close(self) -> None:
        """End."""
        self._let = True


def _said(message: str | None, progress: float | None, total: float | None) -> dict[str, Any]:
    parts = {"message": message, "progress": progress, "total": total}
    return {name: part for name, part in parts.items() if part is not None}


def _text(message: object) -> str | None:
    return well_formed(message[:MESSAGE_MAX]) if isinstance(message, str) else None


def _number(value: object) -> float | None:
    """Return a number as MCP sends it; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
