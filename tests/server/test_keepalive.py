"""With a keep-alive, a client receives progress of a silent call until it ends, and no longer."""

from itertools import pairwise

import anyio
import pytest
from mcp.client import Client

from opentabs_py.core.progress import Pace, ProgressReport
from tests.fakes import FakeBridge
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_silent_call_repeats_its_last_progress_until_it_ends(mode: str) -> None:
    bridge = FakeBridge(value={}, reports=[ProgressReport(0, 3.0, 9.0, "Page 3")])
    bridge.hangs = True
    served = Served(bridge, pace=Pace(keepalive=0.05))
    heard: list[tuple[float, float | None, str | None]] = []
    enough = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 4:
            enough.set()

    async with Client(served.server, mode=mode) as client:
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                await client.call_tool("chat_send", {}, progress_callback=note)

            tasks.start_soon(call)
            with anyio.fail_after(PATIENT):
                await enough.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(PATIENT):
            await bridge.cancelled.wait()
    assert {(total, message) for _, total, message in heard} == {(9.0, "Page 3")}
    values = [progress for progress, _, _ in heard]
    assert values[0] == 3.0
    assert all(before < after < 3.001 for before, after in pairwise(values))


async def test_without_one_a_silent_call_says_its_progress_once() -> None:
    bridge = FakeBridge(value={}, reports=[ProgressReport(0, 3.0, 9.0, "Page 3")])
    served = Served(bridge, pace=Pace())
    heard: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        heard.append(progress)

    async with Client(served.server) as client:
        await client.call_tool("chat_send", {}, progress_callback=note)
    assert heard == [3.0]
