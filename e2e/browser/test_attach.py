"""The user's own browser: attached through Chrome's own dialog, which is really clicked."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from e2e.browser.desktop import ALLOW, CANCEL, Chromium
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from opentabs_py.browser.discovery import Attach
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import CallRefusedError, ChainError
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.session import OpenTabs

ALLOW_ONCE = (227, 280)  # where the button of the only dialog is, in the panel as a tab


@pytest.fixture
async def chromium(display: str, tmp_path: Path) -> AsyncGenerator[Chromium]:
    person = Chromium(tmp_path / "profile", display)
    yield person
    await person.stop()


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate data directory, where the attached extension is staged."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@asynccontextmanager
async def attached(
    chromium: Chromium, tmp_path: Path, *, keep: bool = False
) -> AsyncGenerator[OpenTabs]:
    plugin = write_plugin(tmp_path / "chat", tools=["version", "where"])
    settings = load_settings(port=0, profile=None, headed=False)
    attach = Attach(user_data_dir=chromium.directory, keep=keep)
    async with OpenTabs(plugins=[plugin], browser=attach, settings=settings) as tabs:
        yield tabs


def the_browser(tabs: OpenTabs) -> SessionBrowser:
    """Return the browser; its name follows from its id once it has connected."""
    [browser] = tabs.internals.browsers
    return browser


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does, without an event."""
    with anyio.fail_after(PATIENT):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.1)


async def click_until(
    chromium: Chromium, place: tuple[int, int], condition: Callable[[], bool]
) -> None:
    """Click until something has happened: an early click may have hit nothing."""
    with anyio.fail_after(PATIENT):
        while not condition():
            chromium.click(place)
            await anyio.sleep(0.5)


async def answer(chromium: Chromium, tabs: OpenTabs, place: tuple[int, int]) -> None:
    """Click a button of the dialog once it is there, until it is gone."""
    browser = the_browser(tabs)
    await until(lambda: "asks" in browser.bridge.tabs.user_action)
    await click_until(chromium, place, lambda: "asks" not in browser.bridge.tabs.user_action)


async def allow(chromium: Chromium, tabs: OpenTabs) -> None:
    """Click Allow in the dialog, and wait for the page."""
    await answer(chromium, tabs, ALLOW)
    with anyio.fail_after(PATIENT):
        await tabs.internals.bridge.wait_ready("chat")


async def test_a_tool_runs_in_the_browser_of_the_user_who_allows_it(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        with pytest.raises(ChainError, match="not connected"):
            await tabs.call("chat_version")
        await allow(chromium, tabs)
        assert (await tabs.call("chat_where"))["url"] == f"{site}/mine"
        manifest = json.loads((tabs.extension_dir / "manifest.json").read_bytes())
        assert manifest["host_permissions"] == ["http://127.0.0.1/*"]


async def test_the_extension_is_taken_out_at_the_end_unless_it_is_kept(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path, keep=True) as tabs:
        await allow(chromium, tabs)
    # Another server, on another port: the extension finds it, without a dialog.
    async with attached(chromium, tmp_path) as tabs:
        with anyio.fail_after(PATIENT):
            await tabs.internals.bridge.wait_ready("chat")
        assert the_browser(tabs).bridge.tabs.user_action == ""
        assert await tabs.call("chat_version") == {"version": "1"}
    # This one has removed it, so the next has to ask.
    async with attached(chromium, tmp_path) as tabs:
        await until(lambda: "Click Allow" in the_browser(tabs).bridge.tabs.user_action)


async def test_the_user_who_presses_cancel_is_not_asked_again_and_calls_say_why(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        await answer(chromium, tabs, CANCEL)
        await until(lambda: "Cancel" in the_browser(tabs).bridge.tabs.user_action)
        with pytest.raises(ChainError, match="perhaps you pressed Cancel") as error:
            await tabs.call("chat_version")
        assert error.value.detail.code == "EXTENSION_NOT_CONNECTED"


async def test_a_browser_that_restarts_is_asked_again(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        await allow(chromium, tabs)
        await chromium.stop()
        await until(lambda: not tabs.internals.bridge.connected)
        chromium.start(f"{site}/again")
        await allow(chromium, tabs)
        assert (await tabs.call("chat_where"))["url"] == f"{site}/again"


async def test_an_extension_that_the_user_removed_is_loaded_again_after_a_restart(
    chromium: Chromium, tmp_path: Path, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opentabs_py.browser.attach.LOOKS_FOR_EXTENSION", 1)
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        browser = the_browser(tabs)
        await allow(chromium, tabs)
        assert await browser.bridge.remove_extension("as its user might")
        await until(lambda: "does not connect" in browser.bridge.tabs.user_action)
        await chromium.stop()
        await until(lambda: "No running browser" in browser.bridge.tabs.user_action)
        chromium.start(f"{site}/again")
        await until(lambda: "asks" in browser.bridge.tabs.user_action)
        # Its new id makes it another browser, but it is still the one that is attached to.
        await click_until(chromium, ALLOW, lambda: tabs.internals.pages.connected)
        await until(lambda: browser.bridge.tabs.user_action == "")
        assert (await tabs.call("chat_where"))["url"] == f"{site}/again"
    # It was removed at the end, so the next server has to ask.
    async with attached(chromium, tmp_path) as tabs:
        await until(lambda: "Click Allow" in the_browser(tabs).bridge.tabs.user_action)


async def test_without_debugging_the_error_says_what_to_tick(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        await until(lambda: the_browser(tabs).bridge.tabs.user_action != "")
        with pytest.raises(ChainError, match="chrome://inspect/#remote-debugging"):
            await tabs.call("chat_version")


async def test_the_extensions_panel_answers_for_a_person_in_their_own_browser(
    chromium: Chromium, tmp_path: Path, site: str
) -> None:
    chromium.allow_debugging()
    chromium.start(f"{site}/mine")
    async with attached(chromium, tmp_path) as tabs:
        await allow(chromium, tabs)
        gate = tabs.internals.registry.gate
        gate.set_rules({"chat": "ask"})
        with pytest.raises(CallRefusedError, match="no way to ask"):
            await tabs.call("chat_version")
        chromium.open(f"{tabs.internals.bridge.origin}/panel/index.html")
        await until(lambda: gate.questions.can_be_seen)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tabs.call, "chat_version")  # fails if it is not allowed
            await until(lambda: len(gate.questions.waiting) == 1)
            await click_until(chromium, ALLOW_ONCE, lambda: not gate.questions.waiting)
