"""Alarms that share one wait."""

from functools import partial
from math import inf

import anyio
import pytest

from opentabs_py.calling.clock import STALE_ALARMS, AlarmClock
from tests.python_tools.held_clock import HeldClock
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


async def test_an_alarm_that_raises_is_logged_and_the_next_one_rings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = HeldClock()
    clock, rung = AlarmClock(held), anyio.Event()

    def fail() -> None:
        raise KeyError("gone")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await until_all_wait()
        clock.set_alarm(1, fail)
        clock.set_alarm(2, rung.set)
        held.move(1)
        await until_all_wait()
        held.move(1)
        await until_all_wait()
        assert rung.is_set()
        tasks.cancel_scope.cancel()
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert "KeyError: 'gone'" in caplog.text


async def test_cancelled_alarms_are_forgotten_before_their_time_and_the_others_ring() -> None:
    held = HeldClock()
    clock, rung = AlarmClock(held), list[int]()
    for number in range(3000):
        clock.set_alarm(inf, list[int]().clear)
        clock.set_alarm(number, partial(rung.append, number))
    for _ in range(20_000):
        clock.set_alarm(inf, list[int]().clear).cancel()
    assert len(clock._alarms) <= 2 * 6000 + STALE_ALARMS
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.run)
        await until_all_wait()
        held.move(3000)
        await until_all_wait()
        tasks.cancel_scope.cancel()
    assert rung == [*range(3000)]
