"""How a tool says how far it is, and that it lives."""

import numbers
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, cast

from opentabs_py.core.progress import ProgressReport

MESSAGE_LIMIT: Final = 4096  # characters, as for page tools
Kind = Literal["report", "callback", "yield", "page", "heartbeat", "stream"]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a running tool tells.

    Attributes:
        kind: By what way.
        data: What the application is given.
        message: What the tool is doing, for people.
        progress: How far it is.
        total: What `progress` will be at the end.
    """

    kind: Kind
    data: Any = None
    message: str | None = None
    progress: float | None = None
    total: float | None = None

    @classmethod
    def of_report(cls, report: ProgressReport) -> "Told":
        """Give what a page tool told, with all of it as the data."""
        message, progress, total = report.message, report.progress, report.total
        return cls("page", _said(message, progress, total), message, progress, total)

    @property
    def says_something(self) -> bool:
        """Whether there is anything in it that an MCP client can be told."""
        return self.message is not None or self.progress is not None


class Run(Protocol):
    """A call of a tool, as its `Progress` sees it."""

    call_id: str

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        ...

    def take(self, told: Told) -> None:
        """Take what the tool tells, from any thread. Must not raise."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call another tool within this call."""
        ...

    def call_from_thread(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """The same in a thread."""
        ...


class Progress:
    """What a tool that has a parameter of this type is given, for one call.

    All of it may be used in any thread. One that is made by hand, to call the function without a
    server, takes all and tells nobody.
    """

    __slots__ = ("_run",)

    def __init__(self, run: Run | None = None) -> None:
        self._run = run

    def report(
        self,
        message: str | None = None,
        *,
        progress: float | None = None,
        total: float | None = None,
        data: Any = None,
    ) -> None:
        """Say how far the tool is. Starts the idle timer anew, blocks nothing, never raises.

        Args:
            message: What it is doing, for people.
            progress: How far it is; without it, reports are counted.
            total: What `progress` will be at the end.
            data: Anything, for the application's handlers alone.
        """
        if self._run is None:
            return
        text, number, end = _text(message), _number(progress), _number(total)
        if data is None:
            data = _said(text, number, end)
        self._run.take(Told("report", data, text, number, end))

    def heartbeat(self) -> None:
        """Say that the tool lives, and nothing else: starts the idle timer anew."""
        if self._run is not None:
            self._run.take(Told("heartbeat"))

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled or timed out, so that what the tool does is for nobody."""
        return self._run is not None and self._run.cancelled

    @property
    def call_id(self) -> str:
        """The call's own id, as handlers of progress are given it."""
        return "" if self._run is None else self._run.call_id

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call another tool, as of a page, and give its value; its reports are this call's too.

        A sync tool waits for it with `call_from_thread`.

        Raises:
            CallError: It gave no value.
            RuntimeError: The call that this is of has ended, or there is no server.
        """
        if self._run is None:
            raise RuntimeError("This Progress is of no call, so it has no tools to call.")
        return await self._run.call(name, arguments or {})

    def call_from_thread(self, name: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call another tool from a sync one, and wait for its value; see `call`."""
        if self._run is None:
            raise RuntimeError("This Progress is of no call, so it has no tools to call.")
        return self._run.call_from_thread(name, arguments or {})


def progress_callback(run: Run) -> Callable[[Any], Awaitable[None]]:
    """Give what a tool's `progress_callback` is, for one call."""

    def callback(data: Any) -> "Done":
        fields: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            fields = cast(Mapping[str, Any], data)
        message = _text(fields.get("message"))
        if message is None:
            message = _text(fields.get("status"))
        progress, total = _number(fields.get("progress")), _number(fields.get("total"))
        run.take(Told("callback", data, message, progress, total))
        return Done()

    return callback


class Done(Coroutine[Any, Any, None]):
    """What is done when it is made. Awaiting it lets others run; not awaiting it is no fault."""

    __slots__ = ("_let",)

    def __init__(self) -> None:
        self._let = False

    def __await__(self) -> Generator[None, Any, None]:
        """Let others run once."""
        yield

    def send(self, value: Any, /) -> None:  # noqa: ARG002
        """Let others run the first time, then end."""
        if self._let:
            raise StopIteration
        self._let = True

    def throw(self, *error: Any) -> Any:
        """End as it is told to."""
        self._let = True
        raise error[0]

    def close(self) -> None:
        """End."""
        self._let = True


def _said(message: str | None, progress: float | None, total: float | None) -> dict[str, Any]:
    parts = {"message": message, "progress": progress, "total": total}
    return {name: part for name, part in parts.items() if part is not None}


def _text(message: object) -> str | None:
    return message[:MESSAGE_LIMIT] if isinstance(message, str) else None


def _number(value: object) -> float | None:
    """Give a number as MCP sends it; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if abs(number) != float("inf") and number == number else None
