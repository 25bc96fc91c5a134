"""Faults at every hop, through every hop; run by test_kit_faults.py."""

import random
from typing import Any, Literal

import pytest
from playwright.sync_api import Page

from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect

SEEDS = 50
REPORTS = [{"progress": number, "total": 3} for number in (1, 2, 3)]
STEPS = [{"report": report} for report in REPORTS]
VALUE = {"key": "key", "result": "the value"}
PLANTED = [
    (hop, action)
    for hop in ("websocket", "port", "event")
    for action in ("drop", "delay", "duplicate", "reorder", "corrupt")
]


@pytest.fixture(autouse=True)
def _open(page: Page) -> None:
    page.route("**/*", lambda route: route.fulfill(body="<body>", content_type="text/html"))
    page.goto("http://127.0.0.1:9/")


def run_probe(opentabs: SyncOpenTabs, **more: Any) -> Any:
    return opentabs.start(
        "probe_run", key="key", steps=more.pop("steps", STEPS), result="the value"
    )


@pytest.mark.parametrize(("hop", "action"), PLANTED)
@pytest.mark.opentabs(allow_breaches=True)  # progress that was tampered with need not increase
def test_no_fault_of_progress_changes_a_result(
    opentabs: SyncOpenTabs, hop: Any, action: str
) -> None:
    options = {"seconds": 0.05} if action == "delay" else {}
    getattr(opentabs.faults, action)(hop, kind="tool.progress", **options)

    call = run_probe(opentabs)

    expect(call).to_succeed()
    assert call.value == VALUE


@pytest.mark.parametrize("action", ["drop", "delay", "duplicate", "reorder"])
@pytest.mark.opentabs(allow_breaches=True)
def test_no_fault_of_a_notification_changes_what_a_client_gets(
    opentabs: SyncOpenTabs, mcp: SyncMcpClient, action: str
) -> None:
    options = {"seconds": 0.05} if action == "delay" else {}
    getattr(opentabs.faults, action)("mcp", kind="notifications/progress", **options)

    call = mcp.call_tool("probe_run", {"key": "key", "steps": STEPS, "result": "the value"})

    expect(call).to_succeed()
    if action == "drop":
        assert list(call.progress) == []


@pytest.mark.parametrize("hop", ["websocket", "port"])
def test_a_dropped_report_is_missed_and_no_other(opentabs: SyncOpenTabs, hop: Any) -> None:
    opentabs.faults.duplicate(hop, kind="tool.progress")

    call = run_probe(opentabs)

    expect(call).to_succeed()
    expect(call).to_progress(REPORTS)  # the server drops what it has seen


@pytest.mark.opentabs(idle=1)
def test_a_result_that_is_lost_on_its_way_ends_the_call_by_the_timer(
    opentabs: SyncOpenTabs,
) -> None:
    opentabs.faults.drop("websocket", kind="tool.result")

    call = run_probe(opentabs)

    expect(call).to_time_out("idle", within=5)


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
    with pytest.raises(ValueError, match="'wire' is not a hop"):
        opentabs.faults.drop("wire")  # type: ignore[arg-type]


def test_faults_end_with_the_test_that_planted_them(opentabs: SyncOpenTabs) -> None:
    assert opentabs.faults.planted == []
    expect(run_probe(opentabs)).to_progress(REPORTS)


# --- what happens to a browser ---


def test_a_result_survives_a_service_worker_killed_at_any_moment(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    """Every boundary that a call crosses, in turn, and a random moment behind it."""
    boundaries: list[tuple[Any, str]] = [
        ("websocket", "tool.dispatch"),
        ("port", "tool.dispatch"),
        ("port", "received"),
        ("port", "tool.progress"),
        ("port", "tool.result"),
        ("websocket", "tool.result"),
        ("websocket", "tool.ack"),
        ("port", "tool.ack"),
    ]
    faults = opentabs.faults
    for seed in range(SEEDS):
        chance = random.Random(seed)
        hop, kind = boundaries[seed % len(boundaries)]
        how: Literal["stop", "close"] = chance.choice(["stop", "close"])
        faults.clear()
        faults.delay(hop, 0.08, kind=kind, nth=1)

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


def test_a_call_whose_extension_is_reloaded_is_lost_and_the_next_one_works(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    # What a reload leaves behind may still connect, one time in five, and is dead.
    for number in range(6):
        call = opentabs.start("probe_run", key=f"{number}", steps=[{"wait": 60_000}])
        page.wait_for_function(f"'{number}' in probe.runs")

        opentabs.faults.reload_extension()

        expect(call).to_fail(code="PAGE_NAVIGATED", within=10)
        expect(run_probe(opentabs)).to_succeed(within=10)


def test_a_plugin_is_back_after_its_extension_was_reloaded(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    opentabs.faults.reload_extension()
    page.reload()

    expect(opentabs.plugin("probe")).to_be_ready(within=10)
    expect(run_probe(opentabs)).to_succeed()


@pytest.mark.opentabs(idle=1)
def test_a_frozen_tab_is_silent_and_a_thawed_one_goes_on(
    opentabs: SyncOpenTabs, page: Page
) -> None:
    expect(opentabs.plugin("probe")).to_be_ready()
    opentabs.faults.freeze_tab(page)
    call = run_probe(opentabs)

    expect(call).to_time_out("idle", within=5)
    opentabs.faults.freeze_tab(page, frozen=False)
    expect(run_probe(opentabs)).to_succeed(within=10)
