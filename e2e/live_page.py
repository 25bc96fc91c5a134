"""A page that follows its server, in a browser without the extension."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, Page, async_playwright, expect

from e2e.waiting import PATIENT_MS
from opentabs_py.browser import switches
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import Settings

# Records what screen readers will read aloud: live regions whose content changes.
READ_ALOUD = """() => {
    window.readAloud = [];
    new MutationObserver((changes) => {
      for (const { target } of changes) {
        const element = target instanceof Element ? target : target.parentElement;
        const region = element?.closest("[aria-live], [role=status], [role=alert]");
        if (region && region.ariaLive !== "off") readAloud.push(region.textContent);
      }
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


# What a user can see or use, and a screen reader therefore has to name.
_NAMED = {
    *("banner", "button", "checkbox", "combobox", "complementary", "DisclosureTriangle", "img"),
    *("link", "listbox", "navigation", "option", "progressbar", "region", "searchbox", "textbox"),
    "Video",
}

_TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll(
  ".details, .failure, .list, .scroll-area, .top, #notices")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.className || each.tagName)"""


async def find_too_wide(page: Page) -> list[str]:
    """Return the parts of a page that scroll sideways."""
    found: list[str] = await page.evaluate(_TOO_WIDE)
    return found


async def find_nameless(page: Page) -> list[str]:
    """Return the roles of the elements that a screen reader cannot name."""
    session = await page.context.new_cdp_session(page)
    tree = await session.send("Accessibility.getFullAXTree")
    await session.detach()
    return [
        node["role"]["value"]
        for node in tree["nodes"]
        if not node["ignored"]
        and node["role"]["value"] in _NAMED
        and not node.get("name", {}).get("value", "").strip()
    ]


def says_server_stopped(text: str) -> bool:
    """Return whether a browser logs that the server has stopped: it refuses, or breaks off."""
    return "ERR_CONNECTION_REFUSED" in text or "ERR_CONNECTION_RESET" in text


@asynccontextmanager
async def chromium(settings: Settings) -> AsyncGenerator[Browser]:
    """A browser without the extension."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=configured_chromium(settings),
            chromium_sandbox=configured_sandbox(settings),
            args=switches.added(keeps_profile=False, headed=False),
        )
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def live_page(
    browser: Browser, url: str, *, width: int, height: int, dark: bool
) -> AsyncGenerator[Page]:
    """A page that follows its server, signed in; its errors fail the test."""
    context = await browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.set_default_timeout(PATIENT_MS)
    said: list[str] = []

    def note(text: str) -> None:
        if not says_server_stopped(text):
            said.append(text)

    try:
        page = await context.new_page()
        page.on("console", lambda message: note(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.goto(url)
        live = page.locator("#state")
        await expect(live).to_have_attribute("data-state", "live", timeout=PATIENT_MS)
        yield page
        assert said == [], "\n".join(said)
    finally:
        await context.close()
