"""A page gains nothing by reaching a Window before its document exists.

Chrome reuses the Window of the blank page that `window.open()` returns for the page of the same
origin that replaces it, with everything that the opener changed in it.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from e2e.chain import Tab, wait_for_document
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogParams
from opentabs_py.session.session import OpenTabs

OWN = f"() => {{ {(Path(__file__).parent / 'hostile_opener.js').read_text()} }}"

# Each opens `url` in a Window that the attacker had before, and returns that Window.
KEPT = {
    "a tab": "url => own(window.open(url))",
    "a popup": "url => own(window.open(url, 'a popup', 'popup,width=300'))",
    "a frame's tab": """url => {
      const frame = document.createElement("iframe");
      frame.srcdoc = "<body>";
      document.body.append(frame);
      return own(frame.contentWindow.open(url));
    }""",
    "a tab without an opener": """url => {
      const opened = own(window.open(url));
      opened.opener = null;
      return opened;
    }""",
}
REPLACED = {
    "a blank tab that moves on": """url => {
      const opened = own(window.open("about:blank"));
      opened.location.href = url;
      return opened;
    }""",
    "a tab opened twice by one name": """url => {
      own(window.open("", "twice"));
      return window.open(url, "twice");
    }""",
    "a blob that moves on": """async url => {
      const blob = new Blob(["<body>"], { type: "text/html" });
      const opened = window.open(URL.createObjectURL(blob));
      while (opened.location.protocol !== "blob:") await new Promise((r) => setTimeout(r, 10));
      own(opened);
      opened.location.href = url;
      return opened;
    }""",
    "a tab whose blank document was written": """url => {
      const opened = window.open("about:blank");
      opened.document.open();
      own(opened);
      opened.document.write("<body>written");
      opened.document.close();
      opened.location.href = url;
      return opened;
    }""",
    "a page that a javascript: URL made": """url => {
      const opened = own(window.open("about:blank"));
      opened.location.href = "javascript:'<body>made'";
      opened.location.href = url;
      return opened;
    }""",
}
STEPS = [{"report": {"progress": 1, "message": "SECRET"}}, {"wait": 20}] * 3


async def open_as_attacker(tab: Tab, way: str) -> tuple[Tab, Any]:
    """Make a page open another one; return the new page, and its Window in the opener."""
    await tab.page.evaluate(OWN)
    url = f"{tab.page.url.partition('#')[0]}?victim#{id(way)}-{tab.id}"
    async with tab.page.context.expect_page() as opening:
        window = await tab.page.evaluate_handle(way, url)
    page = await opening.value
    document = await wait_for_document(tab.tabs, url)
    assert document.protected
    return Tab(page, document.tab_id, tab.tabs), window


async def run_secretly(victim: Tab) -> list[float | None]:
    """Run a tool with secrets in its input, reports and result, and return what it reported."""
    reports: list[ProgressReport] = []
    arguments = {"key": "SECRET", "steps": STEPS, "result": {"SECRET": True}}
    value = await victim.call("run", arguments, on_progress=reports.append)
    assert value == {"key": "SECRET", "result": {"SECRET": True}}
    assert [report.message for report in reports] == ["SECRET"] * 3
    return [report.progress for report in reports]


@pytest.mark.parametrize("way", [*KEPT, *REPLACED])
async def test_an_opener_forges_nothing_in_the_page_it_opens(tab: Tab, way: str) -> None:
    victim, _ = await open_as_attacker(tab, {**KEPT, **REPLACED}[way])

    assert await run_secretly(victim) == [1, 1, 1]
    await victim.page.close()


@pytest.mark.parametrize("way", KEPT)
async def test_an_opener_reads_nothing_of_the_calls_in_the_page_it_opens(
    tab: Tab, way: str
) -> None:
    victim, window = await open_as_attacker(tab, KEPT[way])
    await run_secretly(victim)
    await victim.fail("fail", {"kind": "plain"})

    assert await window.evaluate("w => w.owner") == "the opener", "the Window was not kept"
    seen: list[str] = await window.evaluate("w => [...w.seen]")
    assert seen, "the opener spies on nothing, so this proves nothing"
    # The page may see the lines of the tool itself, but not those of the runtime.
    assert [text for text in seen if re.search("SECRET|[0-9a-f]{32}", text)] == []
    # The stack of a tool's error names the runtime, but gives away none of its functions.
    ours = {text for text in seen if text.startswith("site runtime.js")}
    assert ours == {"site runtime.js undefined undefined"}
    await victim.page.close()


async def test_a_document_that_the_opener_writes_itself_is_not_a_page_of_a_plugin(
    tab: Tab, tabs: OpenTabs
) -> None:
    known = {document.document_id for document in tabs.internals.bridge.tabs.documents}
    async with tab.page.context.expect_page() as opening:
        await tab.page.evaluate(
            """() => {
              const opened = window.open("about:blank");
              opened.document.open();
              opened.document.write("<body>looks like the site");
              opened.document.close();
            }"""
        )
    page = await opening.value
    await tab.call("echo", {"value": 1})

    assert await page.evaluate("location.href") == tab.page.url.partition("#")[0]
    assert {document.document_id for document in tabs.internals.bridge.tabs.documents} <= known
    await page.close()


async def test_document_open_neither_cuts_the_channel_nor_opens_it(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await tab.page.evaluate(OWN)
    logged: list[str] = []

    def note(params: LogParams) -> None:
        logged.extend(entry.message for entry in params.entries)

    monkeypatch.setattr(tab.tabs.internals.bridge, "on_log", note)
    steps = [{"wait": 300}, *STEPS, {"log": "still heard"}]
    async with anyio.create_task_group() as group:
        running = await tab.start(group, steps, "through")
        await tab.page.evaluate(
            """() => {
              document.open();
              own(window);
              document.write("<body>written");
              document.close();
            }"""
        )
        await running.wait()

    assert running.value == {"key": "through", "result": "through"}
    assert [report.progress for report in running.reports] == [1, 1, 1]
    assert await tab.call("echo", {"value": 1}) == {"value": 1}
    assert logged == ["still heard"]
    seen = json.loads(await tab.page.evaluate("JSON.stringify(seen)"))
    assert seen, "the page spies on nothing, so this proves nothing"
    assert [text for text in seen if re.search("[0-9a-f]{32}", text)] == []


@pytest.mark.parametrize("kind", ["page", "strict", "no-frames"])
async def test_a_page_sees_nothing_of_the_frame_that_gave_the_builtins(
    open_tab: Callable[..., Any], kind: str
) -> None:
    tab: Tab = await open_tab(kind)
    document = await wait_for_document(tab.tabs, tab.page.url)

    assert document.protected
    assert await tab.page.evaluate("frames.length") == 0
    assert await tab.page.evaluate("document.querySelectorAll('iframe, opentabs').length") == 0
    entries = "performance.getEntries().filter(({ name }) => name.includes('opentabs')).length"
    assert await tab.page.evaluate(entries) == 0


async def test_a_sandboxed_page_with_scripts_works_and_says_it_is_unprotected(
    open_tab: Callable[..., Any],
) -> None:
    tab: Tab = await open_tab("sandbox-scripts")
    document = await wait_for_document(tab.tabs, tab.page.url)

    assert not document.protected
    assert await tab.call("echo", {"value": 1}) == {"value": 1}


async def test_events_that_a_page_makes_do_not_end_its_calls(tab: Tab) -> None:
    async with anyio.create_task_group() as group:
        running = await tab.start(group, [{"wait": 200}, {"report": {"progress": 1}}], "going on")
        await tab.page.evaluate(
            """() => {
              for (const type of ["pageshow", "pagehide"]) {
                dispatchEvent(new PageTransitionEvent(type, { persisted: true }));
              }
              document.dispatchEvent(new Event("prerenderingchange"));
            }"""
        )
        await running.wait()

    assert running.value == {"key": "going on", "result": "going on"}
