"""The extension's worker is started again after a crash."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from opentabs_py.browser import crashes
from opentabs_py.browser.crashes import start_worker_at_crashes

pytestmark = pytest.mark.anyio


class Page:
    """A page that can crash."""

    def __init__(self) -> None:
        self.crash: Callable[[Any], None] = lambda _: None

    def on(self, _: str, handle: Callable[[Any], None]) -> None:
        self.crash = handle


class Context:
    """A browser whose driver has just died."""

    def __init__(self) -> None:
        self.pages = [Page()]
        self.asked = 0

    def on(self, _: str, __: Callable[[Any], None]) -> None: ...

    async def new_cdp_session(self, _: Page) -> None:
        self.asked += 1
        raise RuntimeError("unable to perform operation on <WriteUnixTransport closed=True>")


async def test_a_driver_that_dies_with_the_page_does_not_end_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crashes, "CONNECTS_WITHIN", 0)
    context: Any = Context()
    async with anyio.create_task_group() as tasks:
        start_worker_at_crashes(context, "chrome-extension://a", lambda: bool(context.asked), tasks)
        context.pages[0].crash(context.pages[0])
    assert context.asked == 1
