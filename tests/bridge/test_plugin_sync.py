"""The list of plugins that an extension has, and their problems."""

import anyio
import pytest

from tests.bridge.bridged import a_spec
from tests.fakes import TAB, FakeSocket, a_bridge, greeted, hello, running
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


async def test_a_new_list_of_plugins_is_waited_for_until_it_is_in_the_pages() -> None:
    bridge = a_bridge()
    order: list[str] = []
    async with running(bridge) as connect:
        socket = await greeted(connect)
        hello_sync = await socket.hear("plugins.sync")

        async def sync() -> None:
            await bridge.sync_plugins([a_spec("chat")])
            order.append("synced")

        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sync)
                asked = await socket.hear("plugins.sync")
                assert [each["name"] for each in asked["params"]["plugins"]] == ["chat"]
                # The response about the older list says nothing about this one.
                problem = {"plugin": "chat", "tabId": 0, "message": "no"}
                result = {"injected": 0, "problems": [problem]}
                socket.say({"id": hello_sync["id"], "result": result})
                await until_all_wait()
                assert not bridge.plugin_sync.problems
                order.append("answered")
                socket.say({"id": asked["id"], "result": {"injected": 1, "problems": []}})
    assert order == ["answered", "synced"]


async def test_a_new_list_of_plugins_does_not_wait_for_a_link_that_is_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.plugin_sync.SYNC_WITHIN", PATIENT)
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(bridge.sync_plugins, [a_spec("chat")])
                await socket.hear("plugins.sync")
                socket.hang_up()
        assert [each.name for each in bridge.plugin_sync.plugins] == ["chat"]
        assert not caplog.records
        again = await greeted(connect)
        asked = await again.hear("plugins.sync")
        assert [each["name"] for each in asked["params"]["plugins"]] == ["chat"]


async def test_a_list_that_reloads_the_extension_is_waited_for_until_it_is_back_with_it() -> None:
    bridge = a_bridge()
    order: list[str] = []
    injected = {"injected": 1, "problems": []}

    async def sync() -> None:
        await bridge.sync_plugins([a_spec("chat")], reloads=True)
        order.append("synced")

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        tasks.start_soon(sync)
        asked = await socket.hear("plugins.sync")
        socket.say({"id": asked["id"], "result": injected})
        await until_all_wait()
        order.append("reloads")
        socket.hang_up()
        again = connect()
        said = hello()
        said["params"]["bootId"] = "another life"
        again.say(said)
        asked = await again.hear("plugins.sync")
        await until_all_wait()
        order.append("is back")
        again.say({"id": asked["id"], "result": injected})
    assert order == ["reloads", "is back", "synced"]


async def test_a_new_list_of_plugins_does_not_wait_for_ever_for_a_page_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.plugin_sync.SYNC_WITHIN", 0.01)
    bridge = a_bridge()
    async with running(bridge) as connect:
        await greeted(connect)
        with anyio.fail_after(PATIENT):
            await bridge.sync_plugins([a_spec("chat")])


async def test_a_plugins_problem_is_logged_once_and_again_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge = a_bridge()

    async def sync(socket: FakeSocket, message: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge.sync_plugins, [a_spec("chat")])
            asked = await socket.hear("plugins.sync")
            problem = {"plugin": "chat", "tabId": 0, "message": message}
            socket.say({"id": asked["id"], "result": {"injected": 0, "problems": [problem]}})

    async with running(bridge) as connect:
        socket = await greeted(connect)
        await socket.hear("plugins.sync")
        with anyio.fail_after(PATIENT):
            for message in ("no", "no", "not so"):
                await sync(socket, message)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["Plugin chat: no", "Plugin chat: not so"]


async def test_waiting_for_the_extension_ends_when_it_has_all_plugins() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        sync = await socket.hear("plugins.sync")
        problem = {"plugin": "chat", "tabId": TAB, "message": "no"}
        socket.say({"id": sync["id"], "result": {"injected": 0, "problems": [problem]}})
        with anyio.fail_after(PATIENT):
            await bridge.wait_connected()
        assert [problem.plugin for problem in bridge.plugin_sync.problems] == ["chat"]
