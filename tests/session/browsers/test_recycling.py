"""When a browser is due for replacement, and what happens to calls meanwhile."""

from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import ConfigError
from opentabs_py.session.browsers.recycling import RecycleAfter, Recycling
from tests.fakes import TAB, a_bridge, a_document, about_call, greeted, running
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentabs_py.session.browsers.recycling.LOOK_EVERY", 0.01)
    monkeypatch.setattr("opentabs_py.session.browsers.recycling.MEASURE_EVERY", 0.0)


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ([], RecycleAfter()),
        (["1000"], RecycleAfter(calls=1000)),
        (["1500MB"], RecycleAfter(memory=1_500_000_000)),
        (["2gb", "10"], RecycleAfter(calls=10, memory=2_000_000_000)),
    ],
)
def test_calls_and_memory_are_distinguished_by_the_unit(
    given: list[str], after: RecycleAfter
) -> None:
    assert RecycleAfter.read(given) == after


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "10 MB", "10kB", "1.5GB"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="such as 1500MB"):
        RecycleAfter.read([text])


class FakeBrowser:
    """A browser that closes and comes back when the test requests it."""

    name = "one"

    def __init__(self, bridge: Bridge, launch: Any = None) -> None:
        self.bridge = bridge
        self.launch = launch
        self.closing = anyio.Event()
        self.closed = anyio.Event()
        self.back = anyio.Event()

    async def close(self) -> None:
        self.closing.set()
        await self.closed.wait()

    async def wait_back(self) -> None:
        await self.back.wait()


async def test_a_call_that_begins_while_its_only_browser_closes_runs_in_the_next_one() -> None:
    bridge = a_bridge()
    browser = FakeBrowser(bridge)
    pages = Pages([bridge], clock=bridge.clock, interchangeable=True)
    pages.ended_calls[0] = 1
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        dying = await greeted(connect, a_document())
        tasks.start_soon(Recycling([browser], pages, RecycleAfter(calls=1)).run)
        with anyio.fail_after(PATIENT):
            await browser.closing.wait()
            tasks.start_soon(pages.call, Target("chat"), "send", ToolCall({}, Limits()))
            await until_all_wait()
            dying.hang_up()
            bridge.handle_browser_gone()
            browser.closed.set()
            await until_all_wait()
            bridge.handle_browser()
            extension = await greeted(connect, a_document())
            browser.back.set()
            call = (await extension.hear("tool.dispatch"))["params"]["callId"]
            extension.say(about_call("tool.result", call, seq=0, value=None))
            while pages.running_calls != [0]:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert pages.ended_calls == [1]  # since it came back


@dataclass
class FakeLaunch:
    """A launched browser that needs this much memory."""

    needs: int

    async def memory(self) -> int:
        await anyio.lowlevel.checkpoint()
        return self.needs


async def test_a_browser_that_needs_too_much_memory_is_replaced() -> None:
    bridges = [a_bridge(), a_bridge(), a_bridge()]
    launches = [FakeLaunch(10**9), FakeLaunch(2 * 10**9), None]
    browsers = [FakeBrowser(*each) for each in zip(bridges, launches, strict=True)]
    pages = Pages(bridges, clock=bridges[0].clock, interchangeable=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Recycling(browsers, pages, RecycleAfter(memory=2 * 10**9)).run)
        with anyio.fail_after(PATIENT):
            await browsers[1].closing.wait()
        assert pages.avoided == {1}
        tasks.cancel_scope.cancel()


async def test_a_limit_below_what_a_new_browser_needs_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bridge = a_bridge()
    browser = FakeBrowser(bridge, FakeLaunch(300_000_000))
    browser.closed.set()
    browser.back.set()
    pages = Pages([bridge], clock=bridge.clock, interchangeable=True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Recycling([browser], pages, RecycleAfter(memory=200_000_000)).run)
        with anyio.fail_after(PATIENT):
            while "Set a higher limit" not in caplog.text:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert "The browser one, just replaced, uses 300 MB already" in caplog.text
    assert "--recycle-after 200MB" in caplog.text


async def test_a_tab_that_was_opened_without_a_session_keeps_no_browser() -> None:
    bridge = a_bridge()
    browser = FakeBrowser(bridge)
    pages = Pages([bridge], clock=bridge.clock, interchangeable=True)
    pages.ended_calls[0] = 1
    pages.tabs.owners.add(TAB, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Recycling([browser], pages, RecycleAfter(calls=1)).run)
        with anyio.fail_after(PATIENT):
            await browser.closing.wait()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("held_by", ["call", "tab"])
async def test_a_browser_is_not_replaced_while_a_call_or_a_clients_own_tab_needs_it(
    held_by: str,
) -> None:
    bridge = a_bridge()
    browser = FakeBrowser(bridge)
    pages = Pages([bridge], clock=bridge.clock, interchangeable=True)
    pages.ended_calls[0] = 1
    if held_by == "call":
        pages.running_calls[0] = 1
    else:
        pages.tabs.owners.add(TAB, "a client")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Recycling([browser], pages, RecycleAfter(calls=1)).run)
        with anyio.fail_after(PATIENT):
            while not pages.avoided:
                await anyio.lowlevel.checkpoint()
            await until_all_wait()
            assert not browser.closing.is_set()
            pages.running_calls[0] = 0
            pages.tabs.owners.remove(TAB)
            await browser.closing.wait()
        tasks.cancel_scope.cancel()
