"""What is sent to an extension for its icon: how many calls run, and how many wait for a person."""

from collections.abc import Callable

import anyio
import pytest

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.tabs.selection import Target
from tests.fakes import FakeSocket, Json, a_bridge, a_document, about_call, greeted, running
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

TARGET = Target("chat", ("https://chat.example/*",))


async def call(bridge: Bridge) -> None:
    await bridge.call(TARGET, "send", ToolCall({}, Limits()))


async def numbers(socket: FakeSocket) -> tuple[int, int]:
    heard = await socket.hear("activity.changed")
    return heard["params"]["running"], heard["params"]["waiting"]


def activities(socket: FakeSocket) -> list[Json]:
    return [each for each in socket.heard if each.get("method") == "activity.changed"]


async def test_the_extension_hears_of_a_call_that_runs_and_of_its_end() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(call, bridge)
        sent = (await socket.hear("tool.dispatch"))["params"]["callId"]
        assert await numbers(socket) == (1, 0)
        socket.say(about_call("tool.result", sent, seq=0, value=1))
        assert await numbers(socket) == (0, 0)


@pytest.fixture
def is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent before the test has let time pass."""
    monkeypatch.setattr("opentabs_py.bridge.activity.LOOK_AGAIN", PATIENT)


@pytest.mark.usefixtures("is_patient")
async def test_changes_within_a_quarter_of_a_second_are_one_message(
    skip_time: Callable[[float], None],
) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        bridge.activity.set_waiting(1)
        await until_all_wait()
        for count in range(2, 100):
            bridge.activity.set_waiting(count)
            await anyio.lowlevel.checkpoint()
        skip_time(PATIENT)
        assert await numbers(socket) == (0, 99)
        assert len(activities(socket)) == 1


@pytest.mark.usefixtures("is_patient")
async def test_what_comes_and_goes_in_between_is_not_sent(
    skip_time: Callable[[float], None],
) -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        socket = await greeted(connect)
        with bridge.activity.running():
            await until_all_wait()
        bridge.activity.set_waiting(2)
        skip_time(PATIENT)
        assert await numbers(socket) == (0, 2)
        assert len(activities(socket)) == 1


async def test_an_extension_that_comes_back_hears_at_once_what_runs_now() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        first = await greeted(connect)
        with bridge.activity.running():
            assert await numbers(first) == (1, 0)
            second = await greeted(connect)
            assert await numbers(second) == (1, 0)
        assert await numbers(second) == (0, 0)


async def test_an_extension_that_comes_back_when_nothing_runs_hears_nothing() -> None:
    bridge = a_bridge()
    async with running(bridge) as connect:
        first = await greeted(connect)
        with bridge.activity.running():
            assert await numbers(first) == (1, 0)
        first.hang_up()
        second = await greeted(connect)
        with bridge.activity.running():
            assert await numbers(second) == (1, 0)
        assert len(activities(second)) == 1
