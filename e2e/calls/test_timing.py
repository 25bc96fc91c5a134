"""The timing rules, through the real hops, on a clock that the tests advance.

`test_realtime.py` tests them in real time, and `tests/core/test_dispatch_timers.py` with time
passed in.
"""

from typing import Any

import anyio

from e2e.chain import HOLD, Advance, Running, Tab
from opentabs_py.core.limits import CEILING, IDLE, Limits
from opentabs_py.errors import CallTimeoutError

ALMOST, REST = IDLE - 0.1, 0.2  # s; together just longer than the limit
SHORT = Limits(idle=1.5, ceiling=60)


def timed_out(error: Any) -> CallTimeoutError:
    assert isinstance(error, CallTimeoutError), error
    return error


async def report(tab: Tab, running: Running) -> None:
    """Let the tool report, and wait until the server has the report."""
    running.reported = anyio.Event()
    await tab.page.evaluate("probe.report({ progress: 1 })")
    await running.wait_for_report()


async def test_silence_ends_a_call_and_says_idle(tab: Tab) -> None:
    began = anyio.current_time()

    error = timed_out(await tab.fail("run", {"steps": [{"wait": 60_000}]}, limits=SHORT))

    assert error.timer == "idle"
    assert "no progress for 1.5 s; no progress report arrived" in str(error)
    assert anyio.current_time() - began >= SHORT.idle


async def test_progress_within_the_idle_limit_keeps_a_call_alive(
    tab: Tab, advance: Advance
) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [HOLD], "alive")
        for _ in range(5):
            await advance(ALMOST)
            await report(tab, running)
        await tab.release("alive")
        await running.wait()

    assert running.error is None
    assert running.value == {"key": "alive", "result": "alive"}


async def test_a_gap_ends_a_call_one_idle_limit_after_the_last_report(
    tab: Tab, advance: Advance
) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [HOLD], "gap")
        await advance(ALMOST)
        await report(tab, running)
        await advance(ALMOST)
        assert not running.ended.is_set()
        await advance(REST)
        await running.wait()

    error = timed_out(running.error)
    assert error.timer == "idle"
    assert "1 progress report arrived" in str(error)


async def test_reporting_for_ever_ends_at_the_ceiling_and_says_so(
    tab: Tab, advance: Advance
) -> None:
    often = 15
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [HOLD], "for ever")
        for _ in range(often - 1):
            await advance(CEILING / often)
            await report(tab, running)
        await advance(CEILING / often - 0.1)
        assert not running.ended.is_set()
        await advance(REST)
        await running.wait()

    error = timed_out(running.error)
    assert error.timer == "ceiling"
    assert "no result after 300 s, the longest a call may take" in str(error)


async def test_after_a_timeout_the_signal_has_fired_in_the_page_and_says_why(
    tab: Tab, advance: Advance
) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 60_000}], "timed")
        await advance(IDLE)
        await running.wait()

    reason = await tab.page.wait_for_function("probe.aborted.timed")
    assert "Timed out (idle)" in await reason.json_value()


async def test_a_tool_deaf_to_its_signal_cannot_answer_after_its_end(
    tab: Tab, advance: Advance
) -> None:
    late = tab.tabs.internals.bridge.calls.dispatch.late_messages

    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"until": "aborted"}], "deaf")
        await advance(IDLE)
        await running.wait()
    await tab.page.wait_for_function("probe.finished.deaf")

    assert await tab.call("echo", {"value": 1}) == {"value": 1}
    assert tab.tabs.internals.bridge.calls.dispatch.late_messages == late
