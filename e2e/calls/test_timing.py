"""The timing rules, through the real hops, with the limits scaled down by configuration.

`test_realtime.py` tests them at their real length, and `tests/core/test_dispatch_timers.py` with
time passed in.
"""

from typing import Any

import anyio

from e2e.chain import Tab
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallTimeoutError

# What must arrive within a limit is sent a second before it: a busy machine may take that long.
SHORT = Limits(idle=1.5, ceiling=60)
SHORT_CEILING = Limits(idle=2.0, ceiling=2.5)


def timed_out(error: Any) -> CallTimeoutError:
    assert isinstance(error, CallTimeoutError), error
    return error


async def test_silence_ends_a_call_and_says_idle(tab: Tab) -> None:
    began = anyio.current_time()

    error = timed_out(await tab.fail("run", {"steps": [{"wait": 60_000}]}, limits=SHORT))

    assert error.timer == "idle"
    assert "no progress for 1.5 s; no progress report arrived" in str(error)
    assert anyio.current_time() - began >= SHORT.idle


async def test_progress_within_the_idle_limit_keeps_a_call_alive(tab: Tab) -> None:
    steps = [{"wait": 400}, {"report": {"progress": 1}}] * 5

    value = await tab.call("run", {"steps": steps, "result": "done"}, limits=SHORT)

    assert value["result"] == "done"


async def test_a_gap_ends_a_call_one_idle_limit_after_the_last_report(tab: Tab) -> None:
    steps = [{"wait": 400}, {"report": {"progress": 1}}, {"wait": 60_000}]
    last = 0.0

    def note(_: Any) -> None:
        nonlocal last
        last = anyio.current_time()

    error = timed_out(await tab.fail("run", {"steps": steps}, limits=SHORT, on_progress=note))

    assert error.timer == "idle"
    assert "1 progress report arrived" in str(error)
    assert anyio.current_time() - last >= SHORT.idle


async def test_reporting_for_ever_ends_at_the_ceiling_and_says_so(tab: Tab) -> None:
    steps = [{"wait": 200}, {"report": {"progress": 1}}] * 100
    began = anyio.current_time()

    error = timed_out(await tab.fail("run", {"steps": steps}, limits=SHORT_CEILING))

    assert error.timer == "ceiling"
    assert "no result after 2.5 s, the longest a call may take" in str(error)
    assert anyio.current_time() - began >= SHORT_CEILING.ceiling


async def test_after_a_timeout_the_signal_has_fired_in_the_page_and_says_why(tab: Tab) -> None:
    steps = [{"wait": 60_000}]

    await tab.fail("run", {"key": "timed", "steps": steps}, limits=SHORT)

    reason = await tab.page.wait_for_function("probe.aborted.timed")
    assert "Timed out (idle)" in await reason.json_value()


async def test_a_tool_deaf_to_its_signal_cannot_answer_after_its_end(tab: Tab) -> None:
    late = tab.tabs.internals.bridge.calls.dispatch.late_messages
    steps = [{"until": "aborted"}]

    await tab.fail("run", {"key": "deaf", "steps": steps}, limits=SHORT)
    await tab.page.wait_for_function("probe.finished.deaf")

    assert await tab.call("echo", {"value": 1}) == {"value": 1}
    assert tab.tabs.internals.bridge.calls.dispatch.late_messages == late
