"""`tabs_open` and `tabs_close`: client-owned tabs, and their lifetime."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import httpx2
import pytest
from mcp.client import Client

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.own_tabs import OwnTabs
from opentabs_py.browser.urls import web_address
from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.client import CallClient
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.server.tools.tool_calls import ToolCalls
from opentabs_py.session.tools.setup import create_tab_tools
from tests.fakes import (
    FakeSocket,
    Json,
    a_bridge,
    a_document,
    a_manifest,
    a_tool,
    greeted,
    pages_of,
    running,
    tabs_changed,
    tool_calls_of,
)
from tests.served import INITIALIZE, INITIALIZED, Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

URL = "https://chat.example/inbox"
NEW = 9  # the tab that the browser opens
CHAT = PluginSpec(
    name="chat",
    version="1",
    matches=["https://chat.example/*"],
    exclude_matches=["https://chat.example/out/*"],
    file="chat.js",
    config={},
)


@dataclass
class Session:
    """A client with a session."""

    session_key: str | None
    takes_links: bool = False
    reads_streams: bool = True
    uses_gateway: bool = False
    asker: None = None
    name: str | None = None


def origin(session_key: str | None) -> CallOrigin:
    client = None if session_key is None else cast("CallClient", Session(session_key))
    return CallOrigin(client)


@dataclass
class Own:
    """A bridge with an extension, and the tools."""

    bridge: Bridge
    extension: FakeSocket
    own_tabs: OwnTabs
    tool_calls: ToolCalls

    async def answer_open(self, *documents: Json, tab: int = NEW) -> Json:
        """Open a tab, as the extension does; report these documents."""
        asked = await self.extension.hear("tabs.open")
        self.extension.say({"id": asked["id"], "result": {"tabId": tab}})
        self.extension.say(tabs_changed(*documents, tabs=[7, tab]))
        params: Json = asked["params"]
        return params

    async def answer_close(self) -> int:
        """Close a tab, as the extension does; return its number."""
        asked = await self.extension.hear("tabs.close")
        tab: int = asked["params"]["tabId"]
        self.extension.say({"id": asked["id"], "result": {"tabId": tab}})
        return tab

    async def open(self, who: str | None, *documents: Json, url: str = URL) -> Any:
        """Call `tabs_open` and return its result."""
        answers: list[Any] = []

        async def call() -> None:
            answers.append(
                await self.tool_calls.call("tabs_open", {"url": url}, origin=origin(who))
            )

        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await self.answer_open(*documents)
        return answers[0]

    async def until_closed(self) -> None:
        with anyio.fail_after(PATIENT):
            while self.bridge.tabs.owners:
                await self.bridge.changed().wait()


@asynccontextmanager
async def own_tabs(*documents: Json, keep: bool = False) -> AsyncGenerator[Own]:
    bridge = a_bridge()
    async with running(bridge) as connect:
        extension = await greeted(connect, *documents)
        pages = pages_of(bridge)
        opener = OwnTabs(pages, keep=keep)
        calls = tool_calls_of(pages, built_in=create_tab_tools(pages, opener))
        calls.registry.set_plugins([a_manifest(a_tool("send"))])
        bridge.plugin_sync.plugins = [CHAT]
        yield Own(bridge, extension, opener, calls)


def new_document(**more: Any) -> Json:
    about = {"tabId": NEW, "documentId": "f" * 32, "active": False, "focused": False}
    return a_document(**{**about, "url": URL, **more})


async def test_a_tab_is_opened_and_returned_when_its_page_has_reported() -> None:
    async with own_tabs() as own:
        tab = await own.open("a", new_document(title="Inbox"))
    assert tab == {
        "tabId": NEW,
        "title": "Inbox",
        "url": URL,
        "active": False,
        "plugins": [{"name": "chat", "readiness": "ready"}],
        "own": True,
    }


async def test_a_page_that_loads_is_waited_for() -> None:
    pending = new_document(readiness="pending")
    async with own_tabs() as own, anyio.create_task_group() as tasks:
        answers: list[Any] = []

        async def call() -> None:
            answers.append(await own.tool_calls.call("tabs_open", {"url": URL}, origin=origin("a")))

        tasks.start_soon(call)
        with anyio.fail_after(PATIENT):
            await own.answer_open(pending)
            while not own.bridge.tabs.documents:
                await own.bridge.changed().wait()
            assert not answers
            own.extension.say(tabs_changed(new_document(), tabs=[7, NEW]))
    assert answers[0]["plugins"] == [{"name": "chat", "readiness": "ready"}]


async def test_the_record_of_a_call_names_the_tab_that_it_has_opened() -> None:
    async with own_tabs() as own:
        records: list[CallRecord] = []
        own.tool_calls.records.observe(records.append)
        opened = await own.open("a", new_document())
    assert [(each.tab_id, each.url) for each in records] == [(opened["tabId"], URL)]


async def test_a_page_is_opened_as_users_type_it() -> None:
    async with own_tabs() as own, anyio.create_task_group() as tasks:
        tasks.start_soon(own.tool_calls.call, "tabs_open", {"url": " chat.example/inbox"})
        with anyio.fail_after(PATIENT):
            assert await own.answer_open(new_document()) == {"url": URL}


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "file:///etc/passwd",
        "chrome://settings",
        "data:text/html,x",
        "about:blank",
        "https:///x",
        "https://a.example/\n",
        "https://a b",
        "view-source:https://a.example/",
        "",
    ],
)
async def test_what_is_not_a_web_page_is_refused_before_anything_is_sent(url: str) -> None:
    async with own_tabs() as own:
        if url.endswith("\n"):
            assert web_address(url) == "https://a.example/"
            return
        with pytest.raises(CallError, match="write an http or https URL") as error:
            await own.tool_calls.call("tabs_open", {"url": url})
        assert error.value.detail.code == "INVALID_ARGUMENTS"
        own.bridge.disconnect(1000, "done")
        await own.extension.hear_the_end()
        assert "tabs.open" not in [each.get("method") for each in own.extension.heard]


async def test_a_browser_that_refuses_is_an_error() -> None:
    async with own_tabs() as own, anyio.create_task_group() as tasks:

        async def refuse() -> None:
            asked = await own.extension.hear("tabs.open")
            own.extension.say({"id": asked["id"], "error": {"code": -32603, "message": "no"}})

        tasks.start_soon(refuse)
        with pytest.raises(CallError, match="did not open a tab") as error:
            await own.tool_calls.call("tabs_open", {"url": URL})
        assert error.value.detail.code == "TAB_NOT_OPENED"


async def test_a_browser_that_was_closed_is_launched_for_the_tab() -> None:
    bridge = a_bridge()
    opener = OwnTabs(pages_of(bridge))
    async with running(bridge) as connect, anyio.create_task_group() as tasks:

        async def answer_open(extension: FakeSocket) -> None:
            asked = await extension.hear("tabs.open")
            extension.say({"id": asked["id"], "result": {"tabId": NEW}})

        async def launch() -> None:
            bridge.handle_browser()
            tasks.start_soon(answer_open, await greeted(connect))

        bridge.handle_browser_gone()
        bridge.relaunch_browser = launch
        with anyio.fail_after(PATIENT):
            assert await opener.open(URL, browser=None, client="a") == NEW


async def test_a_call_that_is_cancelled_meanwhile_leaves_no_tab_behind() -> None:
    async with own_tabs() as own:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(own.tool_calls.call, "tabs_open", {"url": URL})
                asked = await own.extension.hear("tabs.open")
                tasks.cancel_scope.cancel()
            own.extension.say({"id": asked["id"], "result": {"tabId": NEW}})
            assert await own.answer_close() == NEW
            await own.until_closed()


async def test_a_call_that_is_cancelled_while_the_page_loads_leaves_no_tab_behind() -> None:
    async with own_tabs() as own:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                arguments = {"url": URL}
                tasks.start_soon(own.tool_calls.call, "tabs_open", arguments)
                await own.answer_open(new_document(readiness="pending"))
                while not own.bridge.tabs.documents:
                    await own.bridge.changed().wait()
                tasks.cancel_scope.cancel()
            assert await own.answer_close() == NEW
            await own.until_closed()


async def test_a_call_that_is_cancelled_as_the_tab_opens_leaves_no_tab_behind() -> None:
    async with own_tabs() as own:
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(own.bridge.tab_requests.open, URL)
                asked = await own.extension.hear("tabs.open")
                own.extension.say({"id": asked["id"], "result": {"tabId": NEW}})
                while not own.bridge.tabs.owners:
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert await own.answer_close() == NEW
            await own.until_closed()


async def test_its_owner_closes_a_tab_and_no_other_client_can() -> None:
    async with own_tabs(a_document()) as own:
        await own.open("a", a_document(), new_document())
        for who, tab in (("b", NEW), (None, NEW), ("a", 7)):
            with pytest.raises(CallError, match="You did not open tab") as error:
                await own.tool_calls.call("tabs_close", {"tabId": tab}, origin=origin(who))
            assert error.value.detail.code == "TAB_NOT_YOURS"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(own.answer_close)
            closed = await own.tool_calls.call("tabs_close", {"tabId": NEW}, origin=origin("a"))
            assert not own.bridge.tabs.owners
        assert closed == {"closed": NEW}


async def test_a_tab_that_a_person_or_its_page_closes_has_no_owner() -> None:
    async with own_tabs(a_document()) as own:
        await own.open("a", a_document(), new_document())
        own.extension.say(tabs_changed(a_document(), tabs=[7]))
        await own.until_closed()


async def test_the_list_shows_each_client_its_own_tabs() -> None:
    async with own_tabs(a_document()) as own:
        await own.open("a", a_document(), new_document())
        seen = {}
        for who in ("a", "b"):
            listed = await own.tool_calls.call("tabs_list", {}, origin=origin(who))
            seen[who] = [(tab["tabId"], tab.get("own")) for tab in listed["tabs"]]
    assert seen == {"a": [(NEW, True), (7, None)], "b": [(7, None)]}


async def test_a_tab_is_hidden_before_its_owner_is_known() -> None:
    async with own_tabs() as own, anyio.create_task_group() as tasks:
        tasks.start_soon(own.open, "a", new_document())
        with anyio.fail_after(PATIENT):
            while not own.bridge.tabs.documents:
                await own.bridge.changed().wait()
        assert own.bridge.tabs.owners.usable("b", [NEW]) == []


async def test_the_tabs_of_a_client_that_goes_are_closed_and_unused() -> None:
    async with own_tabs() as own:
        await own.open("a", new_document())
        own.own_tabs.handle_client_gone("b")
        assert own.bridge.tabs.owners.of("a") == [NEW]
        own.own_tabs.handle_client_gone("a")
        own.own_tabs.handle_client_gone("a")
        assert not own.bridge.tabs.owners.may_name(None, NEW)
        assert await own.answer_close() == NEW
        await own.until_closed()


async def test_kept_tabs_become_the_users() -> None:
    async with own_tabs(keep=True) as own:
        await own.open("a", new_document())
        own.own_tabs.handle_client_gone("a")
        assert not own.bridge.tabs.owners
        await own.open(None, new_document())
        await own.own_tabs.close_all()
        own.bridge.disconnect(1000, "done")
        await own.extension.hear_the_end()
        assert "tabs.close" not in [each.get("method") for each in own.extension.heard]


async def test_at_the_end_all_tabs_are_closed() -> None:
    async with own_tabs() as own:
        await own.open(None, new_document())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(own.answer_close)
            await own.own_tabs.close_all()
            assert not own.bridge.tabs.owners


async def test_a_tab_whose_page_asks_the_user_before_it_closes_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.own_tabs.CLOSE_WITHIN", 0.01)
    async with own_tabs() as own:
        await own.open(None, new_document())
        with anyio.fail_after(PATIENT):
            await own.own_tabs.close_all()


async def test_tabs_are_not_waited_for_once_the_extension_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.own_tabs.CLOSE_WITHIN", PATIENT)
    async with own_tabs() as own:
        await own.open(None, new_document())
        with anyio.fail_after(PATIENT):
            own.extension.hang_up()
            await own.own_tabs.close_all()


async def test_a_tab_whose_client_goes_while_the_extension_reconnects_is_closed_then() -> None:
    bridge = a_bridge()
    opener = OwnTabs(pages_of(bridge))
    async with running(bridge) as connect:
        extension = await greeted(connect, tabs=[7, NEW])
        bridge.tabs.owners.add(NEW, "a")
        extension.hang_up()
        with anyio.fail_after(PATIENT):
            while bridge.connected:
                await bridge.changed().wait()
            opener.handle_client_gone("a")
            extension = await greeted(connect, tabs=[7, NEW])
            asked = await extension.hear("tabs.close")
            assert asked["params"] == {"tabId": NEW}


async def test_the_tabs_of_a_browser_that_is_gone_are_forgotten() -> None:
    bridge = a_bridge()
    bridge.tabs.owners.add(NEW, "a")
    bridge.handle_browser_gone()
    assert not bridge.tabs.owners


async def test_of_several_browsers_the_named_one_opens_and_closes_the_tab() -> None:
    work = a_bridge()
    home = Bridge(secret="t" * 64, origin="chrome-extension://x", name="home", number=1)
    pages = pages_of(work, home)
    opener = OwnTabs(pages)
    async with (
        running(work) as connect_work,
        running(home) as connect,
        anyio.create_task_group() as tasks,
    ):
        await greeted(connect_work)
        extension = await greeted(connect)
        opened: list[int] = []

        async def open_both() -> None:
            opened.append(await opener.open(URL, browser="home", client="a"))
            opened.append(await opener.open(URL, browser=None, client="a"))

        with anyio.fail_after(PATIENT):
            tasks.start_soon(open_both)
            for tab in (3, 4):
                asked = await extension.hear("tabs.open")
                extension.say({"id": asked["id"], "result": {"tabId": tab}})
            while len(opened) < 2:
                await anyio.lowlevel.checkpoint()
            opener.handle_client_gone("a")
            assert (await extension.hear("tabs.close"))["params"] == {"tabId": 4}
        with pytest.raises(CallError, match="several browsers"):
            await opener.open(URL, browser=None, client="b")
    assert opened == [BLOCK + 3, BLOCK + 4]


async def test_a_browser_that_is_gone_opens_no_tab_while_another_is_there() -> None:
    work = a_bridge()
    work.tabs.grace = 0.0
    home = Bridge(secret="t" * 64, origin="chrome-extension://x", name="home", number=1)
    opener = OwnTabs(pages_of(work, home))
    opened: list[int] = []
    async with (
        running(work) as connect_work,
        running(home) as connect,
        anyio.create_task_group() as tasks,
    ):
        closed, extension = await greeted(connect_work), await greeted(connect)
        closed.hang_up()

        async def open_one() -> None:
            opened.append(await opener.open(URL, browser=None, client="a"))

        with anyio.fail_after(PATIENT):
            while work.connected:
                await work.changed().wait()
            tasks.start_soon(open_one)
            asked = await extension.hear("tabs.open")
            extension.say({"id": asked["id"], "result": {"tabId": 3}})
            while not opened:
                await anyio.lowlevel.checkpoint()
        work.tabs.owners.add(5, "b")
        with pytest.raises(CallError, match="not connected"):
            await opener.open(URL, browser=None, client="b")
    assert opened == [BLOCK + 3]


def test_a_page_is_served_if_a_plugin_matches_and_does_not_exclude_it() -> None:
    bridge = a_bridge()
    bridge.plugin_sync.plugins = [CHAT]
    assert bridge.plugin_sync.serving(URL) == ["chat"]
    assert bridge.plugin_sync.serving("https://chat.example/out/x") == []
    assert bridge.plugin_sync.serving("https://mail.example/") == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_goes_is_reported(mode: str) -> None:
    gone: list[str] = []
    async with own_tabs() as own:
        server = create_mcp_server(own.tool_calls, on_client_gone=gone.append)
        async with Client(server, mode=mode) as one:
            names = [tool.name for tool in (await one.list_tools()).tools]
            assert not gone
        with anyio.fail_after(PATIENT):
            while not gone:
                await anyio.lowlevel.checkpoint()
    assert names == ["chat_send", "tabs_close", "tabs_list", "tabs_open"]
    assert len({*gone}) == 1


@pytest.mark.parametrize("first", [[INITIALIZED], []])
async def test_a_client_that_ends_its_session_is_reported_once_initialized_or_not(
    first: list[Json],
) -> None:
    gone: list[str] = []
    served = Served()
    served.server = create_mcp_server(served.tool_calls, on_client_gone=gone.append)
    headers = {"accept": "application/json, text/event-stream"}
    a_call = {"id": 2, "method": "tools/call", "params": {"name": "chat_send"}}
    async with served.over_http() as url, httpx2.AsyncClient(headers=headers) as http:
        begun = await http.post(url, json={"jsonrpc": "2.0", **INITIALIZE})
        session = http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        for message in (*first, a_call, {**a_call, "id": 3}):
            await http.post(url, json={"jsonrpc": "2.0", **message})
        assert not gone
        await http.delete(url)
        with anyio.fail_after(PATIENT):
            while not gone:
                await anyio.lowlevel.checkpoint()
        assert gone == [f"session {session}"]


async def test_a_call_that_names_an_own_tab_makes_it_the_one_that_is_used_next() -> None:
    async with own_tabs() as own:
        await own.open("a", new_document())
        newer = new_document(tabId=NEW + 1, documentId="e" * 32)
        own.bridge.tabs.owners.add(NEW + 1, "a")
        own.extension.say(tabs_changed(new_document(), newer, tabs=[NEW, NEW + 1]))

        async def used(**arguments: Any) -> Any:
            call = own.tool_calls.call
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(call, "chat_send", arguments, origin=origin("a")))
                document: Json = (await own.extension.hear("tool.dispatch"))["params"]
                tasks.cancel_scope.cancel()
            return document["documentId"]

        with anyio.fail_after(PATIENT):
            while len(own.bridge.tabs.documents) < 2:
                await own.bridge.changed().wait()
            assert await used() == "e" * 32
            assert await used(tabId=NEW) == "f" * 32
            assert await used() == "f" * 32
