"""The list of the tools that pages register themselves follows the pages."""

import logging
from typing import Any

import anyio
import pytest

from opentabs_py import tool
from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.consent.gate import Gate
from opentabs_py.core.limits import Limits
from opentabs_py.core.page_tools import Cadence, PageRegistrations
from opentabs_py.errors import CallError
from opentabs_py.python_tools.collection import PythonTools
from opentabs_py.python_tools.run import ToolHost
from opentabs_py.server.tools.page_tool_list import MOST_WARNINGS, PageToolList
from opentabs_py.server.tools.ready_tools import ReadyInPages, ReadyTools
from tests.fakes import (
    OTHER_PAGE,
    PAGE,
    TAB,
    FakeSocket,
    a_document,
    greeted,
    pages_of,
    running,
    tabs_changed,
    tool_calls_of,
)
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio
NEVER = 1000.0  # s


class ListedTools:
    """A bridge, and the list of its pages' tools."""

    def __init__(self, cadence: Cadence, gate: Gate | None = None) -> None:
        self.bridge = Bridge(
            secret="s" * 64, origin="chrome-extension://x", page_tools=PageRegistrations()
        )
        self.pages = pages = pages_of(self.bridge)
        self.tool_calls = tool_calls_of(pages, limits=Limits(1.0, 2.0), gate=gate)
        self.registry = self.tool_calls.registry
        self.tools = PageToolList(pages, self.registry, message_limit=1000, cadence=cadence)
        self.changed = anyio.Event()
        self.registry.subscribe(self._note)

    def _note(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    @property
    def names(self) -> list[str]:
        return [each.listing.name for each in self.registry.tools]

    async def wait_for(self, *names: str) -> None:
        with anyio.fail_after(PATIENT):
            while self.names != [*names]:
                await self.changed.wait()


def page_tools(*names: str, schema: Any = None, read_only: bool = True) -> dict[str, Any]:
    """Return an extension's message about the page's tools."""
    tools = [
        {
            "id": number,
            "name": name,
            "title": "",
            "description": "",
            "readOnly": read_only,
            "consequential": False,
            "untrustedContent": False,
            "inputSchema": schema or {"type": "object"},
        }
        for number, name in enumerate(names)
    ]
    return {"method": "page.tools", "params": {"documentId": PAGE, "tools": tools}}


async def until_read(socket: FakeSocket) -> None:
    """Wait until the bridge has read everything that was sent to it."""
    socket.say({"method": "ping", "params": {"time": 0}})
    await socket.hear("pong")


async def test_the_list_follows_the_page() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    async with running(listed.bridge) as connect, anyio.create_task_group() as tasks:
        tasks.start_soon(listed.tools.run)
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add", "sub"))
        await listed.wait_for("page_chat_example_add", "page_chat_example_sub")
        socket.say(page_tools("sub"))
        await listed.wait_for("page_chat_example_sub")
        assert listed.registry.status(listed.registry.tools[0].listing.owner) == "ready"
        tasks.cancel_scope.cancel()


async def test_a_tool_that_its_page_registers_again_is_listed_as_it_is_now() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    properties = {"a": {"type": "integer"}}
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        for schema in ({"type": "object"}, {"type": "object", "properties": properties}):
            socket.say(page_tools("add", schema=schema))
            await until_read(socket)
            listed.tools.refresh()
    [add] = listed.registry.tools
    assert add.listing.input_schema["properties"]["a"] == properties["a"]


async def test_the_tools_of_a_page_are_waited_for_until_it_has_loaded() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    found: list[tuple[int, list[str]]] = []

    async def wait() -> None:
        tab, tools = await listed.tools.wait_for("https://chat.example/")
        found.append((tab, [each.listing.name for each in tools]))

    async with running(listed.bridge) as connect, anyio.create_task_group() as tasks:
        other = a_document(
            documentId=OTHER_PAGE, tabId=9, url="https://chat.example/#2", plugin="@page"
        )
        tasks.start_soon(wait)
        socket = await greeted(
            connect, other, a_document(plugin="@page", readiness="pending"), tabs=[TAB, 9]
        )
        socket.say(page_tools("add"))
        await until_read(socket)
        await until_all_wait()
        assert not found
        socket.say(tabs_changed(other, a_document(plugin="@page"), tabs=[TAB, 9]))
    assert found == [(TAB, ["page_chat_example_add"])]


async def test_of_two_tabs_with_the_same_page_none_is_chosen_for_a_test() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    documents = [
        a_document(documentId=document_id, tabId=tab, plugin="@page")
        for tab, document_id in ((TAB, PAGE), (9, OTHER_PAGE))
    ]
    async with running(listed.bridge) as connect:
        await greeted(connect, *documents, tabs=[TAB, 9])
        with pytest.raises(LookupError, match="2 tabs show"), anyio.fail_after(PATIENT):
            await listed.tools.wait_for("https://chat.example/")


async def test_a_change_soon_after_another_waits() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=NEVER))
    async with running(listed.bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add"))
        await until_read(socket)
        tasks.start_soon(listed.tools.run)
        await listed.wait_for("page_chat_example_add")
        socket.say(page_tools("sub"))
        await until_read(socket)
        await until_all_wait()
        assert listed.names == ["page_chat_example_add"]
        listed.tools.refresh()
        assert listed.names == ["page_chat_example_sub"]
        tasks.cancel_scope.cancel()


async def test_tools_stay_while_the_extension_reconnects_and_go_if_it_does_not() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    listed.bridge.tabs.grace = NEVER
    async with running(listed.bridge) as connect, anyio.create_task_group() as tasks:
        tasks.start_soon(listed.tools.run)
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add"))
        await listed.wait_for("page_chat_example_add")
        socket.hang_up()
        with anyio.fail_after(PATIENT):
            while listed.bridge.connected:
                await listed.bridge.changed().wait()
        await until_all_wait()
        listed.tools.refresh()
        assert listed.names == ["page_chat_example_add"]
        listed.bridge.handle_browser_gone()
        listed.bridge._notify()
        await listed.wait_for()
        tasks.cancel_scope.cancel()


async def test_a_page_s_tools_are_in_a_list_of_only_those_that_work() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    ready = ReadyTools(listed.registry, ReadyInPages(listed.pages))
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add"))
        await until_read(socket)
        listed.tools.refresh()
        assert [each.listing.name for each in ready.tools] == ["page_chat_example_add"]


async def test_a_python_tool_keeps_its_name() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))

    @tool(name="page_chat_example_add")
    def add() -> str:
        """Add."""
        return "ours"

    host = ToolHost(AlarmClock(listed.bridge.clock), Limits(1.0, 2.0), 1000)
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add"))
        await until_read(socket)
        listed.tools.refresh()
        assert listed.names == ["page_chat_example_add"]
        listed.registry.set_tools(PythonTools([add], host).tools)
        assert listed.registry.find("page_chat_example_add").listing.owner != "page--chat-example"
        listed.tools.refresh()
        [own, page] = listed.names
        assert (own, page.startswith("page_chat_example_add_")) == ("page_chat_example_add", True)


