"""Pages come, go and misbehave; each call ends at once with the right error."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.async_api import Route

from e2e.chain import PROBE, Running, Tab, extension_worker, wait_for_document
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import ChainError
from opentabs_py.session.session import OpenTabs
from tests.waiting import until_all_wait

WAITING = [{"wait": 60_000}]
BLOCK = 10_000 if "SOAK" in os.environ else 3000  # ms
BLOCKS = """<!doctype html><script>
const request = new XMLHttpRequest();
request.open("GET", "/held", false);
request.send();
</script>"""
UNLOAD = """async () => {
  for (const { id } of await chrome.tabs.query({ active: false })) await chrome.tabs.discard(id);
}"""
UNLOADED = """async () => {
  const open = await chrome.tabs.query({ active: false });
  return open.map(({ url, discarded }) => [url, discarded]);
}"""
ALLOW_ON = """([id, hostAccess]) => chrome.developerPrivate.updateExtensionConfiguration({
  extensionId: id, hostAccess,
})"""
LONG = 10.0  # s; far below the idle limit, so what ends within it did not time out


async def lose(tab: Tab, how: Any) -> ChainError:
    """Start a call, do something to its page, and return the call's error."""
    async with anyio.create_task_group() as group:
        running = await tab.start(group, WAITING, "lost")
        await how()
        with anyio.fail_after(LONG):
            await running.ended.wait()
    assert isinstance(running.error, ChainError)
    assert "may have run" in str(running.error)
    return running.error


async def test_a_tab_closed_mid_call_ends_it_at_once(tab: Tab) -> None:
    assert (await lose(tab, tab.page.close)).detail.code == "TAB_CLOSED"


async def test_a_reload_mid_call_ends_it_at_once(tab: Tab) -> None:
    assert (await lose(tab, tab.page.reload)).detail.code == "PAGE_NAVIGATED"


async def test_a_navigation_to_another_page_of_the_site_ends_it_at_once(
    tab: Tab, site: str
) -> None:
    error = await lose(tab, lambda: tab.page.goto(f"{site}/other"))

    assert error.detail.code == "PAGE_NAVIGATED"


async def test_a_navigation_away_from_the_site_ends_it_at_once(tab: Tab) -> None:
    error = await lose(tab, lambda: tab.page.goto("about:blank"))

    assert error.detail.code == "PAGE_NAVIGATED"


@pytest.mark.parametrize(
    "leave", ["location.reload()", "location.href = '/other'", "location.href = 'about:blank'"]
)
async def test_a_tool_that_waits_for_its_site_when_its_page_is_left_has_no_error_of_its_own(
    tab: Tab, leave: str
) -> None:
    async with anyio.create_task_group() as group:
        running = Running()
        group.start_soon(running.run, tab, [{"report": {}}, {"fetch": "/never"}], "left")
        await running.wait_for_report()
        await tab.page.evaluate(leave)
        await running.wait()

    assert isinstance(running.error, ChainError)
    assert running.error.detail.code == "PAGE_NAVIGATED"
    assert not running.error.detail.retryable


async def test_a_crash_mid_call_ends_it_at_once(tab: Tab) -> None:
    async def crash() -> None:
        cdp = await tab.page.context.new_cdp_session(tab.page)
        with anyio.move_on_after(1):  # the answer dies with the page
            await cdp.send("Page.crash")

    assert (await lose(tab, crash)).detail.code == "PAGE_CRASHED"


async def test_push_state_mid_call_changes_nothing(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 400}], "pushed")
        await tab.page.evaluate("history.pushState({}, '', '/elsewhere')")
        await running.wait()

    assert running.value["result"] == "pushed"


async def test_what_a_tool_reported_and_returned_arrives_though_it_leaves_its_page_at_once(
    tab: Tab,
) -> None:
    # Most of this many reports still wait for acknowledgements when the document goes away.
    count = 5_000
    leave = "{get: () => 0, set: () => location.reload()}"
    await tab.page.evaluate(f"() => void Object.defineProperty(probe.finished, 'leave', {leave})")
    reports: list[ProgressReport] = []

    arguments = {"key": "leave", "steps": [{"flood": count}], "result": "left"}
    value = await tab.call("run", arguments, on_progress=reports.append)

    assert value["result"] == "left"
    assert [report.progress for report in reports] == list(range(1, count + 1))
    # Playwright never finishes closing a page that is just being reloaded.
    await tab.page.wait_for_function("globalThis.probe && !probe.runs.leave")


