"""`expect` in async tests: the same expectations, for calls and plugins of `OpenTabs`."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright._impl import _assertions

from e2e.chain import PROBE, Tab
from e2e.kit.runs import KitRun, run_kit
from opentabs_py.calling.running import RunningCall
from opentabs_py.testing import OpenTabs, expect

pytestmark = pytest.mark.anyio

HANG = {"wait": 60_000}
STEPS = [{"report": {"progress": 1}}, {"log": "read page 7"}, {"wait": 200}]


async def start(tab: Tab, *steps: Any, **more: Any) -> RunningCall:
    arguments = {"key": "k", "steps": steps, "tabId": tab.id, **more}
    return await tab.tabs.start("probe_run", arguments)


async def test_what_holds_of_a_call_passes(tab: Tab) -> None:
    call = await start(tab, *STEPS, result="the value")

    await expect(call).to_succeed(within=5)
    await expect(call).to_progress([{"progress": 1}])
    await expect(call).to_progress(min=1, monotonic=True)
    await expect(call).to_return({"result": "the value"})
    await expect(call).to_match_output_schema()
    await expect(call).to_log("warning", "page 7")
    await expect(call).not_to_fail()
    await expect(call).not_to_time_out()
    await expect(call).not_to_be_cancelled()
    await expect(call).not_to_return({"result": "another"})


async def test_a_call_is_seen_while_it_runs_and_when_it_is_cancelled(tab: Tab) -> None:
    call = await start(tab, STEPS[0], HANG)
    await expect(call).to_progress(min=1)
    assert not call.ended

    call.cancel()

    await expect(call).to_be_cancelled()


async def test_a_failed_expectation_shows_the_hops_of_the_call(tab: Tab) -> None:
    call = await start(tab, *STEPS)

    with pytest.raises(AssertionError) as failure:
        await expect(call).to_fail(code="NOT_FOUND")

    text = str(failure.value)
    assert text.startswith("probe_run: expected to fail with code='NOT_FOUND', within 5 s\n")
    for hop in ("server → service worker", "relay → page", "tool", "service worker → server"):
        assert hop in text


async def test_soft_expectations_are_collected_with_those_of_playwright(tab: Tab) -> None:
    call = await start(tab, *STEPS)

    await expect.soft(call).to_fail()
    await expect.soft(tab.page).to_have_title("another", timeout=1)

    collected = _assertions._soft_errors  # pytest-playwright's, which fails this test with them
    assert collected is not None
    texts = [str(error) for error in collected]
    collected.clear()
    assert [text.partition(",")[0].partition("\n")[0] for text in texts] == [
        "probe_run: expected to fail",
        "Page title expected to be 'another'",
    ]


async def test_a_plugin_gets_ready_and_unready(
    tabs: OpenTabs, open_tab: Callable[..., Any]
) -> None:
    probe = tabs.plugin("probe")
    assert tabs.plugin().manifest is probe.manifest
    tab = await open_tab("unready", "unavailable")
    await expect(probe).to_be_unavailable()
    await expect(probe).not_to_be_ready()

    await tab.page.evaluate("document.body.dataset.ready = 'yes'")
    await tab.page.reload()
    with pytest.raises(AssertionError, match="plugin probe: expected to be ready, within 0"):
        await expect(probe).to_be_ready(within=0.1)

    with pytest.raises(LookupError, match="There is no plugin 'nope'; there are: probe"):
        tabs.plugin("nope")


async def test_pages_are_playwright_s(tab: Tab) -> None:
    await expect(tab.page).to_have_title("page")
    await expect(tab.page.locator("body")).to_have_text("a page")


async def test_two_sessions_are_two_people(site: str) -> None:
    async with OpenTabs(plugins=[PROBE]) as ann, OpenTabs(plugins=[PROBE]) as ben:
        of_ann, of_ben = [await each.open(f"{site}/page") for each in (ann, ben)]
        await of_ann.evaluate("document.cookie = 'who=ann'")

        await expect(await ann.start("probe_echo", {"value": 1})).to_return({"value": 1})
        await expect(await ben.start("probe_echo", {"value": 2})).to_return({"value": 2})
        assert await of_ben.evaluate("document.cookie") == ""


@pytest.fixture(scope="module")
def among_others(tmp_path_factory: pytest.TempPathFactory) -> KitRun:
    return run_kit(tmp_path_factory.mktemp("async"), "async")


def test_tests_that_await_run_in_one_process_with_those_that_do_not(among_others: KitRun) -> None:
    for name in ("test_one_does_not_await", "test_one_requests_the_fixture_while_it_runs"):
        assert among_others[name].outcome == "passed", among_others.output
    assert among_others["test_one_awaits"].outcome == "passed", among_others.output


def test_an_async_test_learns_what_to_use_instead_of_the_fixture(
    among_others: KitRun,
) -> None:
    text = among_others["test_one_awaits_with_the_fixture_for_those_that_do_not"].text

    assert "async with OpenTabs(plugins=opentabs_plugins) as tabs" in text


def test_a_loop_that_is_run_too_late_is_an_error_that_explains_why(
    among_others: KitRun,
) -> None:
    assert among_others["test_one_runs_a_loop_by_itself"].outcome == "failed"
    assert "An earlier test used Playwright's sync API" in among_others.output
    assert "Tests written with `async def` run before those" in among_others.output
