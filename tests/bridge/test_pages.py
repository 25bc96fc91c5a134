"""Browsers with the same extension, loaded by hand, are distinguished by their ids."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import SystemClock
from opentabs_py.core import failures
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs.numbers import numbers_of
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import ChainError
from tests.fakes import (
    TAB,
    Connect,
    FakeSocket,
    a_bridge,
    a_document,
    about_call,
    greeted,
    hello,
    running,
    state,
)
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

CALL = ToolCall({}, Limits())
SECRET = "s" * 64
PLUGIN = PluginSpec(
    name="chat", version="1", matches=[], exclude_matches=[], file="adapters/x.js", config={}
)


def join(name: str, index: int) -> Bridge:
    return Bridge(secret=SECRET, origin="chrome-extension://x", name=name, number=index)


@asynccontextmanager
async def connecting(browsers: Pages) -> AsyncGenerator[Callable[[str], Awaitable[FakeSocket]]]:
    """Yield a function that connects the browser with an id, and waits for the bridge's hello."""
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
    browsers = Pages([a_bridge()], clock=SystemClock(), join=join)
    async with connecting(browsers) as connect:
        await connect("a1b2" + "0" * 28)
        await connect("c3d4" + "0" * 28)
        assert browsers.names == {0: "browser-a1b2", 1: "browser-c3d4"}
        assert [bridge.connected for bridge in browsers.bridges] == [True, True]
        assert [each.tab_id for each in browsers.tabs.documents] == [TAB, numbers_of(1)[TAB]]


async def test_a_browser_that_connects_again_is_the_same() -> None:
    browsers = Pages([a_bridge()], clock=SystemClock(), join=join)
    async with connecting(browsers) as connect:
        await connect("a" * 32)
        first = await connect("b" * 32)
        await connect("b" * 32)
        with anyio.fail_after(PATIENT):
            await first.hear_the_end()
        assert first.closed is not None
        assert first.closed[1] == "replaced by a newer connection"
        assert len(browsers.bridges) == 2


async def test_a_browser_that_joins_later_receives_the_plugins() -> None:
    first = a_bridge()
    browsers = Pages([first], clock=SystemClock(), join=join)
    await first.sync_plugins([PLUGIN])
    async with connecting(browsers) as connect:
        await connect("a" * 32)
        later = await connect("b" * 32)
        sync = await later.hear("plugins.sync")
        assert [each["name"] for each in sync["params"]["plugins"]] == ["chat"]


async def test_an_extension_with_another_secret_is_not_admitted() -> None:
    browsers = Pages([a_bridge()], clock=SystemClock(), join=join)
    assert browsers.admit(["opentabs.secret.wrong"]) is None


# --- which of several browsers takes a call ---