async def test_a_page_that_is_navigated_is_injected_again(tab: Tab, site: str) -> None:
    await tab.page.goto(f"{site}/again")
    await wait_for_document(tab.tabs, f"{site}/again")

    assert await tab.call("echo", {"value": 1}) == {"value": 1}


async def test_a_call_right_after_a_navigation_waits_for_the_page(tab: Tab, site: str) -> None:
    await tab.page.goto(f"{site}/right-after")

    assert await tab.call("echo", {"value": 1}) == {"value": 1}


async def test_a_page_back_from_the_cache_works_and_its_old_call_was_aborted(
    tab: Tab,
) -> None:
    await tab.page.evaluate("probe.mark = 'kept'")

    error = await lose(tab, lambda: tab.page.goto("about:blank"))
    await tab.page.go_back(wait_until="commit")
    assert await tab.page.evaluate("probe.mark") == "kept", "the page was not in the cache"

    assert error.detail.code == "PAGE_NAVIGATED"
    reason = await tab.page.wait_for_function("probe.aborted.lost")
    assert await reason.json_value() == "the page was left and came back"
    assert await tab.call("echo", {"value": 1}) == {"value": 1}


@pytest.mark.parametrize("kind", ["strict", "page"])
async def test_tools_work_on_a_page_whose_policy_forbids_scripts(
    open_tab: Callable[..., Any], kind: str
) -> None:
    tab = await open_tab(kind)

    assert await tab.call("echo", {"value": kind}) == {"value": kind}


async def test_a_sandboxed_page_runs_no_plugin_and_says_why(open_tab: Callable[..., Any]) -> None:
    tab = await open_tab("sandbox", "missing")
    error = await tab.refuse("echo", {"value": 1})

    assert (error.detail.code, error.detail.retryable) == ("PLUGIN_NOT_LOADED", False)
    assert "scripts cannot run in this page" in error.detail.message


async def test_a_page_that_is_not_ready_is_refused_and_taken_once_it_is(
    open_tab: Callable[..., Any],
) -> None:
    tab = await open_tab("unready", "unavailable")
    error = await tab.refuse("echo", {"value": 1})
    await tab.page.evaluate("document.body.dataset.ready = 'yes'")

    assert error.detail.code == "TAB_NOT_READY"
    assert "isReady() is not true" in error.detail.message
    await wait_for_document(tab.tabs, tab.page.url)
    assert await tab.call("echo", {"value": 1}) == {"value": 1}


