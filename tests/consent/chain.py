"""A registry with a gate in front of it, and clients whose users answer."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.streams import Followed
from opentabs_py.consent.gate import Gate
from opentabs_py.core.consent import Permission, Standing
from opentabs_py.core.protocol import DocumentState, LoadingTab
from opentabs_py.core.questions import Answer, Place, Question
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError, CallRefusedError
from tests.fakes import FakeBridge, a_document, a_manifest, a_tool, tool_calls_of
from tests.python_tools.held_clock import HeldClock
from tests.waiting import PATIENT


@dataclass
class Client:
    """A client whose user gives the answer in `says`, or none if it is empty."""

    says: list[Answer] = field(default_factory=list[Answer])
    session_key: str | None = "session 1"
    can_ask: bool = True
    name: str | None = "agent 1.0"
    takes_links: bool = False
    reads_streams: bool = True
    uses_gateway: bool = False
    is_immediate: bool = False
    asked_place: Place | None = None
    asked: list[Question] = field(default_factory=list[Question])
    waits: list[str] = field(default_factory=list[str])

    @property
    def asker(self) -> "Client | None":
        return self if self.can_ask else None

    async def ask(self, question: Question, /) -> Answer:
        self.asked.append(question)
        if self.says:
            return self.says.pop(0)
        await anyio.sleep_forever()
        raise AssertionError

    def follow(self, stream: Followed) -> None:  # noqa: ARG002
        raise AssertionError

    def wake(self) -> None:
        raise AssertionError


class Waits(CallObserver):
    def __init__(self, waits: list[str]) -> None:
        self._waits = waits

    def on_waiting(self, why: str, /) -> None:
        self._waits.append(why)


class Chain:
    """A registry with a gate in front of it, on a clock that the test advances."""

    def __init__(
        self,
        rules: Mapping[str, Permission] | None = None,
        standing: Standing = "reviewed",
        bridge: FakeBridge | None = None,
        **gate: Any,
    ) -> None:
        self.clock = HeldClock()
        alarms = AlarmClock(self.clock)
        self.gate = Gate(alarms, rules, **gate)
        self.alarms = alarms
        self.bridge = bridge or FakeBridge(value={"sent": True})
        self.bridge.clock = alarms
        self.tool_calls = tool_calls_of(self.bridge.pages, gate=self.gate)
        self.registry = self.tool_calls.registry
        self.manifest = a_manifest(
            a_tool("send"), a_tool("read", annotations={"readOnlyHint": True})
        )
        self.registry.set_plugins([self.manifest], {"chat": standing})
        self.records: list[CallRecord] = []
        self.tool_calls.records.observe(self.records.append)

    async def call(self, tool: str = "chat_send", client: Client | None = None, **more: Any) -> Any:
        with anyio.fail_after(PATIENT):
            if client is None:
                return await self.tool_calls.call(tool, {}, origin=CallOrigin(**more))
            origin = CallOrigin(client, client.name, **more)
            return await self.tool_calls.call(
                tool, {}, observers=[Waits(client.waits)], origin=origin
            )

    async def refused(self, tool: str = "chat_send", client: Client | None = None) -> CallError:
        with pytest.raises(CallRefusedError) as caught:
            await self.call(tool, client)
        return caught.value

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[anyio.abc.TaskGroup]:
        """Ring the clock's due alarms."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.alarms.run)
            yield tasks
            tasks.cancel_scope.cancel()


def show(bridge: FakeBridge, front: int, *tabs: int, loading: Sequence[int] = ()) -> None:
    """Report tabs with the plugin, one of them active; nobody is notified."""
    given = [
        a_document(documentId=f"{tab:032x}", tabId=tab, title=f"Account {tab}", active=tab == front)
        for tab in tabs
    ]
    now = anyio.current_time()
    bridge.tabs.connection_changed(connected=True, now=now)
    documents = [DocumentState.model_validate(each) for each in given]
    tabs_loading = [
        LoadingTab(tab_id=tab, url="https://chat.example/", plugins=["chat"]) for tab in loading
    ]
    bridge.tabs.update(documents, now, loading=tabs_loading)
