"""Extensions get access to new sites between calls, because they reload for it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.selection import Target
from opentabs_py.session.plugins.site_access import grant_access
from tests.fakes import FakeSocket, a_bridge, a_document, about_call, greeted, running
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

SITES = ["https://new.example/*"]
CALL = ToolCall({}, Limits())


class FakeExtension:
    """An extension on disk, and the sites that it has access to."""

    def __init__(self, *sites: str) -> None:
        self.sites = {*sites}

    def lacks(self, sites: Sequence[str]) -> bool:
        return not self.sites.issuperset(sites)

    def allow(self, sites: Sequence[str]) -> None:
        self.sites.update(sites)


async def answer(socket: FakeSocket) -> None:
    params = (await socket.hear("tool.dispatch"))["params"]
    socket.say(about_call("tool.result", params["callId"], seq=0, value=None))


async def test_a_running_call_ends_first_and_a_new_one_begins_afterwards() -> None:
    bridge, extension = a_bridge(), FakeExtension()
    staged: Any = [extension]
    call = partial(bridge.call, Target("chat"), "send", CALL)
    granted, may_end = anyio.Event(), anyio.Event()

    async def grant() -> None:
        async with grant_access(SITES, staged, [bridge], longest_call=PATIENT) as reloads:
            assert reloads
            granted.set()
            await may_end.wait()

    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(call)
        first = (await socket.hear("tool.dispatch"))["params"]["callId"]
        tasks.start_soon(grant)
        await until_all_wait()
        assert extension.lacks(SITES)
        socket.say(about_call("tool.result", first, seq=0, value=None))
        with anyio.fail_after(PATIENT):
            await granted.wait()
        assert not extension.lacks(SITES)
        tasks.start_soon(call)
        await until_all_wait()
        assert bridge.calls.running == 0
        may_end.set()
        await answer(socket)


async def test_a_call_that_does_not_end_is_not_waited_for_longer_than_a_call_may_take() -> None:
    bridge, extension = a_bridge(), FakeExtension()
    staged: Any = [extension]
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(bridge.call, Target("chat"), "send", CALL)
        await socket.hear("tool.dispatch")
        with anyio.fail_after(PATIENT):
            async with grant_access(SITES, staged, [bridge], longest_call=0.01):
                assert not extension.lacks(SITES)
        tasks.cancel_scope.cancel()


async def test_for_sites_that_every_extension_has_no_call_waits() -> None:
    bridge = a_bridge()
    staged: Any = [FakeExtension(*SITES)]
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        async with grant_access(SITES, staged, [bridge], longest_call=PATIENT) as reloads:
            assert not reloads
            tasks.start_soon(bridge.call, Target("chat"), "send", CALL)
            await answer(socket)
