"""How long a snapshot is, compared with that of npm's `@playwright/mcp` for the same page.

Run by hand, because npx downloads it: `python -m e2e.bench.playwright_mcp`. Prints the table of
docs/hands.md.
"""

import os
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio import TemporaryDirectory
from mcp import types
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from playwright.async_api import Page
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.hands.saved_pages import PAGES
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.config.settings import load_settings
from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.hands.snapshot import render
from opentabs_py.hands.tree import parse
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

PACKAGE: Final = "@playwright/mcp@0.0.83"


@asynccontextmanager
async def serve_pages() -> AsyncGenerator[str]:
    """Serve each page at its name, and yield the address."""

    def make(name: str) -> Route:
        async def show(_request: Request) -> Response:
            return HTMLResponse(PAGES[name]())

        return Route(f"/{name}", show)

    listener = bind("127.0.0.1", 0)
    async with serve_http(Starlette(routes=[make(name) for name in PAGES]), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@asynccontextmanager
async def playwright_mcp() -> AsyncGenerator[Client]:
    """Run npm's server with our Chromium, and yield a client of it."""
    settings = load_settings()
    options = ["--headless", "--isolated", "--executable-path", str(configured_chromium(settings))]
    if not configured_sandbox(settings):
        options.append("--no-sandbox")
    await anyio.run_process(["npx", "--yes", PACKAGE, "--version"])  # npx may have to download it
    async with TemporaryDirectory() as output:
        options += ["--output-dir", output]
        command = StdioServerParameters(
            command="npx", args=["--yes", PACKAGE, *options], env={**os.environ}
        )
        async with Client(stdio_client(command), mode="legacy") as client:
            yield client


async def snapshot(client: Client, url: str) -> str:
    """Return everything that `browser_snapshot` returns for a page."""
    await client.call_tool("browser_navigate", {"url": url})
    result = await client.call_tool("browser_snapshot", {})
    assert not result.is_error, result
    return "".join(each.text for each in result.content if isinstance(each, types.TextContent))


async def row(page: Page, client: Client, url: str, name: str) -> str:
    """Return a line of the table; fail if an interactive element is missing in ours."""
    html = len(PAGES[name]().encode()) >> 10
    theirs = await snapshot(client, f"{url}/{name}")
    await page.goto(f"{url}/{name}")
    nodes = parse(await page.aria_snapshot(mode="ai"))
    whole, sent = render(nodes, most=1_000_000), render(nodes)
    used = {each.ref for node in nodes for each in node.walk() if each.is_used and each.ref}
    assert used <= {*re.findall(r"\b(?:f\d+)?e\d+\b", whole)}, name
    sizes = [estimate_tokens(text) for text in (theirs, whole, sent)]
    numbers = " | ".join(f"{size:,}" for size in sizes)
    return f"| {name} | {html} KB | {len(used)} | {numbers} |"


async def main() -> None:
    """Print the table."""
    settings = load_settings(hands=True, port=0, profile=None, headed=False)
    async with serve_pages() as url, OpenTabs(settings=settings) as tabs:
        page = await tabs.context.new_page()
        async with playwright_mcp() as client:
            for name in PAGES:
                print(await row(page, client, url, name))


if __name__ == "__main__":
    anyio.run(main)