@pytest.mark.parametrize(("read_only", "permission"), [(True, "auto"), (False, "ask")])
async def test_the_user_is_asked_unless_the_page_says_that_its_tool_only_reads(
    read_only: bool, permission: str
) -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0), Gate(AlarmClock()))
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add", read_only=read_only))
        await until_read(socket)
        listed.tools.refresh()
    decision = listed.registry.decision("page_chat_example_add")
    assert decision is not None
    assert decision.permission == permission


async def test_a_question_about_a_tool_ends_when_its_page_is_left() -> None:
    gate = Gate(AlarmClock())
    listed = ListedTools(Cadence(rest=0.0, apart=0.0), gate)
    errors: list[CallError] = []

    async def call() -> None:
        with pytest.raises(CallError) as caught:
            await listed.tool_calls.call("page_chat_example_add", {})
        errors.append(caught.value)

    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add", read_only=False))
        await until_read(socket)
        listed.tools.refresh()
        with gate.questions.shown(), anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await until_all_wait()
                socket.say(tabs_changed(a_document(plugin="@page", title="another")))
                await until_all_wait()
                assert len(gate.questions.waiting) == 1
                socket.say(tabs_changed(tabs=[TAB]))
    [error] = errors
    assert error.detail.code == "PAGE_TOOL_GONE"
    assert "while the user was asked" in error.detail.message


async def test_a_tool_is_unknown_only_once_its_page_has_loaded_again_without_it() -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))

    async def failure(name: str = "page_chat_example_add") -> tuple[str, bool]:
        with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
            await listed.tool_calls.call(name, {})
        return caught.value.detail.code, caught.value.detail.retryable

    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add"))
        await until_read(socket)
        listed.tools.refresh()
        loads = a_document(documentId=OTHER_PAGE, plugin="@page", readiness="pending")
        for _ in range(2):
            socket.say(tabs_changed(loads))
            await until_read(socket)
            listed.tools.refresh()
            assert listed.names == []
            assert await failure() == ("PAGE_TOOL_GONE", True)
            assert await failure("page_chat_example_ad") == ("UNKNOWN_TOOL", False)
        socket.say({"method": "page.tools", "params": {"documentId": OTHER_PAGE, "tools": []}})
        socket.say(tabs_changed(loads | {"plugins": {"@page": {"readiness": "ready"}}}))
        await until_read(socket)
        assert await failure() == ("UNKNOWN_TOOL", False)


async def test_why_a_tool_is_not_listed_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        socket.say(page_tools("add", schema={"type": "array"}))
        await until_read(socket)
        with caplog.at_level(logging.WARNING):
            listed.tools.refresh()
            listed.tools.refresh()
    assert listed.names == []
    [record] = caplog.records
    assert "listed: https://chat.example 'add': its input schema" in record.getMessage()


async def test_a_page_that_registers_other_wrong_tools_all_the_time_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listed = ListedTools(Cadence(rest=0.0, apart=0.0))
    async with running(listed.bridge) as connect:
        socket = await greeted(connect, a_document(plugin="@page"))
        for turn in range(5):
            names = [f"add{turn}_{number}" for number in range(30)]
            socket.say(page_tools(*names, schema={"type": "array"}))
            await until_read(socket)
            listed.tools.refresh()
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == MOST_WARNINGS + 1
    assert "for a minute, no more are logged" in texts[-1]
