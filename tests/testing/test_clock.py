"""The clock of the server's timers, controlled by a test."""

from datetime import timedelta
from typing import Any

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import CallTimeoutError
from opentabs_py.testing.clock import StoppableClock, in_seconds
from tests.fakes import a_document, about_call, greeted, running
from tests.waiting import PATIENT

CALL = ToolCall({}, Limits(idle=30, ceiling=300))
REPORTS: list[dict[str, Any]] = [{"seq": 0, "progress": 1}]


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        (29.9, 29.9),
        (0, 0),
        ("5m", 300),
        ("30s", 30),
        ("500ms", 0.5),
        ("1h30m", 5400),
        (" 1.5 s ", 1.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_a_duration_is_written_in_any_of_these_ways(duration: Any, seconds: float) -> None:
    assert in_seconds(duration) == seconds


@pytest.mark.parametrize("duration", ["", "5", "5 minutes", "m5", -1, "-5m", float("inf"), "5mx"])
def test_an_invalid_duration_is_refused(duration: Any) -> None:
    with pytest.raises(ValueError, match=r"duration|forward"):
        in_seconds(duration)


def a_stopped_bridge() -> tuple[Bridge, StoppableClock]:
    clock = StoppableClock()
    return Bridge(secret="s" * 64, origin="chrome-extension://x", clock=clock), clock


class Caller:
    """A call in the background; its outcome is available as soon as it ends."""

    ended: str | None = None
    ended_at = 0.0

    async def __call__(self, bridge: Bridge) -> None:
        try:
            await bridge.call(Target("chat"), "send", CALL)
        except CallTimeoutError as error:
            self.ended = error.timer
            self.ended_at = bridge.clock.now()


@pytest.mark.anyio
async def test_a_call_has_ended_when_the_clock_has_been_advanced_past_its_timer() -> None:
    bridge, clock = a_stopped_bridge()
    caller = Caller()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        clock.stop()
        tasks.start_soon(caller, bridge)
        await socket.hear("tool.dispatch")

        with anyio.fail_after(PATIENT):
            await clock.advance(29.9, bridge.calls.settle)
            assert caller.ended is None
            await clock.advance(0.1, bridge.calls.settle)

        assert caller.ended == "idle"


@pytest.mark.anyio
async def test_a_jump_over_a_timer_ends_its_call_when_its_time_was_up_and_not_later() -> None:
    bridge, clock = a_stopped_bridge()
    caller = Caller()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        clock.stop()
        began = clock.now()
        tasks.start_soon(caller, bridge)
        await socket.hear("tool.dispatch")

        with anyio.fail_after(PATIENT):
            await clock.advance(3600, bridge.calls.settle)

    assert caller.ended == "idle"
    assert caller.ended_at == pytest.approx(began + 30)
    assert clock.now() == pytest.approx(began + 3600)


@pytest.mark.anyio
async def test_a_report_that_the_server_has_moves_the_timer_on_a_clock_that_stands_still() -> None:
    bridge, clock = a_stopped_bridge()
    caller = Caller()
    heard = anyio.Event()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        clock.stop()
        tasks.start_soon(caller, bridge)
        call_id = (await socket.hear("tool.dispatch"))["params"]["callId"]
        with anyio.fail_after(PATIENT):
            for n in range(10):
                await clock.advance(29, bridge.calls.settle)
                reports = [{"seq": n, "progress": n}]
                socket.say(about_call("tool.progress", call_id, reports=reports))
                await socket.hear("tool.ack")
            assert caller.ended is None

            # A jump over several timers ends the call by the first of them.
            await clock.advance(3600, bridge.calls.settle)
        heard.set()

        assert caller.ended == "ceiling"


@pytest.mark.anyio
async def test_a_clock_that_goes_again_continues_from_where_it_stood() -> None:
    clock = StoppableClock()
    clock.stop()
    stood = clock.now()
    assert clock.now() == stood

    clock.resume()
    clock.resume()

    assert stood <= clock.now() < stood + 60


@pytest.mark.anyio
async def test_a_timer_that_is_over_when_the_clock_is_stopped_is_not_waited_for() -> None:
    clock = StoppableClock()
    clock.stop()

    with anyio.fail_after(PATIENT):
        await clock.wait(anyio.Event(), clock.now())
