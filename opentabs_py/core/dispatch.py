"""Pending calls: when each ends, and how.

A call is in one of three states until it ends:

    state     the link                          the call's document
    -------   -------------------------------   -----------------------------------------
    SENT      up                                present in the last snapshot; has the call
    ADRIFT    down                              unknown
    AWAITED   up                                gone, or not back yet

    input                     SENT             ADRIFT           AWAITED
    -----------------------   --------------   --------------   -------------------------
    connection lost           -> ADRIFT                         -> ADRIFT
    hello, document there                      -> SENT          -> SENT     (sent again if
    hello, tab gone, crashed                   ends LOST        ends LOST    not known there)
    hello, document missing                    -> AWAITED       -> AWAITED
    document comes back                                         -> SENT     (the same)
    document goes             -> AWAITED
    its tab goes, crashes     ends LOST                         ends LOST
    a grace later                                               ends LOST
    progress, new seq         idle timer moves, acknowledged, in every state
    result, error             ends, settled, in every state
    tool.lost                 ends LOST
    cancel                    ends CANCELLED; the page is notified when the link is up
    idle or ceiling timer     ends TIMED_OUT; the page is notified when the link is up
    any timer, fired late     the call is spared for a moment, see `core/limits.py`

Documents come and go in complete snapshots: the one in `hello`, and one at every change.
A page that cannot be notified now is notified when a document next appears and names the call.
A call ends exactly once: it leaves `_pending`. A message about an unknown call is dropped and
counted, and answered so that the relay releases it: a result with `tool.settled`, progress with
`tool.cancel`, because the tool is still running.

Both timers live in one heap of lower bounds. Progress postpones a deadline without touching the
heap; when a bound comes due the true deadline is computed and, if it is still ahead, pushed back.
So a report costs O(1), however many calls are pending. A call has one valid bound, its `alarm`;
any other entry for the call is ignored.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from typing import Any

from opentabs_py.core import failures
from opentabs_py.core.limits import Limits, Timers
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    AckParams,
    CancelParams,
    DispatchParams,
    DocumentState,
    SettledParams,
    ToExtension,
    ToolAck,
    ToolCancel,
    ToolDispatch,
    ToolErrored,
    ToolLost,
    ToolProgress,
    ToolResult,
    ToolSettled,
)
from opentabs_py.errors import CallError

# How long a document may take to come back, in seconds. 0.2 is usual, but a call given up here may
# already have run.
MOVED_ON_GRACE = 3.0  # its tab shows another document
SILENT_GRACE = 15.0  # its tab shows none: a page that blocks its thread cannot announce itself
STALE_TIMERS = 1000  # in the heap; more are looked for only when there are as many
NOBODY_WAITS = "the caller is no longer waiting"


@dataclass(frozen=True, slots=True)
class Progressed:
    """A running call reported progress; reports are in order, each exactly once.

    `dropped` counts those that are missing between them and before the first of them.
    """

    call_id: str
    reports: Sequence[ProgressReport]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A call ended with a value."""

    call_id: str
    value: Any


@dataclass(frozen=True, slots=True)
class Failed:
    """A call ended without a value."""

    call_id: str
    error: CallError


Event = Progressed | Succeeded | Failed


class _State(Enum):
    SENT = auto()
    ADRIFT = auto()
    AWAITED = auto()


@dataclass(slots=True)
class _Call:
    request: DispatchParams
    tab_id: int
    timers: Timers
    state: _State
    seq: int = -1
    lost_at: float = inf  # earlier while AWAITED
    alarm: float = 0.0  # this call's bound in the timer heap

    def deadline(self) -> float:
        return self.timers.deadline(other=self.lost_at)


