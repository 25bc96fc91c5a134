"""Client-owned tabs: agents work in parallel, each in tabs that no other client uses."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from playwright.async_api import Page, Response
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from e2e.chain import drop_connection, extension_worker
from e2e.on_disk import write_plugin
from e2e.processes import browser_process, command_line, descendants
from e2e.waiting import PATIENT, PATIENT_MS
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import ChainError
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

AGENTS = 10
CALLS = 100  # per agent

_STATE = """async () => ({
  tabs: await chrome.tabs.query({}),
  groups: await chrome.tabGroups.query({}),
  focused: (await chrome.windows.getLastFocused()).id,
})"""


@pytest.fixture(scope="module")
async def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plugin(tmp_path_factory.mktemp("own") / "chat", tools=["version", "wait", "where"])


@pytest.fixture(scope="module")
async def tabs(
    site: str,  # noqa: ARG001 (which ends after it)
    plugin: Path,
) -> AsyncGenerator[OpenTabs]:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        yield tabs


@pytest.fixture(autouse=True)
async def _empty(tabs: OpenTabs) -> AsyncGenerator[None]:
    """Leaves one empty tab, whatever a test does."""
    yield
    for page in tabs.context.pages[1:]:
        await page.close()
    await tabs.context.pages[0].goto("about:blank")
    with anyio.fail_after(PATIENT):
        while tabs.internals.bridge.tabs.documents:
            await tabs.internals.bridge.changed().wait()


def agent(tabs: OpenTabs) -> Client:
    """An MCP client with a session."""
    return Client(tabs.mcp_url, mode="legacy")


async def open_users(tabs: OpenTabs, url: str) -> Page:
    """Open a page in the user's tab."""
    page = tabs.context.pages[0]
    await page.goto(url)
    return page


async def open_own(client: Client, url: str) -> Any:
    opened = await client.call_tool("tabs_open", {"url": url})
    assert not opened.is_error, opened.content
    return opened.structured_content


async def where(client: Client, **arguments: Any) -> str:
    result = await client.call_tool("chat_where", arguments)
    if result.is_error:
        assert result.meta is not None
        return str(result.meta["opentabs/error"]["code"])
    assert result.structured_content is not None
    return str(result.structured_content["url"])


async def state(tabs: OpenTabs) -> Any:
    """Chrome's own view of its tabs and groups."""
    return await (await extension_worker(tabs)).evaluate(_STATE)


async def until_open(tabs: OpenTabs, count: int) -> None:
    """Wait until the browser has that many tabs."""
    with anyio.fail_after(PATIENT):
        while (now := len(tabs.context.pages)) != count:
            if now < count:  # the extension may report a tab before Playwright does
                await tabs.context.wait_for_event("page", timeout=PATIENT_MS)
            else:
                await tabs.context.pages[-1].wait_for_event("close", timeout=PATIENT_MS)


async def test_a_tab_is_opened_in_the_group_and_without_the_focus(
    tabs: OpenTabs, site: str
) -> None:
    page = await open_users(tabs, f"{site}/user")
    before = await state(tabs)
    async with agent(tabs) as client, agent(tabs) as other:
        async with anyio.create_task_group() as tasks:  # at once: there is one group nevertheless
            tasks.start_soon(open_own, client, f"{site}/one")
            tasks.start_soon(open_own, other, f"{site}/other")
        after = await state(tabs)
        [group] = after["groups"]
        assert group["title"] == "OpenTabs"
        assert all("url" in tab for tab in after["tabs"]), json.dumps(after)
        own = [tab for tab in after["tabs"] if tab["url"] != page.url]
        assert {tab["url"] for tab in own} == {f"{site}/one", f"{site}/other"}
        assert [(tab["active"], tab["groupId"]) for tab in own] == [(False, group["id"])] * 2
        assert not any(tab["autoDiscardable"] for tab in own)
        [users] = [tab for tab in after["tabs"] if tab["url"] == page.url]
        assert (users["active"], users["groupId"]) == (True, -1)
        assert after["focused"] == before["focused"]
    await until_open(tabs, 1)


@contextmanager
def without_pages(tabs: OpenTabs) -> Generator[Sequence[int]]:
    """Stop all processes that could load a page, as a busy machine does.

    Yields those that have one.
    """
    browser = {pid: command_line(pid) for pid in descendants(browser_process(tabs.extension_dir))}
    zygotes = [pid for pid, words in browser.items() if "--type=zygote" in words]
    renderers = [
        pid
        for pid, words in browser.items()
        if "--type=renderer" in words and "--extension-process" not in words
    ]
    stopped = [*renderers, *zygotes]  # which would reap a renderer that was killed
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield renderers
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


