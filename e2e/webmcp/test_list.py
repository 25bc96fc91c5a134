"""The tools that pages register are listed, and follow the pages."""

from itertools import pairwise

import anyio
import pytest
from mcp.client import Client
from playwright.async_api import Page, expect

from e2e.chain import another_worker, extension_worker
from e2e.console.opened import console_page, go
from e2e.live_page import chromium
from e2e.waiting import PATIENT
from e2e.webmcp.page_tools import (
    ADD,
    ALL,
    BOOK,
    COUNT,
    PAY,
    VALUE,
    failure,
    offered,
    settings_for,
    tab_ids,
    wait_for,
    wait_listed,
)
from opentabs_py.core.page_tools import Cadence
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs
from tests.clients import hearing


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.usefixtures("page")
async def test_clients_see_names_titles_hints_and_whose_words_they_are(
    mode: str, tabs: OpenTabs, shop: str
) -> None:
    async with Client(tabs.mcp_url, mode=mode) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
    assert {*tools} == ALL | {"tabs_list", "tabs_open", "tabs_close"}
    add, pay = tools[ADD], tools[PAY]
    assert add.title == "Add two numbers (127.0.0.1)"
    origin = shop.removesuffix("/")
    assert add.description == f"A tool of the page {origin}, which describes it as: Adds."
    assert add.annotations is not None
    assert add.annotations.read_only_hint is True
    assert add.input_schema["required"] == ["a", "b"]
    assert "tabId" in add.input_schema["properties"]
    assert pay.annotations is not None
    assert pay.annotations.destructive_hint is True
    assert pay.meta is not None
    assert pay.meta["opentabs/webmcp"] == {
        "origin": origin,
        "name": "pay",
        "consequentialHint": True,
        "untrustedContentHint": True,
    }
    room = tools[BOOK].input_schema["properties"]["room"]
    assert room["enum"] == ["a", "b"]
    assert tools[BOOK].input_schema["required"] == ["who"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_are_notified_when_tools_come_and_go(
    mode: str, tabs: OpenTabs, page: Page
) -> None:
    async with hearing(tabs.mcp_url, mode) as client:
        await page.evaluate(
            """context.registerTool({name: "late", description: "d", execute() {}},
                                    {signal: (globalThis.end = new AbortController()).signal})"""
        )
        await client.wait_for_change()
        assert "page_127_0_0_1_late" in await client.tools()
        await page.evaluate("end.abort()")
        await client.wait_for_change()
        assert "page_127_0_0_1_late" not in await client.tools()


async def test_a_page_that_changes_its_tools_all_the_time_is_listed_at_a_client_s_pace(
    tabs: OpenTabs, page: Page
) -> None:
    changes: list[float] = []
    end = tabs.internals.registry.subscribe(lambda: changes.append(anyio.current_time()))
    await page.evaluate(
        """() => {
          let off, made = 0;
          setInterval(() => {
            off?.abort();
            off = new AbortController();
            const tool = {name: `flicker${made++}`, description: "d", execute() {}};
            context.registerTool(tool, {signal: off.signal});
          }, 5);
        }"""
    )
    await wait_for(tabs, lambda _: len(changes) == 3)
    end()
    assert all(later - earlier >= Cadence().apart for earlier, later in pairwise(changes))
    assert any(name.startswith("page_127_0_0_1_flicker") for name in offered(tabs))


async def test_a_tool_of_a_form_comes_and_goes_with_it(tabs: OpenTabs, page: Page) -> None:
    await page.evaluate("document.getElementById('book').remove()")
    await wait_for(tabs, lambda names: BOOK not in names)
    assert (await failure(tabs, BOOK, {"who": "Ann"})).detail.code == "UNKNOWN_TOOL"


async def test_tools_of_frames_are_not_served(tabs: OpenTabs, page: Page, shop: str) -> None:
    await page.evaluate(
        """url => new Promise(resolve => {
          const frame = document.createElement("iframe");
          frame.onload = () => {
            const add = {name: "framed", description: "d", execute() {}};
            resolve(frame.contentDocument.modelContext?.registerTool(add));
          };
          frame.src = url;
          document.body.append(frame);
        })""",
        shop,
    )
    await page.evaluate("context.registerTool({name: 'after', description: 'd', execute() {}})")
    await wait_for(tabs, lambda names: "page_127_0_0_1_after" in names)
    assert "page_127_0_0_1_framed" not in offered(tabs)


@pytest.mark.usefixtures("page")
async def test_search_and_gateway_find_them(tabs: OpenTabs) -> None:
    assert tabs.internals.registry.search("add two numbers")[0].name == ADD
    async with Client(f"{tabs.mcp_url}/gateway") as client:
        found = await client.call_tool("opentabs_list_tools", {"query": "numbers", "ready": True})
        assert isinstance(found.structured_content, dict)
        assert found.structured_content["tools"][0]["name"] == ADD
        called = await client.call_tool(
            "opentabs_call", {"name": ADD, "arguments": {"a": 1, "b": 2}}
        )
        assert called.structured_content == {"sum": 3}


async def test_the_console_knows_in_which_tabs_they_are(tabs: OpenTabs, page: Page) -> None:
    await page.bring_to_front()
    async with chromium(tabs.settings) as browser, console_page(browser, tabs) as console:
        await go(console, f"try/{ADD}")
        await expect(console.get_by_label("Tab", exact=True)).to_contain_text("Best match")
        await go(console, "tabs")
        await console.get_by_role("link", name="page--127-0-0-1").click()
        await expect(console.get_by_text("Registered by the site's own pages")).to_be_visible()


async def test_a_tool_that_its_page_has_taken_away_is_gone_at_once(
    tabs: OpenTabs, page: Page
) -> None:
    tool = tabs.internals.registry.find(ADD)
    await page.evaluate("off.abort()")
    with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
        await tabs.internals.tool_calls.call(tool, {"a": 1, "b": 2})
    assert caught.value.detail.code == "PAGE_TOOL_GONE"
    assert await page.evaluate("runs") == []


async def test_a_call_that_a_reload_has_overtaken_is_worth_making_again(
    tabs: OpenTabs, page: Page, shop: str
) -> None:
    tool = tabs.internals.registry.find(ADD)
    await page.goto("about:blank")
    with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
        await tabs.internals.tool_calls.call(tool, {"a": 1, "b": 2})
    assert (caught.value.detail.code, caught.value.detail.retryable) == ("PAGE_TOOL_GONE", True)
    await page.goto(shop)
    await wait_listed(tabs, lambda names: ADD in names)
    assert await tabs.internals.tool_calls.call(tool, {"a": 1, "b": 2}) == {"sum": 3}


async def test_a_tool_that_was_registered_again_is_not_the_one_that_was_listed(
    tabs: OpenTabs, page: Page
) -> None:
    listed = tabs.internals.registry.find(ADD)
    await page.evaluate(
        """() => {
          off.abort();
          const inputSchema = {type: "object", properties: {a: {type: "string"}}};
          const execute = () => { runs.push("other"); return "other" };
          return context.registerTool({name: "add", description: "d", inputSchema, execute});
        }"""
    )
    await wait_for(
        tabs, lambda _: offered(tabs)[ADD].input_schema["properties"]["a"] == {"type": "string"}
    )
    with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
        await tabs.internals.tool_calls.call(listed, {"a": 1, "b": 2})
    assert caught.value.detail.code == "PAGE_TOOL_GONE"
    assert await page.evaluate("runs") == []
    assert await tabs.call(ADD, {"a": "x"}) == "other"


async def test_a_page_that_comes_back_from_the_cache_has_its_tools_again(
    tabs: OpenTabs, page: Page, shop: str
) -> None:
    await page.evaluate("globalThis.kept = true")
    await page.goto(shop.replace("127.0.0.1", "localhost"))
    await wait_for(tabs, lambda names: "page_localhost_add" in names and ADD not in names)
    await page.go_back(wait_until="commit")  # no page loads
    await wait_for(tabs, lambda names: ADD in names)
    assert await page.evaluate("globalThis.kept") is True
    assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}


