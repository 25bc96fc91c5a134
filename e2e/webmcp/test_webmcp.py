"""Tools that pages register themselves, with Chromium's own WebMCP and with our script."""

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from playwright.async_api import Page, Route, expect

from e2e.chain import KILLS, Advance, Kill, Tab, another_worker, extension_worker
from e2e.console.opened import console_page, go
from e2e.live_page import chromium
from e2e.waiting import PATIENT
from e2e.webmcp.site import serving_page
from opentabs_py.calling.listing import Listing
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import IDLE, Limits
from opentabs_py.core.page_tools import Cadence
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.questions import Question
from opentabs_py.errors import CallError
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock
from tests.clients import hearing

ADD, COUNT, HANG, PAY, VALUE, BOOK, CONFIRM = (
    f"page_127_0_0_1_{name}" for name in ("add", "count", "hang", "pay", "value", "book", "confirm")
)
ALL = {ADD, COUNT, HANG, PAY, VALUE, BOOK, CONFIRM}
REGISTERS_PAY = 'context.registerTool({\n  name: "pay",'


def settings_for(kind: str = "native", **more: Any) -> Any:
    return load_settings(
        port=0,
        profile=None,
        headed=False,
        webmcp=("http://127.0.0.1/*", "http://localhost/*"),
        webmcp_polyfill=kind == "polyfill",
        **{"permissions": {"default": "auto"}, **more},
    )


@pytest.fixture(scope="module")
async def shop() -> AsyncGenerator[str]:
    async with serving_page() as url:
        yield url


@pytest.fixture(scope="module")
def clock() -> StoppableClock:
    return StoppableClock()


@pytest.fixture(scope="module", params=["native", "polyfill"])
async def tabs(
    request: pytest.FixtureRequest,
    shop: str,  # noqa: ARG001 (entered before, because it is left after)
    clock: StoppableClock,
) -> AsyncGenerator[OpenTabs]:
    async with OpenTabs(
        settings=settings_for(request.param),
        ignore_default_args=["--disable-back-forward-cache"],
        _seams=Seams(clock=clock),
    ) as running:
        yield running


@pytest.fixture
async def page(tabs: OpenTabs, shop: str) -> AsyncGenerator[Page]:
    opened = await tabs.context.new_page()
    await opened.goto(shop)
    await wait_listed(tabs, lambda names: names >= ALL)
    yield opened
    if not opened.is_closed():
        await opened.close()
    await wait_listed(tabs, lambda names: not names)


def offered(tabs: OpenTabs) -> dict[str, Listing]:
    return {each.name: each for each in tabs.tools if each.is_of_page}


async def wait_listed(tabs: OpenTabs, holds: Callable[[set[str]], bool]) -> None:
    """Wait until the pages have the expected tools, and list them at once."""
    with anyio.fail_after(PATIENT):
        while True:
            changed = tabs.internals.bridge.changed()
            tabs.internals.page_tools.refresh()
            if holds({*offered(tabs)}):
                return
            await changed.wait()


async def wait_for(tabs: OpenTabs, holds: Callable[[set[str]], bool]) -> None:
    """Wait until the pages' tools have these names."""
    changed = anyio.Event()
    end = tabs.internals.registry.subscribe(lambda: changed.set())  # noqa: PLW0108 (it is replaced)
    try:
        with anyio.fail_after(PATIENT):
            while not holds({*offered(tabs)}):
                await changed.wait()
                changed = anyio.Event()
    finally:
        end()


async def failure(tabs: OpenTabs, name: str, arguments: Any = None, **more: Any) -> CallError:
    with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
        await tabs.call(name, arguments, **more)
    return caught.value


