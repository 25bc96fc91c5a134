"""Two people with two browsers of one server: each call runs in the right browser."""

import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from e2e.browser.apart import Apart
from e2e.chain import drop_connection, reconnect
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.launch import Planned, launch_browser
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import ChainError
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.session import OpenTabs

TOOLS = ["version", "wait", "where"]


@pytest.fixture(scope="module")
async def two(
    site: str,  # noqa: ARG001 (which ends after it)
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[OpenTabs]:
    """A server with the browsers of two people."""
    directory = tmp_path_factory.mktemp("two")
    plugin = write_plugin(directory / "chat", tools=TOOLS)
    profiles = {name: directory / name for name in ("work", "home")}
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=[plugin], browsers=profiles, settings=settings) as tabs:
        yield tabs


@pytest.fixture(autouse=True)
async def _closed(two: OpenTabs) -> AsyncGenerator[None]:
    """Closes the pages that a test has opened."""
    yield
    for browser in two.internals.browsers:
        for page in browser.context.pages[1:]:
            await page.close()
        await browser.context.pages[0].goto("about:blank")
        with anyio.fail_after(PATIENT):
            while browser.bridge.tabs.documents:
                await browser.bridge.changed().wait()


def browser_of(two: OpenTabs, name: str) -> SessionBrowser:
    """Return one person's browser."""
    return next(each for each in two.internals.browsers if each.bridge.name == name)


async def open_in(two: OpenTabs, name: str, url: str) -> int:
    """Open a page in one person's browser, behind another; return its tab's number among all."""
    browser = browser_of(two, name)
    page = await browser.open(url)
    await browser.context.new_page()  # which is active then
    with anyio.fail_after(PATIENT):
        while True:
            changed = browser.bridge.changed()
            for document in browser.bridge.tabs.documents:
                state = document.plugins.get("chat")
                is_ready = state is not None and state.readiness == "ready"
                if is_ready and document.url == page.url and not document.active:
                    return document.tab_id
            await changed.wait()


async def where(two: OpenTabs, **arguments: Any) -> str:
    answer = await two.call("chat_where", arguments)
    return str(answer["url"])


async def test_a_call_runs_in_the_only_browser_with_a_ready_tab(two: OpenTabs, site: str) -> None:
    await open_in(two, "home", f"{site}/home")
    assert await where(two) == f"{site}/home"


async def test_a_call_that_either_could_take_is_refused_and_a_tab_decides(
    two: OpenTabs, site: str
) -> None:
    work = await open_in(two, "work", f"{site}/work")
    home = await open_in(two, "home", f"{site}/home")
    with pytest.raises(ChainError) as error:
        await where(two)
    assert error.value.detail.code == "SEVERAL_BROWSERS"
    assert f'work: {work} "work"; home: {home} "home"' in str(error.value)
    assert await where(two, tabId=work) == f"{site}/work"
    assert await where(two, tabId=home) == f"{site}/home"


async def test_a_client_stays_with_the_browser_that_it_has_used(two: OpenTabs, site: str) -> None:
    work = await open_in(two, "work", f"{site}/work")
    home = await open_in(two, "home", f"{site}/home")
    async with (
        Client(two.mcp_url, mode="legacy") as one,
        Client(two.mcp_url, mode="legacy") as other,
    ):
        for client, tab in ((one, work), (other, home)):
            await client.call_tool("chat_where", {"tabId": tab})
        for client, name in ((one, "work"), (other, "home"), (one, "work")):
            result = await client.call_tool("chat_where", {})
            assert result.structured_content is not None
            assert result.structured_content["url"] == f"{site}/{name}"


async def test_the_list_of_tabs_says_whose_each_is(two: OpenTabs, site: str) -> None:
    work = await open_in(two, "work", f"{site}/work")
    home = await open_in(two, "home", f"{site}/home")
    listed = await two.call("tabs_list")
    assert {tab["tabId"]: tab["browser"] for tab in listed["tabs"]} == {work: "work", home: "home"}


async def test_a_worker_that_dies_does_not_send_its_call_to_the_other_browser(
    two: OpenTabs, site: str
) -> None:
    await open_in(two, "home", f"{site}/home")
    work = await open_in(two, "work", f"{site}/work")
    assert await where(two, tabId=work) == f"{site}/work"
    await drop_connection(browser_of(two, "work").bridge)
    with pytest.raises(ChainError, match="has tabs in 2 browsers"):
        await where(two)
    assert await where(two, tabId=work) == f"{site}/work"


