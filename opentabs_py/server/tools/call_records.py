"""The records of a server's calls, for those who ask for them."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import Clock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import RecorderObserver, instant
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.core.trace.recorder import CallRecorder


@dataclass(slots=True)
class CallInProgress:
    """A call that is recorded if anybody asks for its record.

    Attributes:
        call: The call to make.
        value: The value that it returned, once it has.
    """

    call: ToolCall
    value: Any = None


class CallRecords:
    """Records calls as long as somebody observes them.

    Args:
        clock: The clock of the calls' timers.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._excerpts: dict[object, Excerpts] = {}  # the last counts
        self._no_values = Excerpts()
        self._started: Listeners[[RecordSoFar]] = Listeners("calls")
        self._ended: Listeners[[CallRecord]] = Listeners("calls")
        self._ended_untraced: Listeners[[CallRecord]] = Listeners("calls")

    def observe(
        self,
        observer: Callable[[CallRecord], None],
        *,
        on_start: Callable[[RecordSoFar], None] | None = None,
        traced: bool = True,
    ) -> Callable[[], None]:
        """Call a function with the record of every call that ends from now on, however it ends.

        It is called before the caller gets the result, in the caller's task, and must not block.
        Calls are traced if some observer wants that.

        Args:
            observer: Receives each record.
            on_start: Called in the same way when a call begins, with a function that returns its
                record so far.
            traced: Whether the records should say when the call passed each hop, and without
                `on_start`, what it reported and what its plugin logged. That costs each call some
                time.

        Returns:
            A function that ends the observation.
        """
        ends = ExitStack()
        ends.callback((self._ended if traced else self._ended_untraced).subscribe(observer))
        if on_start is not None:
            ends.callback(self._started.subscribe(on_start))
        return ends.close

    def keep_values(self, excerpts: Excerpts) -> Callable[[], None]:
        """Keep arguments and results in the records of calls that begin from now on.

        Args:
            excerpts: Truncates them, and masks secrets.

        Returns:
            A function that stops this. If several callers ask for values, the most recent one's
            excerpts apply.
        """
        token = object()
        self._excerpts[token] = excerpts

        def end() -> None:
            self._excerpts.pop(token, None)

        return end

    @contextmanager
    def record(
        self,
        name: str,
        call: ToolCall,
        *,
        on_record: Callable[[CallRecord], None] | None = None,
        traced: bool = True,
    ) -> Generator[CallInProgress]:
        """Record a call that is made in this context, if anybody asks for its record.

        Args:
            name: The tool's name.
            call: The call.
            on_record: Called with its record when it has ended, before the context is left.
            traced: Whether that record should say when the call passed each hop.
        """
        in_progress = CallInProgress(call)
        is_traced = bool(self._ended) or (on_record is not None and traced)
        if not (is_traced or self._ended_untraced or on_record is not None):
            yield in_progress
            return
        excerpts = next(reversed(self._excerpts.values()), None)
        recorder = CallRecorder(
            call_id=call.call_id,
            name=name,
            limits=call.limits,
            now=instant(self._clock),
            arguments=None if excerpts is None else call.arguments,
            client=call.origin.name,
            excerpts=excerpts or self._no_values,
            is_traced=is_traced,
        )
        # Whoever wants to know of its start may look at it while it runs.
        is_watched = is_traced or bool(self._started)
        recorders = (RecorderObserver(recorder, self._clock),) if is_watched else ()
        in_progress.call = replace(call, recorder=recorder, observers=(*recorders, *call.observers))
        self._started.notify(lambda: recorder.so_far(instant(self._clock)))
        try:
            yield in_progress
        except BaseException as error:
            self._notify_ended(recorder.fail(error, instant(self._clock)), on_record)
            raise
        self._notify_ended(recorder.succeed(in_progress.value, instant(self._clock)), on_record)

    def _notify_ended(
        self, record: CallRecord, on_record: Callable[[CallRecord], None] | None
    ) -> None:
        if on_record is not None:
            on_record(record)
        self._ended.notify(record)
        self._ended_untraced.notify(record)
