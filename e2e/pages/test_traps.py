"""What browsers do to documents and workers, and how the calls in them end."""

import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import anyio
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.chain import (
    HOLD,
    KILLS,
    PROBE,
    Kill,
    Running,
    Tab,
    another_worker,
    extension_worker,
    wait_for_document,
)
from e2e.waiting import PATIENT
from opentabs_py.browser.chromium import find_chromium
from opentabs_py.config.settings import load_settings
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

REPORTS = [{"report": {"progress": n}} for n in range(1, 6)]


@pytest.mark.parametrize("how", KILLS)
async def test_a_worker_killed_in_any_way_loses_nothing(tab: Tab, how: Kill) -> None:
    steps = [*REPORTS[:2], HOLD, *REPORTS[2:]]
    async with anyio.create_task_group() as group:
        running = await tab.start(group, steps, "killed")
        async with another_worker(tab.tabs.internals.bridge):
            await tab.kill_worker(how)
        await tab.release("killed")
        await running.wait()

    assert running.value == {"key": "killed", "result": "killed"}
    assert [report.progress for report in running.reports] == [1, 2, 3, 4, 5]
    assert await tab.page.evaluate("probe.runs") == {"killed": 1}


async def test_a_worker_killed_while_the_page_blocks_for_seconds_loses_nothing(tab: Tab) -> None:
    # The page cannot report itself until it no longer blocks.
    async with anyio.create_task_group() as group:
        running = Running()
        group.start_soon(running.run, tab, [{"report": {}}, {"block": 4500}], "blocked")
        await running.wait_for_report()
        other = await tab.page.context.new_page()
        await Tab(other, 0, tab.tabs).kill_worker()
        await running.wait()
        await other.close()

    assert running.error is None
    assert running.value == {"key": "blocked", "result": "blocked"}
    assert running.seconds > 4


async def test_after_the_extension_was_reloaded_tabs_work_and_their_old_calls_have_ended(
    site: str,
) -> None:
    async with OpenTabs(settings=load_settings(port=0), plugins=[PROBE]) as tabs:
        page = await tabs.open(f"{site}/reloaded")
        before = await wait_for_document(tabs, page.url)
        tab = Tab(page, before.tab_id, tabs)
        await page.evaluate("() => { window.first = probe }")  # the adapter will be injected again
        async with anyio.create_task_group() as group:
            running = await tab.start(group, [{"wait": 60_000}], "orphaned")
            await (await extension_worker(tabs)).evaluate(
                "() => void setTimeout(() => chrome.runtime.reload(), 0)"
            )
            await running.wait()
        reason = await page.wait_for_function("first.aborted.orphaned")
        assert await reason.json_value() == "the extension was reloaded"
        await wait_for_document(tabs, page.url, but=before.document_id)

        assert await tabs.call("probe_echo", {"value": 1}) == {"value": 1}
    assert running.error is not None
    assert running.error.detail.code == "EXTENSION_RELOADED"
    assert "may have run" in str(running.error)


async def test_a_frame_that_is_removed_mid_call_changes_nothing(tab: Tab, site: str) -> None:
    await tab.page.evaluate(
        """async url => {
          const frame = document.createElement("iframe");
          frame.src = url;
          document.body.append(frame);
          await new Promise((loaded) => { frame.onload = loaded; });
        }""",
        f"{site}/framed",
    )
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 300}, *REPORTS], "framed")
        await tab.page.evaluate("document.querySelector('iframe').remove()")
        await running.wait()

    assert running.value == {"key": "framed", "result": "framed"}
    assert len(running.reports) == 5