async def test_a_user_who_signs_out_or_in_is_noticed_by_the_next_call(
    open_tab: Callable[..., Any],
) -> None:
    tab = await open_tab()
    await tab.call("run", {"key": "signed in"})

    await tab.page.evaluate("document.body.dataset.ready = 'no'")
    error = await tab.refuse("run", {"key": "signed out"})
    await tab.page.evaluate("document.body.dataset.ready = 'yes'")
    value = await tab.call("run", {"key": "back"})

    assert error.detail.code == "TAB_NOT_READY"
    assert value["key"] == "back"
    assert await tab.page.evaluate("probe.runs") == {"signed in": 1, "back": 1}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_mcp_client_asks_its_user_to_sign_in_and_the_call_runs(
    tab: Tab, mode: Any
) -> None:
    asked: list[str] = []

    async def sign_in(_context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        await tab.page.evaluate("document.body.dataset.ready = 'yes'")
        return types.ElicitResult(action="accept", content={"answer": "once"})

    await tab.page.evaluate("document.body.dataset.ready = 'no'")
    transport, callback = streamable_http_client(tab.tabs.mcp_url), cast("Any", sign_in)
    async with Client(transport, mode=mode, elicitation_callback=callback) as client:
        result = await client.call_tool("probe_run", {"key": "signed in", "tabId": tab.id})

    assert not result.is_error, result.content
    assert len(asked) == 1
    assert "Sign in there; then the call continues." in asked[0]
    assert await tab.page.evaluate("probe.runs") == {"signed in": 1}


async def test_a_call_takes_the_next_tab_when_the_user_signed_out_in_the_first(
    open_tab: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other, signed_out = await open_tab("one"), await open_tab("two")
    await signed_out.page.evaluate("document.body.dataset.ready = 'no'")
    monkeypatch.setattr(other.tabs.internals.bridge.tabs, "grace", 0.0)

    value = await other.tabs.call("probe_run", {"key": "anywhere"})

    assert value["key"] == "anywhere"
    assert await other.page.evaluate("probe.runs") == {"anywhere": 1}


async def test_a_blocked_page_delays_no_other(open_tab: Callable[..., Any]) -> None:
    blocked = await open_tab()
    free = await open_tab(host="localhost")  # another site, so another renderer process
    async with anyio.create_task_group() as group:
        running = Running()
        group.start_soon(running.run, blocked, [{"report": {}}, {"block": BLOCK}], "busy")
        await running.wait_for_report()

        assert await free.call("echo", {"value": 1}) == {"value": 1}
        assert not running.ended.is_set()
        await running.wait()


async def test_a_page_that_blocks_as_it_replaces_another_delays_no_news_of_other_tabs(
    open_tab: Callable[..., Any], tabs: OpenTabs, site: str
) -> None:
    left, other = await open_tab(), await open_tab(host="localhost")
    blocked, released = anyio.Event(), anyio.Event()

    async def block(route: Route) -> None:
        await route.fulfill(content_type="text/html", body=BLOCKS)

    async def hold(route: Route) -> None:
        blocked.set()
        await released.wait()
        await route.fulfill(body="")

    await left.page.route("**/blocks", block)
    await left.page.route("**/held", hold)
    async with anyio.create_task_group() as group:
        group.start_soon(left.page.goto, f"{site}/blocks")
        try:
            with anyio.fail_after(LONG):
                await blocked.wait()
                await other.page.evaluate("document.title = 'news'")
                while "news" not in [
                    document.title for document in tabs.internals.bridge.tabs.documents
                ]:
                    await tabs.internals.bridge.changed().wait()
        finally:
            released.set()


async def test_a_tab_that_was_open_before_the_plugin_works_and_says_it_is_unprotected(
    site: str,
) -> None:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(settings=settings, plugins=[PROBE]) as tabs:
        specs = tabs.internals.bridge.plugin_sync.plugins
        await tabs.internals.bridge.sync_plugins([])
        await tabs.internals.bridge.wait_connected()
        await tabs.open(f"{site}/early")

        await tabs.internals.bridge.sync_plugins(specs)
        with anyio.fail_after(PATIENT):
            document = await tabs.internals.bridge.wait_ready("probe")

        assert not document.protected
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}


async def test_a_page_that_was_in_the_cache_when_the_plugin_came_works_once_it_is_back(
    site: str,
) -> None:
    settings = load_settings(port=0, profile=None, headed=False)
    cached = ["--disable-back-forward-cache"]  # without it, no document would enter the cache
    async with OpenTabs(settings=settings, plugins=[PROBE], ignore_default_args=cached) as tabs:
        specs = tabs.internals.bridge.plugin_sync.plugins
        await tabs.internals.bridge.sync_plugins([])
        page = await tabs.context.new_page()
        await page.goto(f"{site}/early")
        await page.evaluate("globalThis.mark = 'kept'")
        await page.goto("about:blank")

        await tabs.internals.bridge.sync_plugins(specs)
        await page.go_back(wait_until="commit")

        assert await page.evaluate("globalThis.mark") == "kept", "the page was not in the cache"
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_ready("probe")
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}


async def test_no_tab_is_an_error_that_says_what_to_open() -> None:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(settings=settings, plugins=[PROBE]) as tabs:
        with pytest.raises(ChainError, match=re.escape("Open http://127.0.0.1/")) as caught:
            await tabs.call("probe_echo", {"value": 1})

    assert caught.value.detail.code == "TAB_NOT_FOUND"


