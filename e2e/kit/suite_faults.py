"""Faults at every hop, through every hop; run by test_kit_faults.py."""

import os
import random
from typing import Any

import pytest
from playwright.sync_api import Page

from e2e.processes import command_line, descendants, is_alive, is_browser
from opentabs_py.core.fault_injection import FaultLog, InjectedFault, Rule
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect
from opentabs_py.testing.faults.injector import Death

SEEDS = 30  # so that each of 10 boundaries is combined with each of 3 ways to die
REPORTS = [{"progress": number, "total": 3} for number in (1, 2, 3)]
STEPS = [{"report": report} for report in REPORTS]
VALUE = {"key": "key", "result": "the value"}
LOSSLESS = ("drop", "delay", "duplicate", "reorder")


@pytest.fixture(autouse=True)
def _open(page: Page) -> None:
    page.route("**/*", lambda route: route.fulfill(body="<body>", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")


def inject(opentabs: SyncOpenTabs, hop: str, action: str, kind: str) -> None:
    """Injects one fault, and no other."""
    opentabs.faults.clear()
    options = {"seconds": 0.05} if action == "delay" else {}
    getattr(opentabs.faults, action)(hop, kind=kind, **options)


def wait_until_fired(opentabs: SyncOpenTabs, page: Page) -> None:
    """Waits until the last injected fault has happened; the test's timeout bounds it."""
    while not opentabs.faults.log.injected[-1].fired:
        page.wait_for_timeout(10)


def run_probe(opentabs: SyncOpenTabs, **more: Any) -> Any:
    return opentabs.start(
        "probe_run", key="key", steps=more.pop("steps", STEPS), result="the value"
    )


@pytest.mark.parametrize("hop", ["websocket", "port", "event"])
@pytest.mark.opentabs(allow_breaches=True)  # progress that was tampered with need not increase
def test_no_fault_of_progress_changes_a_result(opentabs: SyncOpenTabs, hop: Any) -> None:
    for action in (*LOSSLESS, "corrupt"):
        inject(opentabs, hop, action, "tool.progress")

        call = run_probe(opentabs)

        expect(call, action).to_succeed()
        assert call.value == VALUE, action
    assert [each.fired for each in opentabs.faults.log.injected if not each.fired] == []


@pytest.mark.opentabs(allow_breaches=True)
def test_no_fault_of_a_notification_changes_what_a_client_gets(
    opentabs: SyncOpenTabs, mcp: SyncMcpClient
) -> None:
    for action in LOSSLESS:
        inject(opentabs, "mcp", action, "notifications/progress")

        call = mcp.start("probe_run", {"key": "key", "steps": STEPS, "result": "the value"})

        expect(call, action).to_succeed()
        # A message that is held back until another has passed is passed by the response.
        came = {"drop": 0, "delay": 3, "duplicate": 6, "reorder": 0}
        assert len(call.progress) == came[action], action


@pytest.mark.parametrize("hop", ["websocket", "port"])
def test_a_dropped_report_is_missed_and_no_other(opentabs: SyncOpenTabs, hop: Any) -> None:
    opentabs.faults.duplicate(hop, kind="tool.progress")

    call = run_probe(opentabs)

    expect(call).to_succeed()
    expect(call).to_progress(REPORTS)  # the server drops what it has seen before


@pytest.mark.opentabs(clock="manual")
def test_a_result_that_is_lost_on_its_way_ends_the_call_by_the_timer(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    opentabs.faults.drop("websocket", kind="tool.result")

    call = run_probe(opentabs)
    wait_until_fired(opentabs, page)
    opentabs.clock.advance(30)

    expect(call).to_time_out("idle", within=0)


def test_a_condition_chooses_what_is_dropped(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.drop(
        "websocket", kind="tool.progress", when=lambda text: '"progress":2' in text
    )

    call = run_probe(opentabs)

    expect(call).to_succeed()
    assert 2 not in [report.progress for report in call.progress]


def test_a_condition_cannot_be_asked_in_the_browser(opentabs: SyncOpenTabs) -> None:
    with pytest.raises(ValueError, match="use kind= and nth="):
        opentabs.faults.drop("port", when=lambda _text: True)
    with pytest.raises(ValueError, match="'wire' is not a valid hop"):
        opentabs.faults.drop("wire")  # type: ignore[arg-type]


@pytest.mark.parametrize("hop", ["mcp", "websocket", "port", "event"])
def test_a_kind_that_never_passes_is_refused(opentabs: SyncOpenTabs, hop: Any) -> None:
    with pytest.raises(ValueError, match="No 'nonsense' passes the hop"):
        opentabs.faults.drop(hop, kind="nonsense")


def test_faults_end_with_the_test_that_injected_them(opentabs: SyncOpenTabs) -> None:
    assert opentabs.faults.log.is_empty
    expect(run_probe(opentabs)).to_progress(REPORTS)


# --- the log of a run, and its replay ---


@pytest.mark.parametrize("hop", ["websocket", "port", "event"])
@pytest.mark.opentabs(allow_breaches=True)
def test_a_log_says_what_was_done_to_which_messages(opentabs: SyncOpenTabs, hop: Any) -> None:
    opentabs.faults.drop(hop, kind="tool.cancel", direction="down", optional=True)
    opentabs.faults.duplicate(hop, kind="tool.result", nth=[1, 9])
    expect(run_probe(opentabs)).to_succeed()

    assert opentabs.faults.log == FaultLog(
        seed=opentabs.faults.seed,
        injected=(
            InjectedFault(Rule(hop, "drop", "down", "tool.cancel")),
            InjectedFault(
                Rule(hop, "duplicate", None, "tool.result", (1, 9), number=1), {"up": "1"}
            ),
        ),
    )


@pytest.mark.parametrize("hop", ["websocket", "port"])
@pytest.mark.opentabs(clock="manual")
def test_a_log_does_it_again_whatever_is_chosen_now(
    opentabs: SyncOpenTabs, page: Page, hop: Any
) -> None:
    lost_then = InjectedFault(Rule(hop, "drop", kind="tool.result"), {"up": "2"})
    opentabs.faults.replay(FaultLog(0, (lost_then,)).to_json())
    opentabs.faults.drop(hop, kind="tool.result")  # of each; in that run it was the second

    expect(run_probe(opentabs)).to_succeed()
    lost = opentabs.start("probe_echo", value=1)
    wait_until_fired(opentabs, page)
    opentabs.clock.advance(30)

    expect(lost).to_time_out("idle", within=0)
    assert [dict(each.fired) for each in opentabs.faults.log.injected] == [{"up": "2"}]


def test_a_log_of_another_test_is_refused(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.replay(FaultLog(0, (InjectedFault(Rule("port", "drop")),)))

    with pytest.raises(ValueError, match="fault number 1 is drop event, but the log has drop"):
        opentabs.faults.drop("event")


def test_the_seed_of_a_run_is_that_of_the_option(
    opentabs: SyncOpenTabs, request: pytest.FixtureRequest
) -> None:
    assert opentabs.faults.seed == request.config.getoption("opentabs_faults_seed")
    assert opentabs.faults.random.random() == random.Random(opentabs.faults.seed).random()


# --- faults of the browser ---


def test_a_result_survives_a_service_worker_killed_at_any_moment(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    """Every boundary that a call crosses, in turn, and a random moment after it."""
    boundaries: list[tuple[Any, str]] = [
        ("websocket", "tool.dispatch"),
        ("port", "tool.dispatch"),
        ("port", "received"),
        ("port", "tool.progress"),
        ("port", "tool.result"),
        ("websocket", "tool.result"),
        ("websocket", "tool.ack"),
        ("port", "tool.ack"),
        ("websocket", "tool.settled"),
        ("port", "tool.settled"),
    ]
    ways: tuple[Death, ...] = ("stop", "close", "sigkill")
    faults = opentabs.faults
    for seed in range(SEEDS):
        chance = random.Random(seed)
        hop, kind = boundaries[seed % len(boundaries)]
        how = ways[seed % len(ways)]
        faults.clear()
        faults.delay(hop, 0.08, kind=kind, nth=1, optional=True)  # it may die before

        key = f"seed {seed}"
        wait = {"wait": chance.randrange(40)}
        steps = [{"report": {"progress": 1}}, wait, {"report": {"progress": 2}}]
        call = opentabs.start("probe_run", key=key, steps=steps, result=key)
        page.wait_for_timeout(chance.randrange(120))
        faults.kill_service_worker(how)

        expect(call).to_succeed(within=15)
        assert call.value == {"key": key, "result": key}, (seed, hop, kind, how)
        assert [report.progress for report in call.progress] == [1, 2], (seed, hop, kind, how)
        assert page.evaluate("key => probe.runs[key]", key) == 1  # no tool runs twice


@pytest.mark.parametrize("how", ["stop", "close", "sigkill"])
def test_a_killed_service_worker_is_dead_and_another_one_comes(
    opentabs: SyncOpenTabs, how: Any
) -> None:
    before = opentabs.start("probe_echo", value=1).wait()

    opentabs.faults.kill_service_worker(how)

    after = opentabs.start("probe_echo", value=1).wait()
    assert before.record is not None
    assert after.record is not None
    assert before.record.links[-1].boot_id != after.record.links[-1].boot_id
    assert opentabs.faults.log.done == (f"kill_service_worker({how!r})",)


def test_sigkill_kills_the_one_process_of_the_extension(opentabs: SyncOpenTabs) -> None:
    # Not all processes: that of a page of the test before may be about to exit.
    browsers = {pid for pid in descendants(os.getpid()) if is_browser(pid)}
    [extension] = [
        pid for pid in descendants(os.getpid()) if "--extension-process" in command_line(pid)
    ]

    opentabs.faults.kill_service_worker("sigkill")

    expect(run_probe(opentabs)).to_succeed(within=10)
    assert not is_alive(extension)
    assert [is_alive(pid) for pid in browsers] == [True]


def test_how_it_is_killed_is_one_of_the_three(opentabs: SyncOpenTabs) -> None:
    with pytest.raises(ValueError, match="how='kill': it must be one of"):
        opentabs.faults.kill_service_worker("kill")  # type: ignore[arg-type]


def test_a_call_survives_a_connection_that_was_cut(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("probe_run", key="key", steps=[{"wait": 300}], result="the value")

    opentabs.faults.disconnect_websocket()

    expect(call).to_succeed()


@pytest.mark.parametrize(("how", "code"), [("close", "TAB_CLOSED"), ("leave", "PAGE_NAVIGATED")])
def test_a_call_whose_page_goes_is_lost_at_once(
    opentabs: SyncOpenTabs, page: Page, how: str, code: str
) -> None:
    call = opentabs.start("probe_run", key="key", steps=[{"wait": 60_000}])
    page.wait_for_function("'key' in probe.runs")

    if how == "close":
        opentabs.faults.close_tab(page)
    else:
        opentabs.faults.navigate(page, "http://127.0.0.1:9/elsewhere")

    expect(call).to_fail(code=code, within=10)


@pytest.mark.opentabs(clock="manual")
def test_a_call_whose_extension_is_reloaded_is_lost_at_once_and_the_next_one_works(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    """At once: no grace period can end, because the clock stands still."""
    # One time in five, a dead remnant of the reload still connects.
    for number in range(6):
        call = opentabs.start("probe_run", key=f"{number}", steps=[{"wait": 60_000}])
        page.wait_for_function(f"'{number}' in probe.runs")

        opentabs.faults.reload_extension()

        expect(call).to_fail(code="EXTENSION_RELOADED", within=10)
        expect(opentabs.plugin("probe")).to_be_ready(within=10)
        expect(run_probe(opentabs)).to_succeed(within=10)


def test_a_plugin_is_back_after_its_extension_was_reloaded(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    opentabs.faults.reload_extension()
    page.reload()

    expect(opentabs.plugin("probe")).to_be_ready(within=10)
    expect(run_probe(opentabs)).to_succeed()


@pytest.mark.opentabs(clock="manual")
def test_a_frozen_tab_is_silent_and_a_thawed_one_continues(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    expect(opentabs.plugin("probe")).to_be_ready()
    opentabs.faults.freeze_tab(page)
    call = run_probe(opentabs)

    opentabs.clock.advance(30)
    expect(call).to_time_out("idle", within=0)
    opentabs.faults.freeze_tab(page, frozen=False)
    expect(run_probe(opentabs)).to_succeed(within=10)
