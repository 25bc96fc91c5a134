"""Each expectation, once met and once not; run by test_kit_expectations.py."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Page

from e2e.kit.runs import wait_until
from opentabs_py.core.fault_injection import FaultLog, InjectedFault, Rule
from opentabs_py.testing import SyncMcpClient, SyncOpenTabs, expect

THREE = [{"progress": 1, "total": 3}, {"progress": 2, "total": 3}, {"progress": 3, "total": 3}]


@pytest.fixture(autouse=True)
def chat(page: Page, demo_site: str) -> None:
    page.goto(demo_site)


def test_what_holds_passes(opentabs: SyncOpenTabs, page: Page) -> None:
    call = opentabs.start("demo_export_messages", channelId="random")

    expect(call).to_succeed(within=5)
    expect(call).to_progress(THREE)
    expect(call).to_progress(min=3, monotonic=True)
    expect(call).to_return({"total": 60})
    expect(call).to_match_output_schema()
    expect(call).not_to_fail()
    expect(call).not_to_time_out()
    expect(call).not_to_be_cancelled()
    expect(call).not_to_progress(THREE[:2])
    expect(call).not_to_return({"total": 61})
    expect(call).not_to_log()
    expect(opentabs.plugin("demo")).to_be_ready()
    expect(opentabs.plugin("demo")).not_to_be_unavailable()
    expect(page).to_have_title(re.compile("chat", re.IGNORECASE))
    expect(page.locator("h1")).not_to_be_empty()


@pytest.mark.usefixtures("opentabs")
def test_how_long_is_waited_counts_for_pages_and_locators_too(page: Page) -> None:
    expect.set_options(within=0.2)
    try:
        with pytest.raises(AssertionError, match="timeout 200ms"):
            expect(page).to_have_title("nothing")
        with pytest.raises(AssertionError, match="timeout 200ms"):
            expect(page.locator("#nothing")).to_be_visible()
    finally:
        expect.set_options(within=5)


def test_errors_are_distinguished_by_their_fields(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("demo_export_messages", channelId="nope")

    expect(call).to_fail()
    expect(call).to_fail(code="NOT_FOUND", category="not_found", retryable=False, message="no .*el")
    expect(call).not_to_fail(code="AUTH_ERROR")
    expect(call).not_to_succeed()
    expect(call).not_to_return({})


def test_a_plugin_gets_ready_and_unready(opentabs: SyncOpenTabs, page: Page) -> None:
    page.route("**/empty", lambda route: route.fulfill(body="<body data-ready=no>"))
    probe = opentabs.plugin("probe")
    expect(probe).to_be_ready()

    page.goto(f"{page.url}empty")

    expect(probe).to_be_unavailable()
    expect(probe).not_to_be_ready()


def test_a_cancelled_call_is_not_one_that_failed(opentabs: SyncOpenTabs, page: Page) -> None:
    call = opentabs.start("probe_run", key="k", steps=[{"wait": 60_000}])
    wait_until(page, "'k' in probe.runs")

    call.cancel()

    expect(call).to_be_cancelled()
    expect(call).not_to_succeed()
    expect(call).not_to_fail()
    wait_until(page, "'k' in probe.aborted")


@pytest.mark.opentabs(idle=2, ceiling=5, clock="manual")
def test_the_mark_sets_the_timers(opentabs: SyncOpenTabs, page: Page) -> None:
    hang = {"wait": 60_000}
    silent = opentabs.start("probe_run", key="a", steps=[hang])
    opentabs.clock.advance(2)
    expect(silent).to_time_out("idle", within=0)
    expect(silent).not_to_time_out("ceiling")

    busy = opentabs.start("probe_run", key="b", steps=[hang])
    wait_until(page, "'b' in probe.runs")
    for reports in (1, 2, 3):
        opentabs.clock.advance("1.5s")
        page.evaluate("probe.report()")
        expect(busy).to_progress(min=reports)
    opentabs.clock.advance(timedelta(seconds=0.5))
    expect(busy).to_time_out("ceiling", within=0)


def test_logs_of_a_call_and_of_the_test_are_there(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("probe_run", key="k", steps=[{"log": "read page 7"}, {"wait": 300}])

    expect(call).to_log("warning", "page 7")
    expect(call).to_log(text=re.compile(r"page \d"))
    expect(call).not_to_log("error")
    assert [(log.plugin, log.message) for log in opentabs.logs] == [("probe", "read page 7")]


def test_a_started_call_is_seen_while_it_runs(opentabs: SyncOpenTabs, page: Page) -> None:
    call = opentabs.start(
        "probe_run", key="k", steps=[{"report": {"progress": 1}}, {"wait": 60_000}]
    )

    expect(call).to_progress(min=1)

    assert not call.ended
    assert page.evaluate("probe.runs.k") == 1


def test_an_mcp_client_is_sent_the_same(mcp: SyncMcpClient) -> None:
    call = mcp.start("demo_export_messages", {"channelId": "random"})
    refused = mcp.start("demo_export_messages", {})

    assert "demo_export_messages" in [tool.name for tool in mcp.list_tools()]
    expect(call).to_return({"total": 60})
    expect(call).to_progress(THREE)
    expect(refused).to_fail(code="INVALID_ARGUMENTS", message="channelId")


# --- what does not hold ---


def test_fails_of_success(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("demo_export_messages", channelId="nope")).to_succeed()


def test_fails_of_an_error(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("demo_list_channels")).to_fail(code="NOT_FOUND", retryable=True)


def test_fails_of_progress(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("demo_export_messages", channelId="random")
    expect(call).to_progress([{"progress": 1, "total": 3}, {"progress": 3, "total": 3}])


def test_fails_of_a_value(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("probe_echo", value={"a": 1, "b": [1, 2]})
    expect(call).to_return({"value": {"a": 2}})


def test_fails_of_a_call_that_still_runs(opentabs: SyncOpenTabs) -> None:
    call = opentabs.start("probe_run", key="k", steps=[{"report": {}}, {"wait": 60_000}])
    expect(call).to_progress(min=1)  # so its tool has started, however busy the machine is
    expect(call).to_succeed(within=0.1)


def test_fails_of_logs(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("demo_list_channels")).to_log("error", "boom")


def test_fails_of_a_plugin(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.plugin("demo")).to_be_ready()
    expect(opentabs.plugin("demo"), "the demo").to_be_unavailable(within=0.1)


def test_fails_of_what_must_not_be(opentabs: SyncOpenTabs) -> None:
    expect(opentabs.start("demo_list_channels")).not_to_succeed()


def test_fails_softly(opentabs: SyncOpenTabs, page: Page) -> None:
    call = opentabs.start("demo_list_channels")
    expect.soft(call).to_fail()
    expect.soft(page.locator("h1")).to_have_text("another", timeout=100)
    expect.soft(call).to_return({"channels": []})


def test_fails_of_an_unknown_plugin(opentabs: SyncOpenTabs) -> None:
    opentabs.plugin("nope")


def test_fails_of_the_start_page_of_an_unknown_plugin(opentabs: SyncOpenTabs) -> None:
    opentabs.open_start_page("nope")


def test_fails_of_an_unknown_browser(opentabs: SyncOpenTabs) -> None:
    opentabs.browsers["nope"].call("demo_list_channels")


def test_fails_of_the_value_of_a_call_that_failed(opentabs: SyncOpenTabs) -> None:
    assert opentabs.call("demo_export_messages", channelId="nope")["total"] == 60


def test_fails_of_the_value_that_a_client_was_not_sent(mcp: SyncMcpClient) -> None:
    assert mcp.call("demo_export_messages", {"channelId": "nope"})["total"] == 60


def test_fails_of_a_clock_that_goes_by_itself(opentabs: SyncOpenTabs) -> None:
    opentabs.clock.advance(0)


def test_fails_of_a_fault_in_a_message_that_does_not_exist(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.drop("websocket", kind="tool.nope")


def test_fails_of_an_argument_given_twice(opentabs: SyncOpenTabs) -> None:
    opentabs.call("demo_export_messages", {"channelId": "general"}, channelId="random")


# --- contracts ---


def test_breaks_with_progress_that_goes_back(opentabs: SyncOpenTabs) -> None:
    steps = [{"report": {"progress": 2}}, {"report": {"progress": 1}}]
    expect(opentabs.start("probe_run", key="k", steps=steps)).to_succeed()


def test_breaks_its_output_schema(opentabs: SyncOpenTabs, page: Page) -> None:
    page.route("**/api/channels", lambda route: route.fulfill(json={"channels": [{"id": 1}]}))
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_breaks_by_reporting_after_its_end(opentabs: SyncOpenTabs, page: Page) -> None:
    expect(opentabs.start("probe_run", key="k", steps=[])).to_succeed()
    page.evaluate("probe.report()")


@pytest.mark.parametrize("_", range(5))
def test_breaks_by_reporting_when_the_test_is_over(
    opentabs: SyncOpenTabs, page: Page, _: int
) -> None:
    expect(opentabs.plugin("probe")).to_be_ready()
    late = "{ set: () => setTimeout(() => probe.report()) }"
    page.evaluate(f"Object.defineProperty(probe.finished, 'k', {late})")
    opentabs.call("probe_run", key="k", steps=[])


@pytest.mark.opentabs(allow_breaches=True)
def test_breaches_that_are_allowed_pass(opentabs: SyncOpenTabs) -> None:
    steps = [{"report": {"progress": 2}}, {"report": {"progress": 1}}]
    expect(opentabs.start("probe_run", key="k", steps=steps)).to_progress(min=2)


# --- faults that do nothing ---


def test_fails_of_a_fault_that_never_fires(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.drop("websocket", kind="tool.progress")
    opentabs.faults.delay("port", 0.01, kind="tool.result", nth=2)
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_fails_of_a_fault_that_was_cleared_before_it_fired(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.drop("event", kind="tool.error")
    opentabs.faults.clear()
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_a_fault_need_not_fire_where_the_test_says_so(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.drop("websocket", kind="tool.progress", optional=True)
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_a_fault_that_is_replayed_need_do_no_more_than_it_did(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.replay(FaultLog(0, (InjectedFault(Rule("port", "drop", kind="tool.error")),)))
    opentabs.faults.drop("port", kind="tool.error")
    expect(opentabs.start("demo_list_channels")).to_succeed()


def test_a_fault_that_fires_in_the_last_message_has_fired(opentabs: SyncOpenTabs) -> None:
    opentabs.faults.delay("event", 0.01, kind="tool.result")
    expect(opentabs.start("demo_list_channels")).to_succeed()