@dataclass(slots=True)
class Dispatch:
    """The pending calls of one browser. Feed it inputs, then take its outputs.

    Times are seconds on any steady clock; they need not be exact, only in order.

    Attributes:
        late_messages: How many messages came about calls that had ended.
        dropped_reports: How many progress reports were dropped in pages.
    """

    late_messages: int = 0
    dropped_reports: int = 0
    _connected: bool = False
    _pending: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _timers: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    _present: set[str] = field(default_factory=set[str])  # documents of the last snapshot
    _messages: list[ToExtension] = field(default_factory=list[ToExtension])
    _settled: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # by document
    _events: list[Event] = field(default_factory=list[Event])

    # --- outputs ---

    def drain_messages(self) -> list[ToExtension]:
        """Return the messages to send, and clear them."""
        messages, self._messages = self._messages, []
        return messages

    @property
    def has_settled(self) -> bool:
        """Whether results have arrived for which no `tool.settled` has been sent."""
        return bool(self._settled)

    def drain_settled(self) -> list[ToolSettled]:
        """Return the acknowledgements of results, and clear them; sent later, they are fewer."""
        settled, self._settled = self._settled, {}
        return [
            ToolSettled(params=SettledParams(document_id=document_id, call_ids=call_ids))
            for document_id, call_ids in settled.items()
        ]

    def drain_events(self) -> list[Event]:
        """Return what happened, and clear it."""
        events, self._events = self._events, []
        return events

    def next_deadline(self) -> float | None:
        """Return a time before which `handle_timer` has nothing to do; None means never."""
        while self._timers and self._is_obsolete(*self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    @property
    def pending(self) -> int:
        """How many calls have not ended."""
        return len(self._pending)

    # --- inputs ---

    def call(
        self,
        request: DispatchParams,
        tab_id: int,
        limits: Limits,
        now: float,
        *,
        began: float | None = None,
    ) -> None:
        """Start a call and its timers, whether or not the link is up.

        Args:
            request: What the page is sent.
            tab_id: The tab of its document.
            limits: Its time limits.
            now: The time.
            began: When the call was first sent, if it was sent to another document before: its
                ceiling counts from then.
        """
        state = _State.SENT if self._connected else _State.ADRIFT
        timers = Timers(limits, started=now if began is None else began, heard=now)
        call = _Call(request, tab_id, timers, state)
        self._pending[request.call_id] = call
        self._set_timer(call)
        if self._connected:
            self._send(call)

    def cancel(self, call_id: str, reason: str) -> None:
        """End a call whose caller no longer waits; unknown ids are ignored."""
        call = self._pending.get(call_id)
        if call is not None:
            self._fail(call, failures.cancelled(reason), reason=reason)

    def receive(
        self, message: ToolProgress | ToolResult | ToolErrored | ToolLost, now: float
    ) -> None:
        """Handle a message from the extension about a call."""
        call = self._pending.get(message.params.call_id)
        if call is None:
            self.late_messages += 1
        match message:
            case ToolProgress(params=params):
                if call is None:
                    self._send_cancel(params.document_id, params.call_id, NOBODY_WAITS)
                else:
                    self._progress(call, params.reports, now)
            case ToolResult(params=params):
                self._settle(params.document_id, params.call_id)
                if call is not None:
                    self._end(call, Succeeded(params.call_id, params.value))
            case ToolErrored(params=params):
                self._settle(params.document_id, params.call_id)
                if call is not None:
                    self._end(call, Failed(params.call_id, failures.from_wire(params.error)))
            case ToolLost(params=params):  # pragma: no branch
                if call is not None:
                    self._fail(call, failures.lost(params.reason))

    def connection_lost(self) -> None:
        """Handle a lost connection: calls stay pending and their timers keep running."""
        self._connected = False
        self._present = set()
        self._settled = {}  # a relay sends a result again until it is settled
        for call in self._pending.values():
            call.state, call.lost_at = _State.ADRIFT, inf

    def connection_resumed(
        self,
        documents: Sequence[DocumentState],
        tab_ids: Sequence[int],
        now: float,
        *,
        crashed: Sequence[int] = (),
        fresh: bool = False,
    ) -> None:
        """Handle the extension's hello: match the calls it still knows with the pending ones.

        Everything dispatched before a `fresh` extension loaded is lost: its relays are orphaned.
        """
        self.connection_lost()
        self._connected = True
        if fresh:
            for call in list(self._pending.values()):
                self._fail(call, failures.lost("reloaded"))
        self.documents_changed(documents, tab_ids, now, crashed=crashed)

    def documents_changed(
        self,
        documents: Sequence[DocumentState],
        tab_ids: Sequence[int],
        now: float,
        *,
        crashed: Sequence[int] = (),
    ) -> None:
        """Handle a snapshot: all existing documents and tabs, and the tabs that crashed.

        New documents are matched with the pending calls. The calls of a tab that was closed, or
        whose page crashed, are lost. If only the document is gone, its calls are awaited: the
        dispatch may have crossed this snapshot on the wire, and the worker's own, more specific
        message about the call is still to come.
        """
        occupied = {document.tab_id for document in documents}
        fresh = {d.document_id: d for d in documents if d.document_id not in self._present}
        self._present = {document.document_id for document in documents}
        for document in fresh.values():
            for call_id in document.calls:
                if call_id not in self._pending:
                    self._send_cancel(document.document_id, call_id, NOBODY_WAITS)
        tabs = set(tab_ids)
        for call in list(self._pending.values()):
            document_id = call.request.document_id
            if document_id in fresh:
                self._resume(call, fresh[document_id])
            elif document_id in self._present:
                continue
            elif call.tab_id not in tabs:
                self._fail(call, failures.lost("tab_closed"))
            elif call.tab_id in crashed:
                self._fail(call, failures.lost("crashed"))
            else:
                grace = MOVED_ON_GRACE if call.tab_id in occupied else SILENT_GRACE
                self._await(call, now + grace)

    def handle_timer(self, now: float) -> None:
        """End every call whose time is up, except those that are spared."""
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, call_id = heapq.heappop(self._timers)
            call = self._pending[call_id]
            call.timers.spare(now, call.deadline())
            if call.deadline() > now:
                self._set_timer(call)
            elif call.lost_at <= call.timers.next()[0]:
                self._fail(call, failures.lost("navigated"))
            else:
                self._time_out(call)

    # --- inside ---

    def _await(self, call: _Call, until: float) -> None:
        """Wait for a call's document to come back, until `until`; never extend its grace."""
        if until < call.lost_at:
            call.state, call.lost_at = _State.AWAITED, until
            self._set_timer(call)

    def _resume(self, call: _Call, document: DocumentState) -> None:
        call.state, call.lost_at = _State.SENT, inf
        if call.request.call_id not in document.calls:
            self._send(call)

    def _progress(self, call: _Call, reports: Sequence[ProgressReport], now: float) -> None:
        fresh: list[ProgressReport] = []
        dropped = 0
        for report in reports:
            if report.seq > call.seq:
                dropped += report.seq - call.seq - 1
                call.seq = report.seq
                fresh.append(report)
        self.dropped_reports += dropped
        if fresh:
            call.timers.restart_idle(now, len(fresh))
            self._events.append(Progressed(call.request.call_id, fresh, dropped))
        if call.seq >= 0:
            self._ack(call.request.document_id, call.request.call_id, call.seq)

    def _time_out(self, call: _Call) -> None:
        error = failures.timed_out(call.timers, connected=call.state is _State.SENT)
        self._fail(call, error, reason=str(error))

    def _fail(self, call: _Call, error: CallError, *, reason: str | None = None) -> None:
        """End a call; with a reason, cancel it in its page."""
        if reason is not None and self._connected:
            self._send_cancel(call.request.document_id, call.request.call_id, reason)
        self._end(call, Failed(call.request.call_id, error))

    def _end(self, call: _Call, event: Succeeded | Failed) -> None:
        del self._pending[call.request.call_id]
        self._events.append(event)

    def _set_timer(self, call: _Call) -> None:
        deadline = call.deadline()
        call.alarm = deadline
        heapq.heappush(self._timers, (deadline, call.request.call_id))
        # Those of ended calls go when they come due. Where limits are long, that may be never.
        if len(self._timers) > 2 * len(self._pending) + STALE_TIMERS:
            self._timers = [each for each in self._timers if not self._is_obsolete(*each)]
            heapq.heapify(self._timers)

    def _is_obsolete(self, alarm: float, call_id: str) -> bool:
        """Return whether a timer of the heap is stale: its call has ended, or has a newer one."""
        call = self._pending.get(call_id)
        return call is None or call.alarm != alarm

    def _send(self, call: _Call) -> None:
        self._messages.append(ToolDispatch(params=call.request))

    def _ack(self, document_id: str, call_id: str, seq: int) -> None:
        params = AckParams(document_id=document_id, call_id=call_id, seq=seq)
        self._messages.append(ToolAck(params=params))

    def _settle(self, document_id: str, call_id: str) -> None:
        self._settled.setdefault(document_id, []).append(call_id)

    def _send_cancel(self, document_id: str, call_id: str, reason: str) -> None:
        params = CancelParams(document_id=document_id, call_id=call_id, reason=reason)
        self._messages.append(ToolCancel(params=params))
