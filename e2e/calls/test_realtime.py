"""The timing rules at their real length, in parallel in one browser: six minutes.

Run by `make test-realtime`, not by `make test`.
"""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from e2e.chain import Running
from opentabs_py.errors import CallTimeoutError

pytestmark = [pytest.mark.realtime, pytest.mark.timeout(400)]

LATE = 1.5  # s; how much later than its limit a call may end on a noisy machine

REPORT: dict[str, Any] = {"report": {"progress": 1}}
SCENARIOS: dict[str, list[dict[str, Any]]] = {
    "silent": [{"wait": 60_000}],
    "just in time": [{"wait": 28_000}],
    "every 25 s": [{"wait": 25_000}, REPORT] * 11,
    "a gap": [{"wait": 20_000}, REPORT, {"wait": 60_000}],
    "past 5 min": [{"wait": 10_000}, REPORT] * 40,
}


async def test_the_documented_limits_are_the_real_ones(open_tab: Callable[..., Any]) -> None:
    running = {name: Running() for name in SCENARIOS}

    async with anyio.create_task_group() as group:
        for name, steps in SCENARIOS.items():
            tab = await open_tab()
            group.start_soon(running[name].run, tab, steps, name)

    for name, call in running.items():
        print(f"{name:>14}: {call.seconds:7.2f} s  {call.error or 'succeeded'}")
    ends_at(running["silent"], 30, "idle")
    ends_at(running["a gap"], 50, "idle")
    ends_at(running["past 5 min"], 300, "ceiling")
    assert running["just in time"].error is None
    assert running["every 25 s"].error is None
    assert running["every 25 s"].seconds >= 275


def ends_at(call: Running, seconds: float, which: str) -> None:
    assert isinstance(call.error, CallTimeoutError)
    assert call.error.timer == which
    assert seconds <= call.seconds <= seconds + LATE
