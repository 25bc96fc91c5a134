"""The tools of the page, and how tests wait for them and call them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from playwright.async_api import Page

from e2e.waiting import PATIENT
from opentabs_py.calling.listing import Listing
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

ADD, COUNT, HANG, PAY, VALUE, BOOK, CONFIRM = (
    f"page_127_0_0_1_{name}" for name in ("add", "count", "hang", "pay", "value", "book", "confirm")
)

ALL = {ADD, COUNT, HANG, PAY, VALUE, BOOK, CONFIRM}


def settings_for(kind: str = "native", **more: Any) -> Any:
    return load_settings(
        port=0,
        profile=None,
        headed=False,
        webmcp=("http://127.0.0.1/*", "http://localhost/*"),
        webmcp_polyfill=kind == "polyfill",
        **{"permissions": {"default": "auto"}, **more},
    )


def offered(tabs: OpenTabs) -> dict[str, Listing]:
    return {each.name: each for each in tabs.tools if each.is_of_page}


async def wait_listed(tabs: OpenTabs, holds: Callable[[set[str]], bool]) -> None:
    """Wait until the pages have the expected tools, and list them at once."""
    with anyio.fail_after(PATIENT):
        while True:
            changed = tabs.internals.bridge.changed()
            tabs.internals.page_tools.refresh()
            if holds({*offered(tabs)}):
                return
            await changed.wait()


async def wait_for(tabs: OpenTabs, holds: Callable[[set[str]], bool]) -> None:
    """Wait until the pages' tools have these names."""
    changed = anyio.Event()
    end = tabs.internals.registry.subscribe(lambda: changed.set())  # noqa: PLW0108 (it is replaced)
    try:
        with anyio.fail_after(PATIENT):
            while not holds({*offered(tabs)}):
                await changed.wait()
                changed = anyio.Event()
    finally:
        end()


async def failure(tabs: OpenTabs, name: str, arguments: Any = None, **more: Any) -> CallError:
    with pytest.raises(CallError) as caught, anyio.fail_after(PATIENT):
        await tabs.call(name, arguments, **more)
    return caught.value


@dataclass
class Hanging:
    """A running call of `hang`, and how it ended."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    value: Any = None
    error: CallError | None = None

    async def run(self, tabs: OpenTabs, key: str, limits: Limits | None = None) -> None:
        with self.scope:
            try:
                self.value = await tabs.call(HANG, {"key": key}, limits=limits)
            except CallError as error:
                self.error = error


async def wait_running(page: Page, key: str) -> None:
    await page.wait_for_function("key => key in signals", arg=key)


async def tab_ids(tabs: OpenTabs) -> dict[str, int]:
    """Return the tabs in which all tools are present, by URL."""
    documents = [d for d in tabs.internals.bridge.tabs.documents if "@page" in d.plugins]
    reports = tabs.internals.bridge.page_tools
    assert reports is not None
    return {
        document.url: document.tab_id
        for document in documents
        if len(reports.of_document(document.document_id) or ()) == len(ALL)
    }