@dataclass
class Hanging:
    """A running call of `hang`, and how it ended."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    value: Any = None
    error: CallError | None = None

    async def run(self, tabs: OpenTabs, key: str, limits: Limits | None = None) -> None:
        with self.scope:
            try:
                self.value = await tabs.call(HANG, {"key": key}, limits=limits)
            except CallError as error:
                self.error = error


async def wait_running(page: Page, key: str) -> None:
    await page.wait_for_function("key => key in signals", arg=key)


async def test_either_the_browser_s_interface_is_tested_or_ours(
    request: pytest.FixtureRequest, page: Page
) -> None:
    source = await page.evaluate("ModelContext.toString()")
    assert ("[native code]" in source) == ("native" in request.node.name)


# --- the list ---


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


# --- calls ---


async def test_arguments_are_checked_before_the_page_hears_of_the_call(
    tabs: OpenTabs, page: Page
) -> None:
    assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}
    error = await failure(tabs, ADD, {"a": "one", "b": 2})
    assert error.detail.code == "INVALID_ARGUMENTS"
    assert await page.evaluate("runs") == [[1, 2]]


@pytest.mark.usefixtures("page")
async def test_progress_arrives_in_order(tabs: OpenTabs) -> None:
    reports: list[ProgressReport] = []
    assert await tabs.call(COUNT, {"to": 20}, on_progress=reports.append) == "counted"
    assert [report.progress for report in reports] == [*range(1, 21)]
    assert (reports[-1].total, reports[-1].message) == (20, "20 of 20")


async def test_an_error_is_the_tool_s_own(tabs: OpenTabs, page: Page) -> None:
    await page.evaluate("void (value = () => { throw new RangeError('too far') })")
    error = await failure(tabs, VALUE)
    assert (str(error), error.detail.code) == ("too far", "INTERNAL_ERROR")
    await page.evaluate(
        "void (value = async () => { throw {code: 'SOLD_OUT', message: 'none left'} })"
    )
    error = await failure(tabs, VALUE)
    assert (str(error), error.detail.code) == ("none left", "SOLD_OUT")


RESULTS = {
    "an object": "() => ({a: [1, {b: null}]})",
    "a map": "() => new Map([[1, 2]])",
    "text": "() => 'plain text'",
    "a number": "() => 1.5",
    "not a number": "() => NaN",
    "a big number": "() => 12345678901234567890n",
    "nothing": "() => undefined",
    "null": "() => null",
    "a function": "() => () => 1",
    "a promise": "async () => ({late: true})",
}


@pytest.mark.parametrize("source", RESULTS.values(), ids=RESULTS.keys())
async def test_a_result_is_what_the_browser_makes_of_it(
    source: str, tabs: OpenTabs, page: Page
) -> None:
    await page.evaluate(f"void (value = {source})")
    expected = await page.evaluate(
        """async () => {
          const tools = await context.getTools();
          return context.executeTool(tools.find(({name}) => name === "value"), {});
        }"""
    )
    result = await tabs.call_tool(VALUE)
    [block] = result.content
    assert isinstance(block, types.TextContent)
    assert re.sub(r"\s", "", block.text) == re.sub(r"\s", "", expected)


async def test_a_result_that_cannot_be_json_says_so(tabs: OpenTabs, page: Page) -> None:
    await page.evaluate("void (value = () => { const ring = {}; ring.ring = ring; return ring })")
    assert (await failure(tabs, VALUE)).detail.code == "RESULT_NOT_SERIALIZABLE"


async def test_the_page_sees_which_tool_runs_and_which_was_stopped(
    tabs: OpenTabs, page: Page, advance: Advance
) -> None:
    await tabs.call(ADD, {"a": 1, "b": 2})
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as group:
            group.start_soon(Hanging().run, tabs, "stopped")
            await wait_running(page, "stopped")
            await advance(IDLE)
    await page.wait_for_function("events.some(([type]) => type === 'toolcancel')")
    assert await page.evaluate("events") == [
        ["toolactivated", "add"],
        ["toolactivated", "hang"],
        ["toolcancel", "hang"],
    ]


@pytest.mark.parametrize("which", ["idle", "ceiling"])
async def test_each_timer_ends_a_call_and_the_tool_s_signal_fires(
    which: str, tabs: OpenTabs, page: Page, advance: Advance
) -> None:
    other = "ceiling" if which == "idle" else "idle"
    call = Hanging()
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as group:
            group.start_soon(call.run, tabs, which, Limits(**{which: 1.0, other: 5.0}))
            await wait_running(page, which)
            await advance(1.0)
    assert call.error is not None
    assert call.error.detail.code == f"TIMEOUT_{which.upper()}"
    await page.wait_for_function("key => signals[key].aborted", arg=which)
    reason = await page.evaluate("key => signals[key].reason.message", which)
    assert f"Timed out ({which})" in reason


async def test_a_client_s_cancellation_reaches_the_tool_s_signal(
    tabs: OpenTabs, page: Page
) -> None:
    call = Hanging()
    async with anyio.create_task_group() as group:
        group.start_soon(call.run, tabs, "cancelled")
        await wait_running(page, "cancelled")
        call.scope.cancel()
    await page.wait_for_function("signals.cancelled.aborted")


# --- forms ---


@pytest.mark.usefixtures("page")
async def test_a_form_is_filled_in_and_submitted(tabs: OpenTabs) -> None:
    value = await tabs.call(BOOK, {"who": "Ann", "seats": 3, "room": "b", "quiet": True})
    assert value == {"fields": {"who": "Ann", "seats": "3", "room": "b", "quiet": "yes"}}


@pytest.mark.usefixtures("page")
async def test_a_form_s_error_is_the_page_s_own(tabs: OpenTabs) -> None:
    assert str(await failure(tabs, BOOK, {"who": "Nobody"})) == "no tables left"
    assert await tabs.call(BOOK, {"who": "Ann"}) == {
        "fields": {"who": "Ann", "seats": "", "room": "a"}
    }


async def test_a_form_without_autosubmit_waits_for_the_user(tabs: OpenTabs, page: Page) -> None:
    outcome: list[Any] = []

    async def call() -> None:
        outcome.append(await tabs.call(CONFIRM, {"text": "hello"}))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await page.wait_for_function("document.forms.confirm.text.value === 'hello'")
        await page.click("#confirm button")
    assert outcome == [{"fields": {"text": "hello"}}]


# --- documents that go away ---


async def test_a_call_ends_at_once_when_its_page_is_left(
    tabs: OpenTabs, page: Page, shop: str
) -> None:
    call = Hanging()
    async with anyio.create_task_group() as group:
        group.start_soon(call.run, tabs, "left")
        await wait_running(page, "left")
        await page.goto(f"{shop}other")
        with anyio.fail_after(PATIENT):
            while call.error is None:
                await anyio.lowlevel.checkpoint()
    assert call.error is not None
    assert call.error.detail.code == "PAGE_NAVIGATED"
    assert await page.evaluate("runs") == []  # the next page's tool did not run in its place


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


async def test_a_tab_is_chosen_by_its_id(tabs: OpenTabs, page: Page, shop: str) -> None:
    other = await tabs.context.new_page()
    try:
        await other.goto(f"{shop}other")
        with anyio.fail_after(PATIENT):
            while len(ids := await tab_ids(tabs)) < 2:
                await tabs.internals.bridge.changed().wait()
        assert {*offered(tabs)} == ALL
        await tabs.call(ADD, {"a": 1, "b": 1, "tabId": ids[shop]})
        await tabs.call(ADD, {"a": 2, "b": 2, "tabId": ids[f"{shop}other"]})
        assert (await page.evaluate("runs"), await other.evaluate("runs")) == ([[1, 1]], [[2, 2]])
        error = await failure(tabs, ADD, {"a": 1, "b": 1, "tabId": 1})
        assert error.detail.code == "TAB_NOT_FOUND"
    finally:
        await other.close()


async def tab_ids(tabs: OpenTabs) -> dict[str, int]:
    """Return the tabs in which all tools are present, by URL."""
    documents = [d for d in tabs.internals.bridge.tabs.documents if "@page" in d.plugins]
    reports = tabs.internals.bridge.page_tools
    assert reports is not None
    return {
        document.url: document.tab_id
        for document in documents
        if len(reports.of_document(document.document_id) or ()) == len(ALL)
    }


@pytest.mark.parametrize("how", KILLS)
async def test_a_tool_runs_once_though_the_service_worker_is_killed(
    how: Kill, tabs: OpenTabs, page: Page
) -> None:
    call = Hanging()
    async with anyio.create_task_group() as group:
        group.start_soon(call.run, tabs, how)
        await wait_running(page, how)
        await Tab(page, 0, tabs).kill_worker(how)
        await page.evaluate("key => signals[`end ${key}`]('ended')", how)
    assert (call.value, call.error) == ("ended", None)
    assert await page.evaluate("runs") == [how]
    with anyio.fail_after(PATIENT):  # and its tools are still (or again) there
        assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}
    assert {*offered(tabs)} == ALL


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


# --- hostile pages ---


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


# --- consent ---


async def test_only_tools_that_say_that_they_read_run_unasked(shop: str) -> None:
    async with OpenTabs(settings=settings_for(permissions={})) as tabs:
        await tabs.open(shop)
        await wait_for(tabs, lambda names: names >= ALL)
        assert await tabs.call(ADD, {"a": 1, "b": 2}) == {"sum": 3}
        for name in (PAY, COUNT):
            assert (await failure(tabs, name)).detail.code == "CONSENT_NEEDED"


@dataclass
class Asked:
    """A server that asks before it calls `pay`, with a page that has it."""

    tabs: OpenTabs
    page: Page
    outcomes: list[Any] = field(default_factory=list[Any])

    async def call(self) -> None:
        try:
            self.outcomes.append(await self.tabs.call(PAY))
        except CallError as error:
            self.outcomes.append(error.detail.code)

    async def during(self, event: Callable[[Question], Awaitable[object]]) -> None:
        """Make a call, and let something happen while the user is asked."""
        questions = self.tabs.internals.registry.gate.questions
        asked = anyio.Event()
        end = questions.subscribe(asked.set)
        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as group:
                group.start_soon(self.call)
                await asked.wait()
                end()
                [question] = questions.waiting
                await event(question)
        assert questions.waiting == []

    async def allow(self, question: Question) -> None:
        self.tabs.internals.registry.gate.questions.answer(question.id, "once", by="the test")


@pytest.fixture
async def asked(shop: str) -> AsyncGenerator[Asked]:
    async with OpenTabs(settings=settings_for(permissions={})) as tabs:
        page = await tabs.open(shop)
        await wait_listed(tabs, lambda names: names >= ALL)
        with tabs.internals.registry.gate.questions.shown():
            yield Asked(tabs, page)


async def test_a_call_that_the_user_allows_runs_in_the_tab_of_its_question(asked: Asked) -> None:
    async def allow(question: Question) -> None:
        [document] = asked.tabs.internals.bridge.tabs.documents
        assert question.place.tab_id == document.tab_id
        assert question.rule.startswith("page--127-0-0-1-")
        await asked.allow(question)

    await asked.during(allow)
    assert asked.outcomes == [1]


async def test_the_user_is_asked_about_a_tool_until_its_page_is_left_or_closed(
    asked: Asked, shop: str
) -> None:
    async def reload_and_allow(question: Question) -> None:
        bridge = asked.tabs.internals.bridge
        before = [each.document_id for each in bridge.tabs.documents]
        await asked.page.reload()
        # Until the server hears of the new page, the tools that it lists are those of the old one.
        while [each.document_id for each in bridge.tabs.documents] in (before, []):
            await bridge.changed().wait()
        await wait_listed(asked.tabs, lambda names: names >= ALL)
        await asked.allow(question)

    await asked.during(reload_and_allow)
    await asked.during(lambda _: asked.page.goto("about:blank"))
    await asked.page.goto(shop)
    await wait_listed(asked.tabs, lambda names: names >= ALL)
    await asked.during(lambda _: asked.page.close())
    assert asked.outcomes == [1, "PAGE_TOOL_GONE", "PAGE_TOOL_GONE"]


async def test_the_question_stays_while_the_page_registers_its_tools_again(
    asked: Asked, shop: str
) -> None:
    partly_listed = anyio.Event()

    async def serve_slowly(route: Route) -> None:
        text = await (await route.fetch()).text()
        late = f'</script><script src="/late.js"></script><script>{REGISTERS_PAY}'
        await route.fulfill(body=text.replace(REGISTERS_PAY, late), content_type="text/html")

    async def serve_late(route: Route) -> None:
        await partly_listed.wait()
        await route.fulfill(body="", content_type="text/javascript")

    async def reload_slowly_and_allow(question: Question) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(asked.page.reload)
            await wait_listed(asked.tabs, lambda names: ADD in names and PAY not in names)
            partly_listed.set()
        await wait_listed(asked.tabs, lambda names: names >= ALL)
        await asked.allow(question)

    await asked.page.route(shop, serve_slowly)
    await asked.page.route("**/late.js", serve_late)
    await asked.during(reload_slowly_and_allow)
    assert asked.outcomes == [1]


# --- the command ---


async def test_the_command_serves_them_to_a_client_over_stdio(shop: str) -> None:
    command = ["-m", "opentabs_py", "serve", "--stdio", "--open", shop]
    allowed = ["--webmcp", "http://127.0.0.1/*", "--permission", "default=auto"]
    server = StdioServerParameters(
        command=sys.executable, args=[*command, *allowed], env={**os.environ}
    )
    async with Client(stdio_client(server)) as client:
        with anyio.fail_after(PATIENT):
            while not any(tool.name == ADD for tool in (await client.list_tools()).tools):
                pass  # each response takes a while
        result = await client.call_tool(ADD, {"a": 1, "b": 2})
    assert result.structured_content == {"sum": 3}


async def test_a_command_calls_a_tool_of_the_page_that_it_opens(shop: str) -> None:
    call = ["call", ADD, '{"a": 1, "b": 2}', "--fresh", "--open", shop]
    with anyio.fail_after(PATIENT):
        ended = await anyio.run_process(
            [sys.executable, "-m", "opentabs_py", *call],
            env={**os.environ, "OPENTABS_WEBMCP": "http://127.0.0.1/*"},
            check=False,
        )
    assert json.loads(ended.stdout) == {"sum": 3}


# --- turned off ---


async def test_nothing_of_it_is_there_unless_it_is_turned_on(shop: str) -> None:
    settings = settings_for().model_copy(update={"webmcp": ()})
    async with OpenTabs(settings=settings, args=["--enable-features=WebMCP"]) as tabs:
        page = await tabs.open(shop)
        assert await page.evaluate("document.modelContext.registerTool.name") == "registerTool"
        assert tabs.internals.bridge.plugin_sync.plugins == []
        assert not tabs.internals.bridge.tabs.documents
        assert offered(tabs) == {}
