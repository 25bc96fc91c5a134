"""How extensions are received: the hello, refusals, and connections that replace others."""

import anyio
import pytest

from opentabs_py.core.protocol import PROTOCOL_VERSION
from tests.bridge.bridged import CALL, RESULT, a_spec, call_and_answer
from tests.fakes import (
    TAB,
    FakeSocket,
    Json,
    a_bridge,
    a_document,
    greeted,
    hello,
    running,
    tabs_changed,
)
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


async def test_a_hello_is_answered_with_the_limits_and_followed_by_the_plugins() -> None:
    bridge = a_bridge()
    await bridge.sync_plugins([a_spec("chat")])
    async with running(bridge) as connect:
        socket = connect()
        socket.say(hello())
        answer = await socket.hear("result")
        assert answer["id"] == 1
        assert answer["result"]["messageLimit"] == 64 * 1024 * 1024
        sync = await socket.hear("plugins.sync")
        assert [plugin["name"] for plugin in sync["params"]["plugins"]] == ["chat"]
        assert bridge.connected


async def test_nothing_is_accepted_before_the_hello() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = connect()
        socket.say(tabs_changed(a_document()))
        refusal = await socket.hear("error")
        assert refusal["error"]["message"] == "send hello first"
        socket.say(hello())
        await socket.hear("result")
        assert bridge.tabs.serving("chat") == []


async def test_a_connection_that_says_no_hello_is_closed_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.reception.HELLO_WITHIN", 0.01)
    async with running(a_bridge()) as connect:
        socket = connect()
        await socket.hear_the_end()
        assert socket.closed == (4003, "no hello within 0.01 s")


@pytest.mark.parametrize(
    "change", [{}, {"added": True}, {"browserId": None}, {"documents": [{"of": "another shape"}]}]
)
async def test_an_extension_of_another_version_is_closed_with_advice(change: Json) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = connect()
        said = hello(version=99)
        said["params"] |= change
        socket.say(said)
        await socket.hear_the_end()
        assert socket.closed is not None
        code, reason = socket.closed
        assert code == 4001
        assert f"protocol 99, wanted {PROTOCOL_VERSION}" in reason
        assert "update the extension" in reason
        assert not bridge.connected


@pytest.mark.parametrize("name", ["added", "ä" * 100])
async def test_a_malformed_hello_is_closed_at_once_with_its_mistake(name: str) -> None:
    async with running(a_bridge()) as connect:
        socket = connect()
        said = hello()
        said["params"][name] = 1
        socket.say(said)
        await socket.hear_the_end()
        assert [message["error"]["data"]["path"] for message in socket.heard] == [f"params.{name}"]
        assert socket.closed is not None
        code, reason = socket.closed
        assert code == 4005
        assert "update the extension and reload it (params." in reason
        assert len(reason.encode()) <= 123


async def test_a_connection_that_is_refused_ends_once_the_reason_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.bridge.connection.CLOSE_WITHIN", PATIENT)
    socket = FakeSocket()
    socket.say(hello(version=99))
    with anyio.fail_after(PATIENT):
        await a_bridge().serve(socket)
    socket.dispose()
    assert socket.closed is not None


async def test_a_newer_connection_replaces_the_older_one_with_a_reason() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = await greeted(connect, a_document())
        await older.hear_the_end()
        assert older.closed == (4002, "replaced by a newer connection")
        value = await call_and_answer(bridge, newer, CALL, RESULT)
        assert value == {"sent": True}


async def test_messages_of_a_replaced_connection_are_ignored() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = connect()
        newer.say(hello(a_document()))
        older.say(tabs_changed())
        older.say(tabs_changed())
        await newer.hear("result")
        await older.hear_the_end()
        assert [document.tab_id for document in bridge.tabs.serving("chat")] == [TAB]


async def test_the_end_of_a_replaced_connection_leaves_the_newer_one_up() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        older = await greeted(connect, a_document())
        newer = await greeted(connect, a_document())
        await older.hear_the_end()
        older.hang_up()
        assert await call_and_answer(bridge, newer, CALL, RESULT) == {"sent": True}


async def test_a_second_hello_of_another_version_is_refused_and_the_connection_continues() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.say(hello(version=99))
        refusal = await socket.hear("error")
        assert "already sent" in refusal["error"]["message"]
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


async def test_a_second_hello_is_refused_and_the_connection_continues() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect, a_document())
        socket.say(hello())
        refusal = await socket.hear("error")
        assert (refusal["id"], "already sent" in refusal["error"]["message"]) == (1, True)
        assert await call_and_answer(bridge, socket, CALL, RESULT) == {"sent": True}


@pytest.mark.parametrize(
    ("offered", "accepted"),
    [
        (["opentabs", "opentabs.secret." + "s" * 64], True),
        (["opentabs", "opentabs.secret." + "s" * 63], False),
        (["opentabs", "opentabs.secret."], False),
        (["opentabs"], False),
        (["s" * 64], False),
        (["opentabs.secret.ünsafe"], False),
        ([], False),
    ],
)
def test_only_a_connection_with_the_secret_is_accepted(offered: list[str], accepted: bool) -> None:
    assert a_bridge().accepts(offered) is accepted