async def test_a_hidden_tab_runs_its_tool_and_reports(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Playwright, which makes every tab count as visible."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    settings = load_settings(port=0)
    async with (
        OpenTabs(browser="none", settings=settings, plugins=[PROBE]) as tabs,
        an_undriven_browser(tabs.extension_dir, tmp_path / "profile", f"{site}/hidden") as open_tab,
    ):
        hidden = await wait_for_document(tabs, f"{site}/hidden")
        await open_tab(f"{site}/shown")
        await wait_for_document(tabs, f"{site}/shown")
        where = {"tabId": hidden.tab_id}
        reports: list[float | None] = []

        seen = await tabs.call("probe_give", {**where, "kind": "visibility"})
        steps = [*REPORTS, {"wait": 50}, {"flood": 1000}]
        value = await tabs.call(
            "probe_run",
            {**where, "key": "hidden", "steps": steps},
            on_progress=lambda report: reports.append(report.progress),
        )

    assert seen == {"visibility": "hidden"}
    assert value["key"] == "hidden"
    assert len(reports) == 1005


@asynccontextmanager
async def an_undriven_browser(
    extension: Path, profile: Path, url: str
) -> AsyncGenerator[Callable[[str], Awaitable[None]]]:
    """Run a Chromium without a debugger; yield a function that opens an active tab."""
    command = [
        str(find_chromium().path),
        "--headless=new",
        "--no-sandbox",
        "--no-first-run",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        f"--load-extension={extension}",
        f"--disable-extensions-except={extension}",
        url,
    ]
    quiet = subprocess.DEVNULL
    async with await anyio.open_process(command, stdout=quiet, stderr=quiet) as browser:

        async def open_tab(url: str) -> None:
            port = (profile / "DevToolsActivePort").read_text().splitlines()[0]
            async with httpx2.AsyncClient() as http:
                answer = await http.put(f"http://127.0.0.1:{port}/json/new?{quote(url)}")
                answer.raise_for_status()

        try:
            yield open_tab
        finally:
            browser.terminate()


PRERENDERS = """<!doctype html><title>shown</title>
<script type="speculationrules">
{"prerender": [{"source": "list", "urls": ["/next"], "eagerness": "immediate"}]}
</script>
<script>
(async () => {
  while ((await (await fetch("/may-go")).text()) !== "yes") {
    await new Promise((next) => setTimeout(next, 20));
  }
  location.href = "/next";
})();
</script>"""
IS_PRERENDERED = """<!doctype html><title>next</title>
<script>
if (document.prerendering) fetch("/prerendered");
document.addEventListener("prerenderingchange", () => fetch("/activated"));
</script>"""


async def test_a_prerendered_page_receives_no_calls_until_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Playwright, which forbids prerendering."""
    prerendered, activated, may_go = anyio.Event(), anyio.Event(), anyio.Event()

    async def page(request: Request) -> Response:
        match request.url.path:
            case "/shown":
                return HTMLResponse(PRERENDERS)
            case "/next":
                return HTMLResponse(IS_PRERENDERED)
            case "/prerendered":
                prerendered.set()
            case "/activated":
                activated.set()
        return Response("yes" if may_go.is_set() else "no")

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    listener = bind("127.0.0.1", 0)
    site = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        serve_http(Starlette(routes=[Route("/{path:path}", page)]), listener),
        OpenTabs(browser="none", settings=load_settings(port=0), plugins=[PROBE]) as tabs,
        an_undriven_browser(tabs.extension_dir, tmp_path / "profile", "about:blank") as open_tab,
    ):
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_connected()
        await open_tab(f"{site}/shown")
        shown = await wait_for_document(tabs, f"{site}/shown")
        with anyio.fail_after(PATIENT):
            await prerendered.wait()
        # Any message of the prerendered page would arrive before the end of this call.
        arguments = {"key": "shown", "steps": [{"wait": 300}], "result": 1}
        assert await tabs.call("probe_run", arguments) == {"key": "shown", "result": 1}
        assert [each.url for each in tabs.internals.bridge.tabs.documents] == [f"{site}/shown"]
        may_go.set()
        with anyio.fail_after(PATIENT):
            await activated.wait()
        document = await wait_for_document(tabs, f"{site}/next")
        value = await tabs.call("probe_echo", {"value": 2})

    assert document.tab_id == shown.tab_id
    assert document.protected
    assert value == {"value": 2}