async def test_calls_in_both_at_once_do_not_disturb_each_other(two: OpenTabs, site: str) -> None:
    tabs = {name: await open_in(two, name, f"{site}/{name}") for name in ("work", "home")}
    calls = 200
    seen: dict[str, set[str]] = {"work": set(), "home": set()}

    async def call(name: str) -> None:
        for _ in range(calls):
            seen[name].add(await where(two, tabId=tabs[name]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "work")
        tasks.start_soon(call, "home")
    assert seen == {"work": {f"{site}/work"}, "home": {f"{site}/home"}}


async def test_a_new_build_reaches_the_pages_of_both(two: OpenTabs, site: str) -> None:
    tabs = [await open_in(two, name, f"{site}/{name}") for name in ("work", "home")]
    [plugin] = two.internals.plugin_set.plugins
    write_plugin(plugin.directory, "2", tools=TOOLS)
    await two.reload_plugins()
    for tab in tabs:
        assert await two.call("chat_version", {"tabId": tab}) == {"version": "2"}


@pytest.mark.parametrize(("one", "other"), [("work", "home"), ("home", "work")])
async def test_a_browser_that_dies_comes_back_with_its_profile_and_the_other_stays(
    one: str, other: str, site: str, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "chat", tools=TOOLS)
    profiles = {name: tmp_path / name for name in ("work", "home")}
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(
        plugins=[plugin], browsers=profiles, settings=settings, relaunch_urls=[f"{site}/page"]
    ) as tabs:
        [beside] = tabs.browsers[other].context.pages
        page = await tabs.browsers[one].open(f"{site}/page")
        await page.evaluate("localStorage.setItem('who', 'me')")
        await tabs.browsers[one].context.close()
        with anyio.fail_after(PATIENT):
            await tabs.browsers[one].wait_gone()
            assert await where(tabs) == f"{site}/page"
        [page] = tabs.browsers[one].context.pages
        assert await page.evaluate("localStorage.getItem('who')") == "me"
        assert await beside.evaluate("'still here'") == "still here"
        assert [*tabs.internals.pages.names.values()] == ["work", "home"]


@pytest.mark.parametrize("copied", [False, True], ids=["two profiles", "a copied profile"])
async def test_two_browsers_with_the_extension_loaded_by_hand_are_distinguished(
    copied: bool, site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    plugin = write_plugin(tmp_path / "chat", tools=TOOLS)
    settings = load_settings(port=0, profile=None, headed=False)
    async with AsyncExitStack() as stack:
        tabs = await stack.enter_async_context(
            OpenTabs(plugins=[plugin], browser="none", settings=settings)
        )

        def plan(name: str) -> LaunchPlan:
            return LaunchPlan(
                chromium=configured_chromium(settings),
                extension=tabs.extension_dir,
                profile=tmp_path / name,
                scratch=tmp_path / f"{name}-scratch",
                sandbox=configured_sandbox(settings),
            )

        if copied:
            async with launch_browser(_ready(plan("one"))):
                with anyio.fail_after(PATIENT):
                    await tabs.internals.bridge.wait_connected()
            shutil.copytree(tmp_path / "one", tmp_path / "two", symlinks=True)
        for name in ("one", "two"):
            planned = plan(name)
            context = await stack.enter_async_context(launch_browser(_ready(planned)))
            await context.pages[0].goto(f"{site}/{name}")
        pages = tabs.internals.pages
        with anyio.move_on_after(PATIENT):
            while len(pages.tabs.documents) < 2 or pages.tabs.status("chat") != "ready":
                await pages.changed().wait()
        assert len(pages.tabs.documents) == 2, (pages.tabs.documents, [*tabs.browsers])
        assert pages.tabs.status("chat") == "ready", pages.tabs.documents
        urls = {
            await where(tabs, tabId=document.tab_id)
            for document in tabs.internals.pages.tabs.documents
        }
        assert urls == {f"{site}/one", f"{site}/two"}
        assert len(tabs.browsers) == 2


async def test_loaded_by_hand_the_extension_returns_to_the_server_that_stays(apart: Apart) -> None:
    async with apart.serve() as stays:
        with anyio.fail_after(PATIENT):
            await stays.internals.bridge.wait_connected()
        async with apart.serve(port=0):
            pass  # the extension will connect to this one from now on, which has stopped
        await reconnect(stays.internals.bridge)


def _ready(plan: LaunchPlan) -> Planned:
    async def planned() -> LaunchPlan:
        await anyio.lowlevel.checkpoint()
        return plan

    return planned