async def test_a_site_where_the_browser_refuses_it_is_named_and_its_page_works_once_allowed(
    site: str,
) -> None:
    async with OpenTabs(settings=load_settings(port=0), plugins=[PROBE]) as tabs:
        bridge = tabs.internals.bridge
        extensions = await tabs.context.new_page()
        await extensions.goto("chrome://extensions")  # where the user does it
        extension = bridge.origin.removeprefix("chrome-extension://")
        await extensions.evaluate(ALLOW_ON, [extension, "ON_CLICK"])
        with anyio.fail_after(PATIENT):
            while not bridge.plugin_sync.problems:
                await bridge.changed().wait()
        await tabs.context.pages[0].goto(f"{site}/page")
        with pytest.raises(
            ChainError, match=r"does not allow it on http://127\.0\.0\.1/"
        ) as caught:
            await tabs.call("probe_echo", {"value": 1})
        assert caught.value.detail.code == "TAB_NOT_FOUND"

        await extensions.evaluate(ALLOW_ON, [extension, "ON_ALL_SITES"])
        with anyio.fail_after(PATIENT):
            await bridge.wait_ready("probe")
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}
        assert bridge.plugin_sync.problems == []


async def test_no_extension_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    settings = load_settings(port=0)
    async with OpenTabs(settings=settings, plugins=[PROBE], browser="none") as tabs:
        with pytest.raises(ChainError, match=f"{tabs.guide_url} shows how") as caught:
            await tabs.call("probe_echo", {"value": 1}, limits=Limits())

    assert caught.value.detail.code == "EXTENSION_NOT_CONNECTED"


async def test_a_tab_that_left_for_a_blank_page_does_not_count(site: str) -> None:
    async with OpenTabs(settings=load_settings(port=0), plugins=[PROBE]) as tabs:
        page = await tabs.open(f"{site}/page")
        await tabs.call("probe_echo", {"value": 1})
        await page.goto("about:blank")

        with pytest.raises(ChainError) as caught:
            await tabs.call("probe_echo", {"value": 1})

    assert caught.value.detail.code == "TAB_NOT_FOUND"


async def test_a_call_loads_the_tab_that_the_user_saw_last_if_the_browser_has_unloaded_all(
    site: str,
) -> None:
    """To save memory, or because it was restarted."""
    async with OpenTabs(settings=load_settings(port=0), plugins=[PROBE]) as tabs:
        for name in ("other", "last"):
            await tabs.open(f"{site}/{name}")
        await tabs.context.new_page()  # a tab in front cannot be unloaded
        worker = await extension_worker(tabs)
        await worker.evaluate(UNLOAD)
        with anyio.fail_after(PATIENT):
            while (bridge := tabs.internals.bridge).tabs.documents:
                await bridge.changed().wait()

        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}
        states = await worker.evaluate(UNLOADED)  # of the tabs that are not in front
        assert states == [[f"{site}/other", True], [f"{site}/last", False]]


async def test_calls_end_at_once_when_the_browser_is_closed(site: str) -> None:
    async with OpenTabs(settings=load_settings(port=0), plugins=[PROBE]) as tabs:
        page = await tabs.open(f"{site}/page")
        document = await wait_for_document(tabs, page.url)
        error = await lose(Tab(page, document.tab_id, tabs), tabs.context.close)

        assert tabs.browser.is_gone
        with pytest.raises(ChainError, match="not connected"):
            await tabs.call("probe_echo", {"value": 1})
    assert error.detail.code == "TAB_CLOSED"


async def test_a_broken_plugin_is_skipped_and_the_others_work(tmp_path: Path, site: str) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "package.json").write_text('{"name": "opentabs-plugin-broken"}')
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(settings=settings, plugins=[broken, PROBE]) as tabs:
        await tabs.open(f"{site}/page")

        assert [each.directory for each in tabs.skipped_plugins] == [broken]
        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}


async def test_a_call_waits_for_a_page_whose_server_has_not_answered_yet(
    tabs: OpenTabs, site: str
) -> None:
    """Until the first byte of its answer, the tab still shows the page before."""
    requested, answered = anyio.Event(), anyio.Event()

    async def hold(route: Route) -> None:
        requested.set()
        await answered.wait()
        await route.continue_()

    page = await tabs.context.new_page()
    await page.route("**/coming", hold)
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as group:
            group.start_soon(page.goto, f"{site}/coming")
            await requested.wait()
            group.start_soon(tabs.call, "probe_run", {"key": "early"})
            await until_all_wait()
            answered.set()
    assert await page.evaluate("probe.runs") == {"early": 1}
    await page.close()
