"""The tools that pages register are called, with Chromium's own WebMCP and with our script."""

import json
import os
import re
import sys
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from playwright.async_api import Page

from e2e.chain import KILLS, Advance, Kill, Tab
from e2e.waiting import PATIENT
from e2e.webmcp.page_tools import (
    ADD,
    ALL,
    BOOK,
    CONFIRM,
    COUNT,
    VALUE,
    Hanging,
    failure,
    offered,
    tab_ids,
    wait_running,
)
from opentabs_py.core.limits import IDLE, Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.session.session import OpenTabs


async def test_either_the_browser_s_interface_is_tested_or_ours(
    request: pytest.FixtureRequest, page: Page
) -> None:
    source = await page.evaluate("ModelContext.toString()")
    assert ("[native code]" in source) == ("native" in request.node.name)


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


# --- the commands ---


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
