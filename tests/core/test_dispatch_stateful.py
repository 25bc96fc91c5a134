"""Dispatch compared with a simple model of it, in any order of inputs."""

import os
from collections import Counter
from dataclasses import dataclass

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from opentabs_py.core.dispatch import (
    MOVED_ON_GRACE,
    SILENT_GRACE,
    Dispatch,
    Failed,
    Progressed,
    Succeeded,
)
from opentabs_py.core.limits import CATCH_UP, LATE, Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import (
    DispatchParams,
    DocumentState,
    ErrorParams,
    LostParams,
    ProgressParams,
    ResultParams,
    ToolAck,
    ToolCancel,
    ToolDispatch,
    ToolErrored,
    ToolLost,
    ToolProgress,
    ToolResult,
    WireError,
)

PAGES = {digit * 32: tab for digit, tab in (("d", 1), ("e", 2), ("f", 2))}
STRANGER = "9" * 32  # a call that this server never made

pages = st.sampled_from(sorted(PAGES))
some_pages = st.sets(pages)
some_tabs = st.sets(st.sampled_from(sorted(set(PAGES.values()))))
numbers = st.integers(0, 7)  # of a call, counted back from the newest
some_numbers = st.sets(numbers)


@dataclass
class Pending:
    """A call as the model sees it."""

    page: str
    started: float
    heard: float
    idle: float
    ceiling: float
    is_with_page: bool = False
    seq: int = -1
    gone_at: float | None = None
    spared_until: float = -1.0

    def ends_at(self) -> tuple[float, str]:
        timers = [(self.started + self.ceiling, "ceiling"), (self.heard + self.idle, "idle")]
        if self.gone_at is not None:
            timers.insert(0, (self.gone_at, "gone"))
        return min(timers, key=lambda timer: timer[0])


