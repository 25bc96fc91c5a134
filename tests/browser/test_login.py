"""What is kept of a user who signs in."""

from typing import Any, cast

import anyio
import pytest
from playwright.async_api import BrowserContext, Error

from opentabs_py.browser.login import _Seen
from tests.waiting import until_all_wait

pytestmark = pytest.mark.anyio


class Leaving:
    """A page that cannot be read."""

    async def evaluate(self, _: str) -> Any:
        raise Error("Execution context was destroyed")


class Signed:
    """A page with local storage."""

    async def evaluate(self, _: str) -> Any:
        return ["https://chat.example", [["token", "s3"]]]


class Window:
    """A browser with both."""

    pages = (Leaving(), Signed())

    async def cookies(self) -> list[Any]:
        return [{"name": "session"}]


async def test_a_page_that_cannot_be_read_hides_no_other() -> None:
    seen = _Seen()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seen.follow, cast(BrowserContext, Window()), anyio.Event())
        await until_all_wait()
        tasks.cancel_scope.cancel()
    assert seen.state["cookies"] == [{"name": "session"}]
    assert [each["origin"] for each in seen.state["origins"]] == ["https://chat.example"]
