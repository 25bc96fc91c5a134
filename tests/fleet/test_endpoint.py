"""An endpoint's calls, with workers that are announced but not there."""

from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from opentabs_py.calling.clock import SystemClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.fleet.messages import Announcement, Busy, ToEndpoint, encode
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.core.limits import Limits
from opentabs_py.errors import ChainError
from opentabs_py.fleet.endpoint import Fleet, Quotas
from opentabs_py.fleet.link import NatsLink
from tests.core.fleet.test_pool import worker

pytestmark = pytest.mark.anyio


class FakeLink:
    """A connection on which nobody answers."""

    version = "1"
    subjects = Subjects("test")
    connected = True

    def __init__(self) -> None:
        self.relinked: Listeners[[]] = Listeners("reconnects")

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> None: ...


class BusyAsks:
    """Whatever is asked, the worker is busy, and then says that it is free."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self.asked = 0
        self._announce = announce

    async def ask(self, *_: Any) -> ToEndpoint:
        await anyio.lowlevel.checkpoint()
        self.asked += 1
        self._announce()
        return Busy()


async def test_a_worker_that_says_it_is_free_and_is_not_keeps_no_call_for_ever() -> None:
    quotas = Quotas(waits=0.05)
    fleet = Fleet(cast("NatsLink", FakeLink()), SystemClock(), labels={}, quotas=quotas, most=1000)
    calls = 0

    def announce() -> None:
        nonlocal calls
        calls += 1
        free: Announcement = worker("a", calls=calls)
        fleet.directory.handle(encode(free), anyio.current_time())

    announce()
    asks = BusyAsks(announce)
    fleet._asks = cast("Any", asks)
    [owner] = worker("a").served
    with anyio.fail_after(5), pytest.raises(ChainError) as caught:
        await fleet.call("chat_send", Wanted(owner), ToolCall({}, Limits()))
    assert caught.value.detail.code == "FLEET_BUSY"
    assert asks.asked > 1
    assert (fleet.waiting, fleet.running) == (0, 0)
