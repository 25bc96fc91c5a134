"""Async tests among others that are not; run by test_kit_async.py."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Page as AsyncPage
from playwright.sync_api import Page

from opentabs_py.config.settings import load_settings
from opentabs_py.testing import OpenTabs, SyncOpenTabs, expect


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_one_requests_the_fixture_while_it_runs(request: pytest.FixtureRequest) -> None:
    opentabs: SyncOpenTabs = request.getfixturevalue("opentabs")

    assert "demo_list_channels" in [tool.name for tool in opentabs.tools]


def test_one_does_not_await(opentabs: SyncOpenTabs, page: Page, demo_site: str) -> None:
    page.goto(demo_site)

    expect(opentabs.start("demo_list_channels")).to_succeed()


@pytest.fixture
async def tabs(opentabs_plugins: Sequence[str | Path]) -> AsyncGenerator[OpenTabs]:
    settings = load_settings(port=0)
    async with OpenTabs(plugins=opentabs_plugins, settings=settings) as running:
        yield running


@pytest.fixture
async def chat(tabs: OpenTabs, demo_site: str) -> AsyncPage:
    return await tabs.open(demo_site)


@pytest.mark.anyio
async def test_one_awaits(tabs: OpenTabs, chat: AsyncPage) -> None:
    call = await tabs.start("demo_list_channels")

    await expect(call).to_succeed()
    await expect(chat.locator("h1")).not_to_be_empty()


@pytest.mark.anyio
@pytest.mark.usefixtures("opentabs")
async def test_one_awaits_with_the_fixture_for_those_that_do_not() -> None:
    raise AssertionError("it is not begun")


@pytest.mark.usefixtures("opentabs")
def test_one_runs_a_loop_by_itself() -> None:
    async def main() -> None: ...

    anyio.run(main)
