"""Alarms that share one wait."""

import anyio
import pytest

from opentabs_py.calling.clock import AlarmClock
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