@dataclass
class Two:
    """Two browsers, in each of which a page of the plugin is in front."""

    pages: Pages
    connects: list[Connect]
    extensions: list[FakeSocket]

    async def call_there(self, index: int, **target: Any) -> None:
        """Make a call, which the browser of this index has to answer."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.pages.call, Target("chat", **target), "send", CALL)
            params = (await self.extensions[index].hear("tool.dispatch"))["params"]
            result = about_call("tool.result", params["callId"], seq=0, value=None)
            self.extensions[index].say(result)


@asynccontextmanager
async def two_browsers(*, interchangeable: bool = False) -> AsyncGenerator[Two]:
    bridges = [a_bridge(), join("b", 1)]
    async with running(bridges[0]) as one, running(bridges[1]) as other:
        extensions = [await greeted(connect, a_document()) for connect in (one, other)]
        pages = Pages(bridges, clock=SystemClock(), interchangeable=interchangeable)
        with anyio.fail_after(PATIENT):
            yield Two(pages, [one, other], extensions)


SECOND = numbers_of(1)[TAB]


async def test_a_client_stays_in_the_browser_that_it_used_last_and_others_do_not_follow() -> None:
    async with two_browsers() as two:
        await two.call_there(1, client="a", tab_id=SECOND)
        await two.call_there(1, client="a")
        foreseen = two.pages.find_document(Target("chat", client="a"))
        assert foreseen is not None
        assert foreseen.tab_id == SECOND
        assert (two.pages.preferred_browser("a"), two.pages.preferred_browser("b")) == (1, None)
        with pytest.raises(ChainError, match="in 2 browsers"):
            await two.pages.call(Target("chat", client="b"), "send", CALL)


async def test_clients_without_a_session_do_not_follow_each_other() -> None:
    async with two_browsers() as two:
        await two.call_there(1, tab_id=SECOND)
        with pytest.raises(ChainError, match="in 2 browsers"):
            await two.pages.call(Target("chat"), "send", CALL)


async def test_of_too_many_clients_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentabs_py.bridge.pages.REMEMBERED", 1)
    async with two_browsers() as two:
        for client in ("a", "b"):
            await two.call_there(1, client=client, tab_id=SECOND)
        assert (two.pages.preferred_browser("a"), two.pages.preferred_browser("b")) == (None, 1)


async def test_a_client_waits_for_its_browser_while_that_reconnects() -> None:
    async with two_browsers() as two, anyio.create_task_group() as tasks:
        await two.call_there(1, client="a", tab_id=SECOND)
        two.extensions[1].hang_up()
        while two.pages.bridges[1].connected:
            await two.pages.changed().wait()
        tasks.start_soon(two.pages.call, Target("chat", client="a"), "send", CALL)
        await until_all_wait()
        again = await greeted(two.connects[1], a_document())
        params = (await again.hear("tool.dispatch"))["params"]
        again.say(about_call("tool.result", params["callId"], seq=0, value=None))


async def test_while_a_browser_reconnects_another_is_not_taken_for_the_only_one() -> None:
    async with two_browsers() as two, anyio.create_task_group() as tasks:
        errors: list[ChainError] = []

        async def call() -> None:
            with pytest.raises(ChainError, match="in 2 browsers") as caught:
                await two.pages.call(Target("chat", client="a"), "send", CALL)
            errors.append(caught.value)

        two.extensions[1].hang_up()
        while two.pages.bridges[1].connected:
            await two.pages.changed().wait()
        tasks.start_soon(call)
        await until_all_wait()
        assert not errors
        await greeted(two.connects[1], a_document())
    assert len(errors) == 1


async def test_of_equal_browsers_the_one_with_the_fewest_calls_takes_the_next() -> None:
    async with two_browsers(interchangeable=True) as two:
        async with anyio.create_task_group() as tasks:
            answers: list[tuple[FakeSocket, str]] = []
            for extension in two.extensions:
                tasks.start_soon(two.pages.call, Target("chat", client="a"), "send", CALL)
                params = (await extension.hear("tool.dispatch"))["params"]
                answers.append((extension, params["callId"]))
            for extension, call_id in answers:
                extension.say(about_call("tool.result", call_id, seq=0, value=None))
        assert (two.pages.running_calls, two.pages.ended_calls) == ([0, 0], [1, 1])


async def test_of_equal_browsers_one_that_rests_takes_only_what_no_other_can() -> None:
    async with two_browsers(interchangeable=True) as two:
        two.pages.avoided.add(0)
        for _ in range(2):
            await two.call_there(1)
        await two.call_there(0, tab_id=TAB)


# --- a browser that was closed and cannot be started again ---


@dataclass
class Pair:
    """Two browsers: one with a page of the plugin, and one that does not start."""

    browsers: Pages
    extension: FakeSocket
    closed: Bridge
    launches: int = 0

    async def call(self, plugin: str = "chat", **target: Any) -> object:
        target = {"client": "a", **target}
        return await self.browsers.call(Target(plugin, **target), "send", CALL)

    async def answer_call(self) -> None:
        params = (await self.extension.hear("tool.dispatch"))["params"]
        self.extension.say(about_call("tool.result", params["callId"], seq=0, value="done"))

    async def answer_query(self) -> None:
        asked = await self.extension.hear("tabs.query")
        self.extension.say({"id": asked["id"], "result": state(a_document())})


@asynccontextmanager
async def a_pair(*, interchangeable: bool = False) -> AsyncGenerator[Pair]:
    first, closed = a_bridge(), join("b", 1)
    async with running(first) as connect:
        extension = await greeted(connect, a_document())
        sync = await extension.hear("plugins.sync")
        extension.say({"id": sync["id"], "result": {"injected": 0, "problems": []}})
        pages = Pages([first, closed], clock=SystemClock(), interchangeable=interchangeable)
        pair = Pair(pages, extension, closed)

        async def launch() -> None:
            pair.launches += 1
            raise failures.no_browser("Another browser uses the profile.")

        closed.handle_browser_gone()
        closed.relaunch_browser = launch
        with anyio.fail_after(PATIENT):
            yield pair


@pytest.mark.parametrize("tab_id", [None, TAB])
async def test_a_browser_that_cannot_start_is_not_started_for_a_call_that_another_takes(
    tab_id: int | None,
) -> None:
    async with a_pair() as pair, anyio.create_task_group() as tasks:
        tasks.start_soon(pair.answer_call)
        assert await pair.call(tab_id=tab_id) == "done"
    assert pair.launches == 0


async def test_a_call_that_no_running_browser_can_take_fails_for_lack_of_a_tab() -> None:
    async with a_pair() as pair, anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(pair.answer_query)
        with pytest.raises(ChainError, match="No open tab") as caught:
            await pair.call("mail")
    assert caught.value.detail.code == "TAB_NOT_FOUND"
    assert pair.launches == 1


async def test_a_call_that_names_a_tab_of_the_browser_that_cannot_start_says_why() -> None:
    async with a_pair() as pair, anyio.create_task_group() as tasks:
        tasks.start_soon(pair.answer_query)
        with pytest.raises(ChainError, match="Another browser uses the profile"):
            await pair.call(tab_id=numbers_of(1)[TAB])
    assert pair.launches == 1


async def test_a_client_is_not_moved_from_a_browser_that_cannot_start_to_another_persons() -> None:
    async with a_pair() as pair, running(pair.closed) as connect:
        launch, pair.closed.relaunch_browser = pair.closed.relaunch_browser, None
        pair.closed.handle_browser()
        theirs = await greeted(connect, a_document())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(pair.call, tab_id=numbers_of(1)[TAB]))
            params = (await theirs.hear("tool.dispatch"))["params"]
            theirs.say(about_call("tool.result", params["callId"], seq=0, value=None))
        theirs.hang_up()
        pair.closed.handle_browser_gone()
        pair.closed.relaunch_browser = launch
        with pytest.raises(ChainError, match="Another browser uses the profile"):
            await pair.call()


@pytest.mark.parametrize("interchangeable", [False, True])
async def test_if_no_browser_starts_the_call_says_why(interchangeable: bool) -> None:
    async with a_pair(interchangeable=interchangeable) as pair:
        pair.extension.hang_up()
        first = pair.browsers.bridges[0]
        while first.connected:
            await first.changed().wait()
        first.handle_browser_gone()
        first.relaunch_browser = pair.closed.relaunch_browser
        with pytest.raises(ChainError, match="Another browser uses the profile"):
            await pair.call()
    assert pair.launches == 2
