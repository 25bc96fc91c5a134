"""A snapshot is at most half as long as Playwright's, and has all interactive elements."""

import re
from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Page

from e2e.hands.rig import hand_settings
from e2e.hands.saved_pages import PAGES
from opentabs_py.core.tokens import estimate_tokens
from opentabs_py.hands.snapshot import MOST_TOKENS, render
from opentabs_py.hands.tree import parse
from opentabs_py.session.session import OpenTabs


@pytest.fixture(scope="module")
async def tabs() -> AsyncGenerator[OpenTabs]:
    async with OpenTabs(settings=hand_settings()) as tabs:
        yield tabs


@pytest.fixture
async def page(tabs: OpenTabs) -> AsyncGenerator[Page]:
    """A new tab, in which Playwright's references are shortest."""
    async with await tabs.context.new_page() as page:
        yield page


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_is_shown_in_half_the_tokens(page: Page, name: str) -> None:
    await page.set_content(PAGES[name]())
    raw = await page.aria_snapshot(mode="ai")  # what Playwright's MCP server sends

    nodes = parse(raw)
    short, whole = render(nodes), render(nodes, most=1_000_000)

    assert estimate_tokens(short) <= min(MOST_TOKENS, estimate_tokens(raw) / 2)
    used = {each.ref for node in nodes for each in node.walk() if each.is_used and each.ref}
    assert used
    assert used - {*re.findall(r"\be\d+\b", whole)} == set()
