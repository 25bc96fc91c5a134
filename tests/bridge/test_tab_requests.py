"""Requests to extensions about tabs, and their responses."""

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.core.protocol import TabTarget
from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.errors import ChainError
from opentabs_py.session.tools.hands import find_targets
from tests.fakes import TAB, FakeSocket, Json, a_bridge, a_document, greeted, pages_of, running
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

KNOWN: Json = {"tabId": 7, "targetId": "A1", "active": True, "lastUsed": 5.0}
NOT_ALLOWED: Json = {"code": -32603, "message": "no permission"}


async def answer(extension: FakeSocket, **said: Json) -> None:
    asked = await extension.hear("tabs.targets")
    extension.say({"id": asked["id"], **said})


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({"result": {"tabs": [KNOWN]}}, ["A1"]),
        ({"result": {"tabs": [{**KNOWN, "active": "yes"}]}}, []),
        ({"error": NOT_ALLOWED}, []),
    ],
)
async def test_the_extension_is_asked_and_may_not_know(said: Json, known: list[str]) -> None:
    bridge = a_bridge()
    with anyio.fail_after(PATIENT):
        async with running(bridge) as connect, anyio.create_task_group() as tasks:
            extension = await greeted(connect)
            tasks.start_soon(lambda: answer(extension, **said))
            assert [each.target_id for each in await bridge.tab_requests.targets()] == known


async def test_tabs_are_numbered_among_those_of_all_browsers() -> None:
    first = a_bridge()
    second = Bridge(secret="t" * 64, origin="chrome-extension://x", number=1)
    with anyio.fail_after(PATIENT):
        async with (
            running(first),
            running(second) as connect,
            anyio.create_task_group() as tasks,
        ):
            extension = await greeted(connect)
            tasks.start_soon(lambda: answer(extension, result={"tabs": [KNOWN]}))
            found = await find_targets([first, second])  # the first is not connected
    assert found == [TabTarget(tab_id=BLOCK + 7, target_id="A1", active=True, last_used=5.0)]


async def test_without_any_extension_the_error_says_so() -> None:
    with pytest.raises(ChainError) as caught:
        await find_targets([a_bridge(), a_bridge()])
    assert caught.value.detail.code == "EXTENSION_NOT_CONNECTED"


async def test_nothing_is_asked_of_an_extension_before_it_has_its_plugins() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        extension = await greeted(connect)
        sync = await extension.hear("plugins.sync")
        tasks.start_soon(bridge.tab_requests.query, "chat")
        await until_all_wait()
        extension.say({"method": "ping", "params": {"time": 1}})
        await extension.hear("pong")
        assert "tabs.query" not in [message.get("method") for message in extension.heard]
        extension.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        query = await extension.hear("tabs.query")
        assert query["params"] == {"plugin": "chat"}
        tasks.cancel_scope.cancel()


async def test_a_tab_is_opened_once_an_extension_that_has_just_disconnected_is_back() -> None:
    bridge = a_bridge()
    opened: list[int | None] = []

    async def open_tab() -> None:
        opened.append(await bridge.tab_requests.open("https://chat.example/"))

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        (await greeted(connect)).hang_up()
        while bridge.connected:
            await bridge.changed().wait()
        tasks.start_soon(open_tab)
        await until_all_wait()
        extension = await greeted(connect)
        asked = await extension.hear("tabs.open")
        extension.say({"id": asked["id"], "result": {"tabId": TAB}})
    assert opened == [TAB]


async def test_an_extension_that_does_not_come_back_is_not_waited_for_longer() -> None:
    bridge = a_bridge()
    bridge.tabs.grace = 0.01
    pages = pages_of(bridge)
    async with running(bridge) as connect:
        (await greeted(connect)).hang_up()
        while bridge.connected:
            await bridge.changed().wait()
        for wait in (pages.wait_reconnected, bridge.wait_reconnected):
            with pytest.raises(ChainError), anyio.fail_after(PATIENT):
                await wait()


async def test_each_request_gets_its_own_answer_in_whatever_order_they_come() -> None:
    bridge = a_bridge()
    found: dict[str, str] = {}

    async def ask(name: str) -> None:
        (only,) = await bridge.tab_requests.targets()
        found[name] = only.target_id

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        extension = await greeted(connect)
        tasks.start_soon(ask, "first")
        first = await extension.hear("tabs.targets")
        tasks.start_soon(ask, "second")
        second = await extension.hear("tabs.targets")
        for asked, target in ((second, "B2"), (first, "A1")):
            extension.say({"id": asked["id"], "result": {"tabs": [{**KNOWN, "targetId": target}]}})
    assert found == {"first": "A1", "second": "B2"}


async def test_an_answer_that_nobody_waits_for_any_more_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.tab_requests.QUERY_WITHIN", 0.01)
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        sync = await socket.hear("plugins.sync")
        socket.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        with anyio.fail_after(PATIENT):
            await bridge.tab_requests.query("chat")
        query = await socket.hear("tabs.query")
        socket.say({"id": query["id"], "result": {"tabIds": [TAB], "documents": [a_document()]}})
        socket.say({"method": "ping", "params": {"time": 1}})
        await socket.hear("pong")
        assert list(bridge.tabs.documents) == []