class DispatchMachine(RuleBasedStateMachine):
    """Every input, each followed by a check of all outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatch = Dispatch()
        self.now = 0.0
        self.made: list[str] = []
        self.pending: dict[str, Pending] = {}
        self.ended: set[str] = set()
        self.connected = False
        self.present: set[str] = set()
        self.reported: dict[str, int] = {}

    # --- inputs ---

    @rule(
        page=pages,
        idle=st.sampled_from([1.0, 4.5, 30.0]),
        ceiling=st.sampled_from([2.0, 9.0, 60.0]),
    )
    def make_a_call(self, page: str, idle: float, ceiling: float) -> None:
        call_id = f"{len(self.made):032x}"
        self.made.append(call_id)
        self.pending[call_id] = Pending(page, self.now, self.now, idle, ceiling, self.connected)
        params = DispatchParams(
            document_id=page, call_id=call_id, plugin="demo", tool="tool", input={}
        )
        self.dispatch.call(params, PAGES[page], Limits(idle, ceiling), self.now)
        self.check(sent=[call_id] if self.connected else [])

    @rule(number=numbers, seqs=st.lists(st.integers(0, 9), max_size=5))
    def progress(self, number: int, seqs: list[int]) -> None:
        call_id = self.call_id(number)
        reports = [ProgressReport(seq) for seq in seqs]
        params = ProgressParams(document_id=self.page_of(call_id), call_id=call_id, reports=reports)
        self.dispatch.receive(ToolProgress(params=params), self.now)
        call = self.pending.get(call_id)
        if call is None:
            self.check(told=[call_id])
            return
        fresh = []
        for seq in seqs:
            if seq > call.seq:
                call.seq, call.heard = seq, self.now
                fresh.append(seq)
        acks = [(call_id, call.seq)] if call.seq >= 0 else []
        self.check(progress=(call_id, fresh) if fresh else None, acks=acks)

    @rule(number=numbers, times=st.integers(1, 2))
    def result(self, number: int, times: int) -> None:
        call_id = self.call_id(number)
        params = ResultParams(document_id=self.page_of(call_id), call_id=call_id, seq=3, value=1)
        for _ in range(times):
            self.dispatch.receive(ToolResult(params=params), self.now)
        ends = {call_id: "value"} if self.pending.pop(call_id, None) else {}
        self.check(ends=ends, settled=[call_id] * times)

    @rule(number=numbers)
    def error(self, number: int) -> None:
        call_id = self.call_id(number)
        error = WireError(code="OOPS", message="oops")
        params = ErrorParams(document_id=self.page_of(call_id), call_id=call_id, seq=3, error=error)
        self.dispatch.receive(ToolErrored(params=params), self.now)
        ends = {call_id: "OOPS"} if self.pending.pop(call_id, None) else {}
        self.check(ends=ends, settled=[call_id])

    @rule(number=numbers)
    def lost(self, number: int) -> None:
        call_id = self.call_id(number)
        message = ToolLost(params=LostParams(call_id=call_id, reason="crashed"))
        self.dispatch.receive(message, self.now)
        self.check(ends={call_id: "PAGE_CRASHED"} if self.pending.pop(call_id, None) else {})

    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        call_id = self.call_id(number)
        self.dispatch.cancel(call_id, "enough")
        was_there = self.pending.pop(call_id, None) is not None
        self.check(
            ends={call_id: "CANCELLED"} if was_there else {},
            told=[call_id] if was_there and self.connected else [],
        )

    @rule()
    def lose_the_link(self) -> None:
        self.dispatch.connection_lost()
        self.connected = False
        for call in self.pending.values():
            call.is_with_page, call.gone_at = False, None
        self.check()

    @rule(here=some_pages, tabs=some_tabs, known=some_numbers)
    def hello(self, here: set[str], tabs: set[int], known: set[int]) -> None:
        self.dispatch.connection_resumed(self.documents(here, known), sorted(tabs), self.now)
        self.connected, self.present = True, set()
        for call in self.pending.values():
            call.is_with_page, call.gone_at = False, None
        ends, sent, told = self.take_snapshot(here, tabs, known)
        self.check(ends=ends, sent=sent, told=told)

    @precondition(lambda self: self.connected)
    @rule(here=some_pages, tabs=some_tabs, known=some_numbers)
    def snapshot(self, here: set[str], tabs: set[int], known: set[int]) -> None:
        self.dispatch.documents_changed(self.documents(here, known), sorted(tabs), self.now)
        ends, sent, told = self.take_snapshot(here, tabs, known)
        self.check(ends=ends, sent=sent, told=told)

    @rule(quarters=st.integers(1, 40))
    def time_passes_unnoticed(self, quarters: int) -> None:
        self.now += quarters / 4

    @rule(quarters=st.integers(0, 40))
    def timer(self, quarters: int) -> None:
        self.now += quarters / 4
        self.dispatch.handle_timer(self.now)
        self.expect_timeouts()

    @precondition(lambda self: self.dispatch.next_deadline() is not None)
    @rule()
    def timer_at_the_very_deadline(self) -> None:
        deadline = self.dispatch.next_deadline()
        assert deadline is not None
        self.now = max(self.now, deadline)
        self.dispatch.handle_timer(self.now)
        self.expect_timeouts()

    # --- the model ---

    def call_id(self, number: int) -> str:
        return self.made[-1 - number] if number < len(self.made) else STRANGER

    def page_of(self, call_id: str) -> str:
        return self.pending[call_id].page if call_id in self.pending else "d" * 32

    def documents(self, here: set[str], known: set[int]) -> list[DocumentState]:
        return [
            DocumentState(
                document_id=page,
                tab_id=PAGES[page],
                url="https://example.com/",
                title="",
                active=False,
                focused=False,
                protected=True,
                calls=sorted({self.call_id(number) for number in known}),
                plugins={},
            )
            for page in sorted(here)
        ]

    def take_snapshot(
        self, here: set[str], tabs: set[int], known: set[int]
    ) -> tuple[dict[str, str], list[str], list[str]]:
        known_ids = {self.call_id(number) for number in known}
        fresh = here - self.present
        self.present = here
        told = [call_id for call_id in known_ids if call_id not in self.pending] * len(fresh)
        ends: dict[str, str] = {}
        sent: list[str] = []
        for call_id, call in list(self.pending.items()):
            if call.page in fresh:
                call.is_with_page, call.gone_at = True, None
                if call_id not in known_ids:
                    sent.append(call_id)
            elif call.page not in here and PAGES[call.page] not in tabs:
                ends[call_id] = "TAB_CLOSED"
            elif call.page not in here:
                has_other = PAGES[call.page] in {PAGES[page] for page in here}
                gone_at = self.now + (MOVED_ON_GRACE if has_other else SILENT_GRACE)
                call.is_with_page = False
                call.gone_at = min(gone_at, gone_at if call.gone_at is None else call.gone_at)
        for call_id in ends:
            del self.pending[call_id]
        return ends, sent, told

    def expect_timeouts(self) -> None:
        due = {}
        for call_id, call in self.pending.items():
            ends_at, why = call.ends_at()
            if self.now - max(ends_at, call.spared_until) > LATE:
                call.spared_until = self.now + CATCH_UP
            if max(ends_at, call.spared_until) <= self.now:
                due[call_id] = why
        for call_id in due:
            del self.pending[call_id]
        codes = {"idle": "TIMEOUT_IDLE", "ceiling": "TIMEOUT_CEILING", "gone": "PAGE_NAVIGATED"}
        timed_out = [call_id for call_id, why in due.items() if why != "gone"]
        self.check(
            ends={call_id: codes[why] for call_id, why in due.items()},
            told=timed_out if self.connected else [],
        )

    # --- the outputs ---

    def check(
        self,
        *,
        ends: dict[str, str] | None = None,
        progress: tuple[str, list[int]] | None = None,
        sent: list[str] | None = None,
        told: list[str] | None = None,
        acks: list[tuple[str, int]] | None = None,
        settled: list[str] | None = None,
    ) -> None:
        """Drain all outputs, and check that they are exactly these."""
        seen_ends: dict[str, str] = {}
        seen_progress = None
        for event in self.dispatch.drain_events():
            assert event.call_id not in self.ended, "something was said about a call that ended"
            if isinstance(event, Progressed):
                seen_progress = (event.call_id, [report.seq for report in event.reports])
                for report in event.reports:
                    assert report.seq > self.reported.get(event.call_id, -1)
                    self.reported[event.call_id] = report.seq
                continue
            self.ended.add(event.call_id)
            match event:
                case Succeeded():
                    seen_ends[event.call_id] = "value"
                case Failed(error=error):
                    seen_ends[event.call_id] = error.detail.code
        assert seen_ends == (ends or {})
        assert seen_progress == progress

        messages = self.dispatch.drain_messages()
        seen_sent = [m.params.call_id for m in messages if isinstance(m, ToolDispatch)]
        seen_told = [m.params.call_id for m in messages if isinstance(m, ToolCancel)]
        seen_acks = [(m.params.call_id, m.params.seq) for m in messages if isinstance(m, ToolAck)]
        seen_settled = [
            call_id for each in self.dispatch.drain_settled() for call_id in each.params.call_ids
        ]
        assert Counter(seen_sent) == Counter(sent or [])
        assert Counter(seen_told) == Counter(told or [])
        assert seen_acks == (acks or [])
        assert seen_settled == (settled or [])

    @invariant()
    def the_same_calls_are_pending(self) -> None:
        assert self.dispatch.pending == len(self.pending)
        assert self.ended | set(self.pending) == set(self.made)

    @invariant()
    def no_deadline_is_overlooked(self) -> None:
        if self.pending:
            bound = self.dispatch.next_deadline()
            assert bound is not None
            assert bound <= min(
                max(call.ends_at()[0], call.spared_until) for call in self.pending.values()
            )


TestDispatch = DispatchMachine.TestCase
TestDispatch.settings = settings(
    max_examples=1500 if "SOAK" in os.environ else 75, stateful_step_count=40
)
