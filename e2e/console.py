"""The console in a real browser, and a server with plugins that are hard to show."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

from e2e.on_disk import write_plugin
from opentabs_py.browser import switches
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import Settings
from opentabs_py.session.session import OpenTabs

PATIENT = 30_000  # ms
VIEWS = ("plugins", "try", "calls", "approvals", "tabs", "logs")

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "What it is about."},
        "priority": {"enum": ["low", "high"], "default": "high"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "urgent": {"type": "boolean"},
        "people": {"type": "array", "items": {"$ref": "#/$defs/person"}},
        "place": {
            "anyOf": [
                {"type": "string", "title": "A name"},
                {
                    "type": "object",
                    "title": "A point",
                    "properties": {"x": {"type": "number"}},
                    "required": ["x"],
                },
            ]
        },
        "more": {},
    },
    "required": ["title", "people"],
    "additionalProperties": False,
    "$defs": {
        "person": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
            "required": ["name"],
        }
    },
}

NUMBER: dict[str, Any] = {"type": "number"}

HOSTILE = "<img src=x onerror=\"document.title='owned'\">\u202edetrevni"
LONG = "W" * 10_000
EVIL_ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="parent.document.title='owned'">
<script>parent.document.title='owned'</script><rect width="9" height="9" fill="red"/></svg>"""

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


def write_forms(directory: Path) -> Path:
    """Write a plugin whose tool has a nested schema, in groups, with a setting and a playground."""
    plugin = write_plugin(
        directory / "forms", tools=["where", "version"], settings={"days": NUMBER}
    )
    listed = json.loads((plugin / "dist" / "tools.json").read_text())
    where, version = listed["tools"]
    where |= {
        "displayName": "File a report",
        "summary": "Files it",
        "group": "Reports",
        "icon": "file-text",
        "input_schema": NESTED,
    }
    version |= {"group": "About", "annotations": {"readOnlyHint": True}}
    (plugin / "dist" / "tools.json").write_text(json.dumps(listed))
    (plugin / "playground").mkdir()
    (plugin / "playground" / "index.html").write_text("<!doctype html><title>forms</title>")
    return plugin


def write_evil(directory: Path) -> Path:
    """Write a plugin whose texts and icon try to break the console."""
    plugin = write_plugin(directory / "evil", tools=["version"])
    package = json.loads((plugin / "package.json").read_text())
    package["opentabs"] |= {
        "displayName": HOSTILE,
        "description": LONG,
        "iconSvg": EVIL_ICON,
        "homepage": f"https://{'w' * 60}.example/",
    }
    (plugin / "package.json").write_text(json.dumps(package))
    listed = json.loads((plugin / "dist" / "tools.json").read_text())
    listed["tools"][0] |= {"displayName": HOSTILE, "description": LONG, "summary": LONG}
    listed["tools"][0] |= {"group": HOSTILE, "icon": "__proto__"}
    (plugin / "dist" / "tools.json").write_text(json.dumps(listed))
    return plugin


def write_broken(directory: Path) -> Path:
    """Write a plugin that was not built."""
    plugin = write_plugin(directory / "broken")
    (plugin / "dist" / "tools.json").unlink()
    return plugin


def write_lacking(directory: Path, *settings: str) -> Path:
    """Write (or rewrite) a plugin that requires settings that are not set."""
    needed = {each: {**NUMBER, "required": True} for each in settings}
    return write_plugin(directory / "lacking", settings=needed)


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
async def console_page(
    browser: Browser, tabs: OpenTabs, *, width: int = 1280, height: int = 800, dark: bool = False
) -> AsyncGenerator[Page]:
    """The console's page, signed in; its errors fail the test."""
    url = tabs.console_url()
    async with live_page(browser, url, width=width, height=height, dark=dark) as page:
        yield page


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
    context.set_default_timeout(PATIENT)
    page = await context.new_page()
    said: list[str] = []

    def note(text: str) -> None:
        if not says_server_stopped(text):
            said.append(text)

    page.on("console", lambda message: note(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    await page.goto(url)
    await expect(page.locator("#state")).to_have_attribute("data-state", "live", timeout=PATIENT)
    yield page
    assert said == [], "\n".join(said)
    await context.close()


async def go(page: Page, path: str) -> None:
    """Show a view by its address."""
    await page.evaluate("(path) => { location.hash = `#/${path}`; }", path)
