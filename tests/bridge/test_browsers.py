"""Browsers with the same extension, loaded by hand, are distinguished by their ids."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.browsers import Browsers
from opentabs_py.core.browsers import BLOCK
from opentabs_py.core.protocol import PluginSpec
from tests.fakes import TAB, FakeSocket, a_bridge, a_document, hello

pytestmark = pytest.mark.anyio

SECRET = "s" * 64
PLUGIN = PluginSpec(
    name="chat", version="1", matches=[], exclude_matches=[], file="adapters/x.js", config={}
)


def join(name: str, index: int) -> Bridge:
    return Bridge(
        secret=SECRET, origin="chrome-extension://x", version="1", name=name, number=index
    )


@asynccontextmanager
async def connecting(browsers: Browsers) -> AsyncGenerator[Callable[[str], Awaitable[FakeSocket]]]:
    """Yield a function that connects the browser with an id, and waits until it is greeted."""
    serve = browsers.admit([f"opentabs.secret.{SECRET}"])
    assert serve is not None
    sockets: list[FakeSocket] = []
    async with anyio.create_task_group() as tasks:

        async def run(socket: FakeSocket) -> None:
            assert serve is not None
            await serve(socket)

        async def connect(browser_id: str) -> FakeSocket:
            socket = FakeSocket()
            sockets.append(socket)
            tasks.start_soon(run, socket)
            said = hello(a_document(), tabs=[TAB])
            said["params"]["browserId"] = browser_id
            socket.say(said)
            await socket.hear("result")
            return socket

        yield connect
        tasks.cancel_scope.cancel()
    for socket in sockets:
        socket.dispose()


async def test_each_browser_has_a_link_a_name_and_tabs_of_its_own() -> None:
    browsers = Browsers([a_bridge()], join=join)
    async with connecting(browsers) as connect:
        await connect("a1b2" + "0" * 28)
        await connect("c3d4" + "0" * 28)
        assert browsers.names == {0: "browser-a1b2", 1: "browser-c3d4"}
        assert [bridge.connected for bridge in browsers.bridges] == [True, True]
        assert [each.tab_id for each in browsers.tabs.documents] == [TAB, BLOCK + TAB]


async def test_a_browser_that_connects_again_is_the_same() -> None:
    browsers = Browsers([a_bridge()], join=join)
    async with connecting(browsers) as connect:
        await connect("a" * 32)
        first = await connect("b" * 32)
        await connect("b" * 32)
        with anyio.fail_after(5):
            await first.hear_the_end()
        assert first.closed is not None
        assert first.closed[1] == "replaced by a newer connection"
        assert len(browsers.bridges) == 2


async def test_a_browser_that_joins_later_receives_the_plugins() -> None:
    first = a_bridge()
    browsers = Browsers([first], join=join)
    await first.sync_plugins([PLUGIN])
    async with connecting(browsers) as connect:
        await connect("a" * 32)
        later = await connect("b" * 32)
        sync = await later.hear("plugins.sync")
        assert [each["name"] for each in sync["params"]["plugins"]] == ["chat"]


async def test_an_extension_with_another_secret_is_not_admitted() -> None:
    browsers = Browsers([a_bridge()], join=join)
    assert browsers.admit(["opentabs.secret.wrong"]) is None
