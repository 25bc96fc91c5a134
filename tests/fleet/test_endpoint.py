"""An endpoint's calls, with workers that are announced but not there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import anyio
import pytest

from opentabs_py.calling.clock import SystemClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.fleet.messages import Announcement, Busy, Returned, ToEndpoint, encode
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import ChainError
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.fleet.link import NatsLink
from tests.core.fleet.test_pool import worker

pytestmark = pytest.mark.anyio


class FakeLink:
    """A connection on which nobody responds."""

    version = "1"
    subjects = Subjects("test")
    connected = True

    def __init__(self) -> None:
        self.relinked: Listeners[[]] = Listeners("reconnects")

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> None: ...


class BusyAsks:
    """To each request, a worker answers that it is busy, and then announces that it is free."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self.asked = 0
        self._announce = announce

    async def ask(self, *_: Any) -> ToEndpoint:
        await anyio.lowlevel.checkpoint()
        self.asked += 1
        self._announce()
        return Busy()


class ReturningAsks:
    """A worker answers every request with null."""

    async def ask(self, *_: Any) -> ToEndpoint:
        return Returned()


class Raises(CallObserver):
    """An observer that raises, although it must not."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def on_reports(self, _reports: Sequence[ProgressReport], /) -> None:
        raise self._error


def a_fleet(quotas: Quotas) -> Fleet:
    link = cast("NatsLink", FakeLink())
    return Fleet(link, SystemClock(), labels={}, quotas=quotas, most=1000)


async def test_a_worker_that_says_it_is_free_and_is_not_keeps_no_call_for_ever() -> None:
    fleet = a_fleet(Quotas(waits=0.05))
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


@pytest.mark.parametrize("error", [KeyError("mine"), TimeoutError("mine")])
async def test_a_call_whose_observer_raises_while_it_waits_is_forgotten(error: Exception) -> None:
    fleet = a_fleet(Quotas())
    fleet._asks = cast("Any", ReturningAsks())
    full = worker("a", running={"f" * 16: 2})
    fleet.directory.handle(encode(full), anyio.current_time())
    call = partial(fleet.call, "chat_send", Wanted("chat"))
    with anyio.fail_after(5):
        with pytest.raises(type(error), match="mine"):
            await call(ToolCall({}, Limits(), observers=(Raises(error),)))
        assert (fleet.waiting, fleet.running) == (0, 0)
        fleet.directory.handle(encode(worker("a")), anyio.current_time())
        assert await call(ToolCall({}, Limits())) is None
    assert (fleet.waiting, fleet.running) == (0, 0)