async def test_a_busy_browser_opens_it_as_soon_as_it_can(tabs: OpenTabs, site: str) -> None:
    await open_users(tabs, f"{site}/user")
    opened: list[Any] = []
    async with agent(tabs) as client:

        async def open_it() -> None:
            opened.append(await open_own(client, f"{site}/own"))

        async with anyio.create_task_group() as tasks:
            with without_pages(tabs):
                tasks.start_soon(open_it)
                await anyio.sleep(2)  # for so long, it is busy
        assert opened[0]["plugins"] == [{"name": "chat", "readiness": "ready"}]
        assert await where(client) == f"{site}/own"
    await until_open(tabs, 1)


async def test_a_page_whose_process_dies_just_before_it_is_shown_is_loaded_again(
    plugin: Path,
) -> None:
    """Chrome loses such a page without an event, and did when several tabs were opened at once."""
    requested, released, answered = anyio.Event(), anyio.Event(), anyio.Event()

    async def page(_: Request) -> HTMLResponse:
        requested.set()
        await released.wait()
        return HTMLResponse("<!doctype html><title>own</title>")

    def note(_: Response) -> None:
        answered.set()

    opened: list[Any] = []
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/own"
    settings = load_settings(port=0, profile=None, headed=False)
    async with (
        serve_http(Starlette(routes=[Route("/own", page)]), listener),
        OpenTabs(plugins=[plugin], settings=settings) as tabs,
        agent(tabs) as client,
    ):
        tabs.context.on("response", note)

        async def open_it() -> None:
            opened.append(await open_own(client, url))

        with anyio.fail_after(PATIENT):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(open_it)
                await requested.wait()
                with without_pages(tabs) as renderers:
                    released.set()
                    await answered.wait()
                    for pid in renderers:
                        os.kill(pid, signal.SIGKILL)
        assert opened[0]["plugins"] == [{"name": "chat", "readiness": "ready"}]
        assert await where(client) == url


async def test_a_browser_that_stays_busy_is_reported_and_leaves_no_tab(
    tabs: OpenTabs, site: str
) -> None:
    await open_users(tabs, f"{site}/user")
    async with agent(tabs) as client:
        with without_pages(tabs):
            opened = await client.call_tool("tabs_open", {"url": f"{site}/own"})
        assert opened.is_error
        assert opened.meta is not None
        assert opened.meta["opentabs/error"]["code"] == "TAB_NOT_OPENED"
        assert [tab["url"] for tab in (await state(tabs))["tabs"]] == [f"{site}/user"]


async def test_other_clients_neither_choose_it_nor_may_name_it(tabs: OpenTabs, site: str) -> None:
    await open_users(tabs, f"{site}/user")
    async with agent(tabs) as one, agent(tabs) as other:
        opened = await open_own(one, f"{site}/own")
        assert opened["plugins"] == [{"name": "chat", "readiness": "ready"}]
        assert await where(one) == f"{site}/own"
        assert await where(other) == f"{site}/user"
        assert await where(other, tabId=opened["tabId"]) == "TAB_NOT_YOURS"
        assert (await tabs.call("chat_where"))["url"] == f"{site}/user"
        listed = (await other.call_tool("tabs_list", {})).structured_content
        assert listed is not None
        assert [tab["url"] for tab in listed["tabs"]] == [f"{site}/user"]
    await until_open(tabs, 1)


async def test_a_tab_of_another_client_is_not_a_fallback(tabs: OpenTabs, site: str) -> None:
    async with agent(tabs) as one, agent(tabs) as other:
        await open_own(one, f"{site}/own")
        assert await where(other) == "TAB_NOT_FOUND"
        with pytest.raises(ChainError) as error:
            await tabs.call("chat_where")
        assert error.value.detail.code == "TAB_NOT_FOUND"
    await until_open(tabs, 1)


async def test_a_client_whose_tab_left_the_plugin_does_not_use_the_users(
    tabs: OpenTabs, site: str
) -> None:
    await open_users(tabs, f"{site}/user")
    async with agent(tabs) as client:
        opened = await open_own(client, f"{site}/own")
        await until_open(tabs, 2)
        await tabs.context.pages[-1].goto("about:blank")
        with anyio.fail_after(PATIENT):  # the page that it left runs no more calls
            while len(tabs.internals.bridge.tabs.documents) > 1:
                await tabs.internals.bridge.changed().wait()
        assert await where(client) == "TAB_NOT_FOUND"
        assert (await tabs.call("chat_where"))["url"] == f"{site}/user"
        await client.call_tool("tabs_close", {"tabId": opened["tabId"]})
        assert await where(client) == f"{site}/user"
    await until_open(tabs, 1)


