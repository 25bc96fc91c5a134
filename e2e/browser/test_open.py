"""Opening pages in a session's browser."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from e2e.chain import PROBE
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs


@pytest.fixture
async def session() -> AsyncGenerator[OpenTabs]:
    settings = load_settings(port=0, profile=None, headed=False)
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        yield tabs


async def test_a_page_opens_after_one_that_could_not_be_opened(
    session: OpenTabs, site: str
) -> None:
    for attempt in range(5):
        with pytest.raises(BrowserError, match=r"Cannot open http://127\.0\.0\.1:9/: net::ERR"):
            await session.open("http://127.0.0.1:9/")
        page = await session.open(f"{site}/{attempt}")
        assert page.url == f"{site}/{attempt}"


async def test_a_page_that_could_not_be_opened_leaves_no_tab(session: OpenTabs, site: str) -> None:
    await session.open(f"{site}/first")
    with pytest.raises(BrowserError):
        await session.open("http://127.0.0.1:9/")
    assert [page.url for page in session.context.pages] == [f"{site}/first"]


async def test_two_pages_opened_at_once_are_two(session: OpenTabs, site: str) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.open, f"{site}/one")
        tasks.start_soon(session.open, f"{site}/two")
    assert {page.url for page in session.context.pages} == {f"{site}/one", f"{site}/two"}


async def test_a_blank_page_of_the_user_is_left_alone(session: OpenTabs, site: str) -> None:
    await session.open(f"{site}/first")
    blank = await session.context.new_page()
    await session.open(f"{site}/second")
    assert blank.url == "about:blank"
