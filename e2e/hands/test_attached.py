"""The hands in the user's own browser, whose debugging connection stays open."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.browser.desktop import ALLOW, CANCEL, Chromium
from e2e.browser.test_attach import answer, the_browser, until
from e2e.hands.rig import hand_settings, ref
from e2e.on_disk import write_plugin
from e2e.processes import command_line, descendants, is_alive
from e2e.waiting import PATIENT
from opentabs_py.browser.discovery import Attach
from opentabs_py.errors import ToolFailedError
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

PAGE = """<!doctype html><title>Mine</title>
<button onclick="this.textContent = 'Pressed ' + document.visibilityState">Press</button>
<button onclick="this.textContent = confirm('Really?')">Ask</button>
"""


@pytest.fixture
async def mine() -> AsyncGenerator[str]:
    """The address of a site that no plugin matches."""

    async def page(_request: Request) -> Response:
        return HTMLResponse(PAGE)

    listener = bind("127.0.0.1", 0)
    async with serve_http(Starlette(routes=[Route("/{name}", page)]), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
async def chromium(
    display: str, tmp_path: Path, mine: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Chromium]:
    """A user's browser, with a background page beside the active one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    person = Chromium(tmp_path / "profile", display)
    person.allow_debugging()
    person.start(f"{mine}/behind")
    await person.wait_debuggable()
    await anyio.to_thread.run_sync(person.open, f"{mine}/front")
    yield person
    await person.stop()


@asynccontextmanager
async def attached(
    chromium: Chromium, *plugins: Path, hands: bool = True, keep: bool = False
) -> AsyncGenerator[OpenTabs]:
    attach = Attach(user_data_dir=chromium.directory, keep=keep)
    settings = hand_settings(hands=hands)
    async with OpenTabs(plugins=plugins, browser=attach, settings=settings) as tabs:
        yield tabs


async def allow(chromium: Chromium, tabs: OpenTabs) -> None:
    await answer(chromium, tabs, ALLOW)
    await until(lambda: the_browser(tabs).driven is not None)


async def numbers(tabs: OpenTabs) -> dict[str, Any]:
    """Return the tabs' numbers by the last part of their URLs, and whether each is active."""
    listed = (await tabs.call("tabs_list"))["tabs"]
    return {each["url"].rpartition("/")[2]: (each["tabId"], each["active"]) for each in listed}


async def press(tabs: OpenTabs, **where: Any) -> str:
    """Press the button, and return the changes."""
    shown = (await tabs.call("page_snapshot", where))["snapshot"]
    done = await tabs.call("page_click", {"ref": ref(shown, 'button "Press"'), **where})
    return str(done["changed"])


async def fails(tabs: OpenTabs) -> str:
    with pytest.raises(ToolFailedError) as caught:
        await tabs.call("page_snapshot")
    assert caught.value.detail.code == "EXTENSION_NOT_CONNECTED"
    return caught.value.detail.message


async def until_answered(tabs: OpenTabs) -> None:
    """Wait until the dialog is closed: the browser handles a key some time after it is pressed."""
    with anyio.fail_after(PATIENT):
        while True:
            try:
                await tabs.call("page_snapshot")
            except ToolFailedError as error:
                assert error.detail.code == "DIALOG_OPEN"  # noqa: PT017
                await anyio.sleep(0.05)
            else:
                return


async def test_hands_use_a_persons_own_tabs_and_leave_them_where_they_are(
    chromium: Chromium,
) -> None:
    async with attached(chromium) as tabs:
        await allow(chromium, tabs)
        before = await numbers(tabs)
        behind, _ = before["behind"]

        in_front = await press(tabs)
        in_the_background = await press(tabs, tabId=behind)
        screenshot = await tabs.call_tool("page_screenshot", {"tabId": behind})

        assert 'button "Pressed visible"' in in_front
        assert 'button "Pressed visible"' in in_the_background
        assert not screenshot.is_error
        assert await numbers(tabs) == before
        assert [before[each][1] for each in ("behind", "front")] == [False, True]
    assert chromium.is_running


async def test_a_dialog_that_the_user_answers_is_not_in_the_way(
    chromium: Chromium,
) -> None:
    async with attached(chromium) as tabs:
        await allow(chromium, tabs)
        shown = (await tabs.call("page_snapshot"))["snapshot"]
        asked = await tabs.call("page_click", {"ref": ref(shown, 'button "Ask"')})
        assert asked["dialog"] == {"type": "confirm", "message": "Really?"}
        chromium.press("Return")
        await until_answered(tabs)

        pressed = await press(tabs)

        assert 'button "Pressed visible"' in pressed
        assert 'button "true"' in (await tabs.call("page_snapshot"))["snapshot"]


async def test_without_permission_hands_say_what_to_do_and_are_not_asked_for_again(
    chromium: Chromium,
) -> None:
    async with attached(chromium) as tabs:
        await until(lambda: "asks" in the_browser(tabs).bridge.tabs.user_action)
        assert "Click Allow there" in await fails(tabs)
        await answer(chromium, tabs, CANCEL)
        assert "perhaps you pressed Cancel. To be asked again, restart" in await fails(tabs)


async def test_a_browser_that_restarts_is_asked_again_and_then_used(
    chromium: Chromium, mine: str
) -> None:
    async with attached(chromium) as tabs:
        await allow(chromium, tabs)
        await chromium.stop()
        await until(lambda: the_browser(tabs).driven is None)
        await until(lambda: "No running browser" in the_browser(tabs).bridge.tabs.user_action)
        assert "chrome://inspect/#remote-debugging" in await fails(tabs)

        chromium.start(f"{mine}/again")
        await allow(chromium, tabs)

        assert 'button "Pressed visible"' in await press(tabs)


async def test_without_hands_the_debugging_connection_is_let_go(chromium: Chromium) -> None:
    async with attached(chromium, hands=False) as tabs:
        await answer(chromium, tabs, ALLOW)
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_connected()
        assert the_browser(tabs).driven is None
        assert the_browser(tabs).bridge.tabs.user_action == ""


async def test_plugins_continue_when_the_debugging_connection_breaks(
    chromium: Chromium, tmp_path: Path
) -> None:
    plugin = write_plugin(tmp_path / "chat", tools=["version"])
    async with attached(chromium, plugin) as tabs:
        before = descendants(os.getpid())
        await allow(chromium, tabs)
        [driver] = [
            pid
            for pid in descendants(os.getpid()) - before
            if "run-driver" in command_line(pid) and is_alive(pid)
        ]
        os.kill(driver, signal.SIGKILL)
        await until(lambda: the_browser(tabs).driven is None)

        assert "closed the debugging connection, which hands need" in await fails(tabs)
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_ready("chat")
        assert await tabs.call("chat_version") == {"version": "1"}
    assert chromium.is_running


async def test_an_extension_that_was_left_without_hands_is_loaded_again_with_them(
    chromium: Chromium,
) -> None:
    async with attached(chromium, hands=False, keep=True) as tabs:
        await answer(chromium, tabs, ALLOW)
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_connected()
    async with attached(chromium) as tabs:
        with anyio.fail_after(PATIENT):
            await (
                tabs.internals.bridge.wait_connected()
            )  # plugins' tools need not wait for the user
        await allow(chromium, tabs)
        assert 'button "Pressed visible"' in await press(tabs)
