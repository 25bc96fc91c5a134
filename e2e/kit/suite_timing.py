"""The four timing rules, at their real length, through every hop; run by test_kit_timing.py.

With `--opentabs-clock=real` they take five minutes, in three processes.
"""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import Call, SyncMcpClient, SyncOpenTabs, expect

pytestmark = pytest.mark.opentabs(clock="manual")

Start = Callable[..., Call]
HANG = {"wait": 3_600_000}
LATE = 1.5  # s; how long after its limit a call may end on a noisy machine


@pytest.fixture
def start(opentabs: SyncOpenTabs, page: Page) -> Start:
    """Starts a tool that reports when the test requests it, and runs until it is stopped."""
    open_page(page)

    def start_(*steps: Any) -> Call:
        call = opentabs.start("probe_run", key="key", steps=[*steps, HANG])
        page.wait_for_function("'key' in probe.runs")
        return call

    return start_


def open_page(page: Page) -> None:
    page.route("**/*", lambda route: route.fulfill(body="<body>", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")


def margin(opentabs: SyncOpenTabs) -> float:
    """How close to a limit these tests go, in s; real time passes while they do anything else."""
    return 0.1 if opentabs.clock.is_manual else 5


def at_once(opentabs: SyncOpenTabs) -> float:
    """How long to wait for what advancing the clock has caused, in s; 0 with the real clock."""
    return 0 if opentabs.clock.is_manual else LATE


def report(page: Page, call: Call) -> None:
    """Make the tool report once more, and wait until the server has the report."""
    count = len(call.progress)
    page.evaluate("probe.report()")
    expect(call).to_progress(min=count + 1)


def test_30_s_of_silence_end_a_call_and_not_less(opentabs: SyncOpenTabs, start: Start) -> None:
    call = start()

    opentabs.clock.advance(30 - margin(opentabs))
    assert not call.ended
    opentabs.clock.advance(margin(opentabs))

    expect(call).to_time_out("idle", within=at_once(opentabs))


def test_each_report_gives_another_30_s(opentabs: SyncOpenTabs, start: Start, page: Page) -> None:
    call = start()

    for _ in range(5):
        opentabs.clock.advance(30 - margin(opentabs))
        report(page, call)

    assert not call.ended


def test_30_s_without_a_report_end_a_call_that_has_reported(
    opentabs: SyncOpenTabs, start: Start, page: Page
) -> None:
    call = start()
    opentabs.clock.advance(20)
    report(page, call)

    opentabs.clock.advance(30 - margin(opentabs))
    assert not call.ended
    opentabs.clock.advance(margin(opentabs))

    expect(call).to_time_out("idle", within=at_once(opentabs))
    page.wait_for_function("'key' in probe.aborted")


def test_5_minutes_end_a_call_that_still_reports(
    opentabs: SyncOpenTabs, start: Start, page: Page
) -> None:
    call = start()
    for _ in range(14):
        opentabs.clock.advance("20s")
        report(page, call)

    opentabs.clock.advance(20 - margin(opentabs))
    assert not call.ended
    opentabs.clock.advance(margin(opentabs))

    expect(call).to_time_out("ceiling", within=at_once(opentabs))


@pytest.mark.parametrize("wants_progress", [True, False])
def test_the_rules_hold_whether_or_not_a_client_asks_for_progress(
    opentabs: SyncOpenTabs, mcp: SyncMcpClient, page: Page, wants_progress: bool
) -> None:
    open_page(page)
    expect(opentabs.plugin("probe")).to_be_ready()
    arguments = {"key": "key", "steps": [HANG]}
    client = mcp if wants_progress else mcp.without_progress
    call = client.start("probe_run", arguments)
    page.wait_for_function("'key' in probe.runs")

    for _ in range(2):
        opentabs.clock.advance(30 - margin(opentabs))
        page.evaluate("probe.report()")
        # Messages never overtake each other, so this proves that the server has the report.
        opentabs.call("probe_echo", value=1)
    assert not call.ended
    opentabs.clock.advance(30)

    expect(call).to_time_out("idle")
