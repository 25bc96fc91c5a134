"""What restarts the idle timer of a Python tool, and that nothing moves its ceiling."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from mcp.types import CallToolResult

from opentabs_py import Module, Progress, skill
from opentabs_py.core.limits import CATCH_UP, Limits
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import Server
from tests.python_tools.held_clock import HeldClock
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class Lives(Module):
    """Shows activity on request."""

    def __init__(self) -> None:
        self.sign, self.given = anyio.Event(), anyio.Event()

    async def _next(self) -> None:
        self.given.set()
        await self.sign.wait()
        self.sign = anyio.Event()

    @skill
    async def report(self, progress: Progress) -> None:
        """By reports."""
        while True:
            await self._next()
            progress.report("alive")

    @skill
    async def heartbeat(self, progress: Progress) -> None:
        """By heartbeats."""
        while True:
            await self._next()
            progress.heartbeat()

    @skill
    async def callback(self, progress_callback: Any = None) -> None:
        """By the callback, with data that is not progress."""
        while True:
            await self._next()
            await progress_callback(object())

    @skill
    async def generator(self) -> AsyncGenerator[None]:
        """By yielding nothing."""
        while True:
            await self._next()
            yield None

    @skill
    async def stream(self) -> None:
        """By a stream."""
        self.start_tool("stream")
        while True:
            await self._next()
            self.tool_update("stream", "alive")

    @skill
    async def other(self, progress: Progress) -> None:
        """By the reports of a tool that it calls."""
        await progress.call("report")

    @skill
    async def nothing(self) -> None:
        """By nothing."""
        while True:
            await self._next()


SIGNS = ["report", "heartbeat", "callback", "generator", "stream", "other"]


async def live(name: str, steps: list[float], limits: Limits) -> CallToolResult:
    """Call a tool, and make it show activity after each step but the last."""
    clock, module = HeldClock(), Lives()
    results: list[CallToolResult] = []
    async with Server(tools=[module], _seams=Seams(clock)) as server:

        async def call() -> None:
            # The timers of this call should end the tool that it calls.
            results.append(await server.call_tool(name, limits=limits))

        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await module.given.wait()
                for step in steps:
                    await until_all_wait()
                    assert results == []
                    clock.move(step)
                    await until_all_wait()
                    module.sign.set()
    [result] = results
    return result


@pytest.mark.parametrize("name", SIGNS)
async def test_every_sign_of_life_restarts_the_idle_timer(name: str) -> None:
    result = await live(name, [29.0, 29.0, 30.0], Limits(30.0, 300.0))
    assert "code=TIMEOUT_IDLE" in str(result.content)
    assert "2 progress reports arrived, the last 58.0 s after the start" in str(result.content)


@pytest.mark.parametrize("name", SIGNS)
async def test_no_sign_of_life_moves_the_ceiling(name: str) -> None:
    result = await live(name, [29.0] * 3 + [13.0], Limits(30.0, 100.0))
    assert "code=TIMEOUT_CEILING" in str(result.content)


async def test_a_silent_tool_ends_after_the_idle_timeout() -> None:
    result = await live("nothing", [29.9, 0.1], Limits(30.0, 300.0))
    assert "code=TIMEOUT_IDLE" in str(result.content)
    assert "no progress report arrived" in str(result.content)


@pytest.mark.parametrize("steps", [[100.0, 30.0], [100.0, 100.0, 30.0]])
async def test_a_timer_that_fires_late_lets_the_tool_give_a_sign_first(steps: list[float]) -> None:
    result = await live("report", steps, Limits(30.0, 300.0))
    assert f"{len(steps) - 1} progress report" in str(result.content)


async def test_a_tool_that_shows_no_activity_after_a_late_timer_ends() -> None:
    result = await live("nothing", [100.0, CATCH_UP], Limits(30.0, 300.0))
    assert "code=TIMEOUT_IDLE" in str(result.content)