async def test_it_is_closed_when_its_client_goes_or_asks_for_it(tabs: OpenTabs, site: str) -> None:
    async with agent(tabs) as stays:
        await open_own(stays, f"{site}/stays")
        async with agent(tabs) as goes:
            await open_own(goes, f"{site}/goes")
            await until_open(tabs, 3)
        await until_open(tabs, 2)
        assert await where(stays) == f"{site}/stays"
        opened = await open_own(stays, f"{site}/short")
        closed = await stays.call_tool("tabs_close", {"tabId": opened["tabId"]})
        assert closed.structured_content == {"closed": opened["tabId"]}
        await until_open(tabs, 2)
        assert await where(stays) == f"{site}/stays"
    await until_open(tabs, 1)


async def test_a_tab_that_is_closed_by_hand_has_no_owner(tabs: OpenTabs, site: str) -> None:
    async with agent(tabs) as mine:
        await open_own(mine, f"{site}/chat/mine")
        await until_open(tabs, 2)
        await tabs.context.pages[-1].close()
        with anyio.fail_after(PATIENT):
            while tabs.internals.bridge.tabs.owners:
                await tabs.internals.bridge.changed().wait()


async def test_its_owner_stays_in_it_when_the_worker_dies(tabs: OpenTabs, site: str) -> None:
    await open_users(tabs, f"{site}/user")
    async with agent(tabs) as client:
        await open_own(client, f"{site}/own")
        await drop_connection(tabs.internals.bridge)
        with anyio.fail_after(PATIENT):
            assert await where(client) == f"{site}/own"
    await until_open(tabs, 1)


async def test_ten_agents_work_side_by_side_and_none_in_anothers_tab(
    tabs: OpenTabs, site: str
) -> None:
    await open_users(tabs, f"{site}/user")
    seen: dict[int, list[str]] = {number: [] for number in range(AGENTS)}

    async def work(number: int) -> None:
        async with agent(tabs) as client:
            opened = await open_own(client, f"{site}/agent/{number}")
            is_ready = opened["plugins"] == [{"name": "chat", "readiness": "ready"}]
            assert is_ready, json.dumps([opened, await state(tabs)])
            for _ in range(CALLS):
                seen[number].append(await where(client))

    with anyio.fail_after(3 * PATIENT):
        async with anyio.create_task_group() as tasks:
            for number in seen:
                tasks.start_soon(work, number)
    assert seen == {number: [f"{site}/agent/{number}"] * CALLS for number in range(AGENTS)}
    await until_open(tabs, 1)


async def test_kept_tabs_stay_and_are_the_users_from_then_on(plugin: Path, site: str) -> None:
    settings = load_settings(port=0, profile=None, headed=False, keep_tabs=True)
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        async with agent(tabs) as client:
            await open_own(client, f"{site}/kept")
        with anyio.fail_after(PATIENT):
            while tabs.internals.bridge.tabs.owners:
                await anyio.lowlevel.checkpoint()
        assert (await tabs.call("chat_where"))["url"] == f"{site}/kept"


async def test_without_a_normal_window_one_is_opened_for_the_tab(plugin: Path, site: str) -> None:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=[plugin], settings=settings) as tabs:
        await (await extension_worker(tabs)).evaluate(
            """async () => {
              const [normal] = await chrome.windows.getAll();
              await chrome.windows.create({ type: "popup", url: "about:blank" });
              await chrome.windows.remove(normal.id);
            }"""
        )
        async with agent(tabs) as client:
            await open_own(client, f"{site}/own")
            bridge = tabs.internals.bridge
            with anyio.fail_after(PATIENT):  # on a busy machine, a window may take more than 10 s
                while f"{site}/own" not in [each.url for each in bridge.tabs.documents]:
                    await bridge.changed().wait()
            assert await where(client) == f"{site}/own"
            after = await state(tabs)
            assert [group["title"] for group in after["groups"]] == ["OpenTabs"]
            [own] = [tab for tab in after["tabs"] if tab.get("url") == f"{site}/own"]
            assert own["windowId"] != after["focused"]
