"""Tools written in Python, tested with the fixtures; run by test_kit_tools.py."""

import os
import signal
from collections.abc import Callable, Sequence
from threading import Timer
from typing import Any

import anyio
import pytest

from e2e.processes import command_line, descendants
from opentabs_py import Progress, ToolError, ToolFailedError
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect


def count(to: int, progress: Progress) -> dict[str, int]:
    """Count to a number."""
    if to < 0:
        raise ToolError("There is nothing below zero.", code="TOO_LOW", category="validation")
    for number in range(1, to + 1):
        progress.report(progress=number, total=to)
    return {"counted": to}


async def wait_for_ever() -> None:
    """Never end."""
    await anyio.sleep_forever()


@pytest.fixture(scope="module")
def opentabs_tools() -> Sequence[Callable[..., Any]]:
    return [count, wait_for_ever]


def test_a_tool_in_python_is_called_beside_those_of_pages(
    opentabs: SyncOpenTabs, opentabs_plugins: Sequence[object]
) -> None:
    call = opentabs.start("count", to=2)

    expect(call).to_return({"counted": 2})
    expect(call).to_progress([{"progress": 1, "total": 2}, {"progress": 2, "total": 2}])
    names = [tool.name for tool in opentabs.tools]
    assert "count" in names
    assert ("demo_list_channels" in names) == bool(opentabs_plugins)


def test_a_call_returns_the_value_or_raises_the_error(
    opentabs: SyncOpenTabs, mcp: SyncMcpClient
) -> None:
    assert opentabs.call("count", to=2) == {"counted": 2}
    assert mcp.call("count", {"to": 2}) == {"counted": 2}
    with pytest.raises(ToolFailedError, match="nothing below zero"):
        opentabs.call("count", to=-1)
    with pytest.raises(ToolFailedError):
        mcp.call("count", {"to": -1})


def test_its_error_is_distinguished_by_its_fields(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("count", to=-1)).to_fail(code="TOO_LOW", category="validation")


def test_a_client_is_sent_its_progress(mcp: SyncMcpClient) -> None:
    call = mcp.start("count", {"to": 3})

    expect(call).to_return({"counted": 3})
    expect(call).to_progress(min=3, monotonic=True)


@pytest.mark.parametrize("client", ["opentabs", "mcp"])
def test_a_call_begins_once_playwright_has_handled_what_it_was_asked_for(
    opentabs: SyncOpenTabs, request: pytest.FixtureRequest, client: str
) -> None:
    start = request.getfixturevalue(client).start
    [driver] = [pid for pid in descendants(os.getpid()) if "run-driver" in command_line(pid)]
    early: list[int] = []

    def resume() -> None:
        early.append(len(opentabs.trace))
        os.kill(driver, signal.SIGCONT)

    os.kill(driver, signal.SIGSTOP)
    timer = Timer(0.5, resume)
    timer.start()
    try:
        call = start("count", {"to": 1})
    finally:
        timer.join()

    expect(call).to_return({"counted": 1})
    assert early == [0]


@pytest.mark.opentabs(clock="manual")
def test_its_timers_are_in_the_test_s_hands(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("wait_for_ever")

    opentabs.clock.advance("29s")
    expect(call).to_be_running()
    opentabs.clock.advance("1s")

    expect(call).to_time_out("idle")
