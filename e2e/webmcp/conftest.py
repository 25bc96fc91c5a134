"""A browser with its own WebMCP and one with our script, and a page that registers tools."""

from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Page

from e2e.webmcp.page_tools import ALL, settings_for, wait_listed
from e2e.webmcp.site import serving_page
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock


@pytest.fixture(scope="module")
async def shop() -> AsyncGenerator[str]:
    async with serving_page() as url:
        yield url


@pytest.fixture(scope="module")
def clock() -> StoppableClock:
    return StoppableClock()


@pytest.fixture(scope="module", params=["native", "polyfill"])
async def tabs(
    request: pytest.FixtureRequest,
    shop: str,  # noqa: ARG001 (entered before, because it is left after)
    clock: StoppableClock,
) -> AsyncGenerator[OpenTabs]:
    async with OpenTabs(
        settings=settings_for(request.param),
        ignore_default_args=["--disable-back-forward-cache"],
        _seams=Seams(clock=clock),
    ) as running:
        yield running


@pytest.fixture
async def page(tabs: OpenTabs, shop: str) -> AsyncGenerator[Page]:
    opened = await tabs.context.new_page()
    await opened.goto(shop)
    await wait_listed(tabs, lambda names: names >= ALL)
    yield opened
    if not opened.is_closed():
        await opened.close()
    await wait_listed(tabs, lambda names: not names)
