"""How long a snapshot of the largest page takes, compared with Playwright's, which it uses."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from playwright.async_api import Page

from e2e.bench.table import Measurement
from e2e.hands.saved_pages import PAGES
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

SNAPSHOTS = 5
MEASUREMENTS = {
    "snapshot": Measurement(
        f"snapshot of a page of 699 KB, p50 of {SNAPSHOTS}; floor: Playwright's",
        "ms",
        beside="snapshot_raw",
        at_most=150,
    ),
}


@dataclass(frozen=True, slots=True)
class HandsBench:
    """The page."""

    tabs: OpenTabs
    page: Page

    async def measure(self) -> dict[str, float]:
        """Alternate the two kinds of snapshot, so that noise affects both equally."""
        ours: list[float] = []
        raw: list[float] = []
        for _ in range(SNAPSHOTS):
            raw.append(await _timed(lambda: self.page.aria_snapshot(mode="ai")))
            ours.append(await _timed(lambda: self.tabs.call("page_snapshot")))
        return {"snapshot": median(ours), "snapshot_raw": median(raw)}


async def _timed(workload: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await workload()
    return (time.perf_counter() - began) * 1000


@asynccontextmanager
async def hands_bench(chromium: Path) -> AsyncGenerator[HandsBench]:
    """Open the largest page in a browser with hands."""
    settings = load_settings(port=0, profile=None, headed=False, chromium=chromium, hands=True)
    async with OpenTabs(settings=settings) as tabs:
        page = await tabs.context.new_page()
        await page.set_content(PAGES["news"]())
        yield HandsBench(tabs, page)
