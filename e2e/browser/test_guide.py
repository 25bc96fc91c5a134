"""The page that guides through loading the extension by hand, in a real browser."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import httpx2
import pytest
from playwright.async_api import Page, expect

from e2e.live_page import chromium, says_server_stopped
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT_MS
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.launch import launch_browser
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.session.session import OpenTabs


@pytest.fixture
def settings() -> Settings:
    return load_settings(port=0, profile=None, headed=False, token="t" * 16)


@pytest.fixture
async def tabs(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[OpenTabs]:
    """A server that waits for an extension."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    plugin = write_plugin(tmp_path / "chat", tools=["version"])
    (plugin / "playground").mkdir()
    (plugin / "playground" / "index.html").write_text("<title>chat</title>")
    async with OpenTabs(plugins=[plugin], browser="none", settings=settings) as running:
        yield running


# The number of lines that a text within an element is on.
LINES = """(element, text) => {
    const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node; (node = nodes.nextNode()); ) {
        const begin = node.data.indexOf(text);
        if (begin < 0) continue;
        const range = document.createRange();
        range.setStart(node, begin);
        range.setEnd(node, begin + text.length);
        return range.getClientRects().length;
    }
}"""


@pytest.fixture
async def reader(settings: Settings) -> AsyncGenerator[Page]:
    """A page in a browser without the extension; its errors fail the test."""
    async with chromium(settings) as browser:
        context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        context.set_default_timeout(PATIENT_MS)
        page = await context.new_page()
        said: list[str] = []

        def note(text: str) -> None:
            if not says_server_stopped(text):
                said.append(text)

        page.on("console", lambda message: note(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        yield page
        assert said == []


def loaded_by_hand(tabs: OpenTabs, settings: Settings, directory: Path) -> LaunchPlan:
    return LaunchPlan(
        chromium=configured_chromium(settings),
        extension=tabs.extension_dir,
        profile=directory / "profile",
        scratch=directory / "scratch",
        sandbox=configured_sandbox(settings),
    )


async def test_it_shows_what_to_copy_and_notices_that_the_extension_has_connected(
    tabs: OpenTabs, settings: Settings, reader: Page, tmp_path: Path
) -> None:
    async def planned() -> LaunchPlan:
        await anyio.lowlevel.checkpoint()
        return loaded_by_hand(tabs, settings, tmp_path)

    assert tabs.guide_url is not None
    await reader.goto(tabs.guide_url)
    status = reader.get_by_role("status")
    following = reader.get_by_role("region", name="Next steps")
    await expect(status).to_contain_text("Not connected yet")
    await expect(following).to_be_hidden()

    for button, copied in {
        "Copy the address": "chrome://extensions",
        "Copy the folder's path": str(tabs.extension_dir),
    }.items():
        await reader.get_by_role("button", name=button).press("Enter")
        await expect(reader.get_by_role("button", name="Copied")).to_be_visible()
        assert await reader.evaluate("navigator.clipboard.readText()") == copied
        await expect(reader.get_by_role("button", name=button)).to_be_visible()

    async with launch_browser(planned) as theirs:
        await expect(status).to_contain_text("Connected: browser-")
        await expect(following).to_contain_text("no tab open")
        await expect(following).to_contain_text(tabs.mcp_url)
        address = await following.get_by_role("link", name="chat").get_attribute("href")
        assert address is not None
        await theirs.pages[0].goto(address)
        await expect(following.get_by_role("listitem")).to_have_text("chat ready")
    await expect(status).to_contain_text("Not connected yet")


async def test_it_says_so_when_the_server_has_stopped(
    settings: Settings, reader: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    async with OpenTabs(browser="none", settings=settings) as tabs:
        await reader.goto(tabs.guide_url or "")
        await expect(reader.get_by_role("status")).to_contain_text("Not connected yet")
    status = reader.get_by_role("status")
    await expect(status).to_contain_text("not running")
    for width in range(320, 480, 8):
        await reader.set_viewport_size({"width": width, "height": 700})
        assert await status.evaluate(LINES, "--browser none") == 1, width
        address = reader.locator("#address")
        assert await address.evaluate(LINES, "chrome://extensions") == 1, width


async def test_no_script_but_its_own_may_run_on_it_and_no_page_may_frame_it(tabs: OpenTabs) -> None:
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"{tabs.guide_url}/")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


async def test_a_server_that_waits_for_no_extension_has_no_such_page() -> None:
    async with (
        OpenTabs(tools=[len], settings=load_settings(port=0)) as tabs,
        httpx2.AsyncClient() as client,
    ):
        answer = await client.get(tabs.mcp_url.replace("/mcp", "/extension/"))

        assert tabs.guide_url is None
    assert answer.status_code == 404
