"""The application's progress handlers: each has its own queue, and none delays a tool."""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint

from opentabs_py.core.progress import ProgressReport
from opentabs_py.python_tools.progress import CallReport

logger = logging.getLogger(__name__)

WAITING: Final = 10_000  # events per handler; beyond that, the oldest are dropped
HANG = 10.0  # s; a handler that takes longer for one event is cancelled
TURNS = 100  # event loop iterations that handlers get before a call returns
_EXTRAS: Final = ("seq", "message", "progress", "total", "kind")

Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """An event for the handlers.

    Attributes:
        tool: The tool's name.
        call_id: The call's id.
        seq: The event's number within the call, from 0.
        report: What the tool reported.
    """

    tool: str
    call_id: str
    seq: int
    report: CallReport


class ProgressHandlers:
    """The handlers of one server. Call it with a handler to add it, also as a decorator.

    Args:
        on_add: Called whenever a handler has been added.
    """

    def __init__(self, on_add: Callable[[], None] = lambda: None) -> None:
        self._on_add = on_add
        self._added: list[_HandlerQueue] = []
        self._assigned: _HandlerQueue | None = None

    def __call__(self, handler: H) -> H:
        """Add a handler, and return it.

        Args:
            handler: Called with the tool's name, the call's id, and the data; and by name with
                those of `seq`, `message`, `progress`, `total` and `kind` that it accepts.
                Unless it is a coroutine function, it must not block.
        """
        self._added.append(_HandlerQueue(handler))
        self._on_add()
        return handler

    def assign(self, handler: Handler | None) -> None:
        """Replace the previously assigned handler; None removes it."""
        if self._assigned is not None:
            self._assigned.close()
        self._assigned = None if handler is None else _HandlerQueue(handler)
        self._on_add()

    def __bool__(self) -> bool:
        return self._assigned is not None or bool(self._added)

    def notify(self, event: ToolEvent) -> None:
        """Send an event to every handler; call it on the event loop."""
        for queue in self._all():
            queue.put(event)

    def notify_other_report(self, tool: str, call_id: str, report: ProgressReport) -> None:
        """Send every handler what another tool reported; call it on the event loop."""
        self.notify(ToolEvent(tool, call_id, report.seq, CallReport.of_report(report)))

    async def flush(self) -> None:
        """Let handlers that do not wait for anything process all their events."""
        for _ in range(TURNS):
            if not any(queue.is_busy for queue in self._all()):
                return
            await checkpoint()

    def close(self) -> None:
        """Stop the handlers, and discard the events they have not processed."""
        for queue in self._all():
            queue.close()

    def _all(self) -> "list[_HandlerQueue]":
        return [*([] if self._assigned is None else [self._assigned]), *self._added]


class _HandlerQueue:
    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._extras = _extras(handler)
        self._queue: deque[ToolEvent] = deque(maxlen=WAITING)
        self._dropped = 0
        self._is_failing = False
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def put(self, event: ToolEvent) -> None:
        if len(self._queue) == WAITING:
            if not self._dropped:
                logger.warning("%s is too slow: dropping events", self._name)
            self._dropped += 1
        self._queue.append(event)
        if not self.is_busy:
            # A task that ends when nothing is left: it needs no running server, and is
            # independent of the call's context and cancellation.
            work = asyncio.get_running_loop().create_task
            self._task = work(self._work(), context=Context())

    def close(self) -> None:
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    @property
    def _name(self) -> str:
        return f"The progress handler {getattr(self._handler, '__qualname__', self._handler)!r}"

    async def _work(self) -> None:
        while self._queue:
            event = self._queue.popleft()
            with anyio.move_on_after(HANG) as scope:
                try:
                    await self._call(event)
                except (Exception, SystemExit, asyncio.CancelledError) as error:
                    task = asyncio.current_task()
                    if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                        raise  # it is this task that was cancelled
                    if not self._is_failing:  # until it succeeds again
                        logger.exception("%s failed", self._name)
                    self._is_failing = True
                else:
                    self._is_failing = False
            if scope.cancelled_caught:
                logger.error("%s was cancelled after %g s", self._name, HANG)

    async def _call(self, event: ToolEvent) -> None:
        report = event.report
        known = {
            "seq": event.seq,
            "message": report.message,
            "progress": report.progress,
            "total": report.total,
            "kind": report.kind,
        }
        extras = {name: known[name] for name in self._extras}
        done = self._handler(event.tool, event.call_id, report.data, **extras)
        if inspect.isawaitable(done):
            await done


def _extras(handler: Handler) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return ()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return _EXTRAS
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    accepted = {
        each.name
        for place, each in enumerate(parameters)
        if each.kind in by_name and (place > 2 or each.kind is inspect.Parameter.KEYWORD_ONLY)
    }
    return tuple(name for name in _EXTRAS if name in accepted)