@pytest.mark.usefixtures("page")
async def test_pages_that_were_open_before_the_extension_have_tools_too(tabs: OpenTabs) -> None:
    worker = await extension_worker(tabs)
    async with another_worker(tabs.internals.bridge):
        await worker.evaluate("() => void setTimeout(() => chrome.runtime.reload(), 0)")
    with anyio.fail_after(PATIENT):
        while len(await tab_ids(tabs)) == 0:
            await tabs.internals.bridge.changed().wait()
    await wait_listed(tabs, lambda names: names >= ALL)
    assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}
    assert await tabs.call(COUNT, {"to": 2}) == "counted"


async def test_a_page_with_too_many_tools_or_too_large_ones_is_bounded(
    tabs: OpenTabs, page: Page
) -> None:
    await page.evaluate(
        """async () => {
          const execute = () => 1;
          const huge = {type: "object", description: "x".repeat(1e6)};
          await context.registerTool({name: "a", description: "d", inputSchema: huge, execute});
          await context.registerTool({name: "b", description: "d".repeat(1e6), execute});
          const all = [];
          for (let i = 0; i < 3000; i++) {
            const name = `many${i}`;
            all.push(context.registerTool({name, description: "d", execute}));
          }
          await Promise.all(all);
        }"""
    )
    await wait_for(tabs, lambda names: len(names) == 100)
    assert "page_127_0_0_1_a" not in offered(tabs)
    assert max(len(each.description) for each in offered(tabs).values()) < 1200
    assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}


async def test_a_page_that_replaces_builtins_breaks_only_its_own_tools(
    tabs: OpenTabs, shop: str
) -> None:
    page = await tabs.context.new_page()
    try:
        await page.goto(f"{shop}hostile")
        await wait_listed(tabs, lambda names: names >= ALL)
        reports: list[ProgressReport] = []
        assert await tabs.call(COUNT, {"to": 3}, on_progress=reports.append) == "counted"
        assert [report.progress for report in reports] == [1, 2, 3]
        assert await tabs.call(VALUE) is None
    finally:
        await page.close()


async def test_nothing_of_it_is_there_unless_it_is_turned_on(shop: str) -> None:
    settings = settings_for().model_copy(update={"webmcp": ()})
    async with OpenTabs(settings=settings, args=["--enable-features=WebMCP"]) as tabs:
        page = await tabs.open(shop)
        assert await page.evaluate("document.modelContext.registerTool.name") == "registerTool"
        assert tabs.internals.bridge.plugin_sync.plugins == []
        assert not tabs.internals.bridge.tabs.documents
        assert offered(tabs) == {}
