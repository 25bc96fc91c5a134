"""What watching costs: the console's first paint, and calls that are recorded or looked at.

Three sessions with one page each make interleaved calls: one that nobody watches, one whose calls
are audited, and one whose console is open. A fourth has 120 plugins, and 5,000 calls when its
console is opened.
"""

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from statistics import median

import anyio
import pytest
from playwright.async_api import Browser

from e2e.bench.many import Folders, plugin_folders
from e2e.bench.many_plugins import COUNT
from e2e.bench.table import Measurement
from e2e.chain import PROBE
from e2e.console.opened import console_page
from e2e.live_page import chromium
from opentabs_py import tool
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

CALLS = 200
MADE = 5_000  # calls, as many as the console keeps
AT_ONCE = 50
OPENED = 3
MEASUREMENTS = {
    "console_paint": Measurement(
        f"the console's first paint, {COUNT} plugins and {MADE:,} calls", "ms", at_most=300
    ),
    "console_cards": Measurement("  until the last plugin is shown", "ms"),
    "echo_audit": Measurement("echo, recorded by the audit", "ms", beside="echo_unwatched"),
    "echo_console": Measurement("echo, a page of the console open", "ms", beside="echo_unwatched"),
}

# Times after the navigation: of the first paint, and of the last card.
PAINTED = """async () => {
    const cards = () => document.querySelectorAll(".cards > li").length;
    while (cards() < %d) await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    const at = performance.now();
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    return [paint.startTime, at];
}"""


@tool
async def count(number: int) -> int:
    """Return the number."""
    return number


@dataclass(slots=True)
class People:
    """The sessions with their tabs' numbers, and a browser that shows the console."""

    tabs: dict[str, tuple[OpenTabs, int]]
    busy: OpenTabs
    browser: Browser

    async def first_paint(self) -> dict[str, float]:
        """Open the console of a server with many plugins and calls."""
        numbers: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(OPENED):
            async with console_page(self.browser, self.busy) as page:
                await page.reload()  # the first time includes signing in
                painted, shown = await page.evaluate(PAINTED % COUNT)
            numbers["console_paint"].append(painted)
            numbers["console_cards"].append(shown)
        return {name: median(each) for name, each in numbers.items()}

    async def echoes(self) -> dict[str, float]:
        """Call a page's tool in each of the sessions, interleaved."""
        took: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(CALLS):
            for name, (tabs, tab) in self.tabs.items():
                began = time.perf_counter()
                await tabs.call("probe_echo", {"value": 1, "tabId": tab})
                took[name].append((time.perf_counter() - began) * 1000)
        return {name: median(times) for name, times in took.items()}


@asynccontextmanager
async def people(url: str, folders: Folders) -> AsyncGenerator[People]:
    """Run the sessions, with the audit in a separate directory."""
    async with AsyncExitStack() as stack:
        stack.enter_context(_data_directory())
        settings = load_settings(port=0, host="127.0.0.1", profile=None, headed=False)
        browser = await stack.enter_async_context(chromium(settings))
        tabs: dict[str, tuple[OpenTabs, int]] = {}
        for name, is_recorded, is_watched in (
            ("echo_unwatched", False, False),
            ("echo_audit", True, False),
            ("echo_console", False, True),
        ):
            session = await stack.enter_async_context(
                OpenTabs(
                    plugins=[PROBE], settings=settings.model_copy(update={"audit": is_recorded})
                )
            )
            await session.open(url)
            tabs[name] = session, (await session.internals.bridge.wait_ready("probe")).tab_id
            if is_watched:
                await stack.enter_async_context(console_page(browser, session))
        busy = await stack.enter_async_context(
            OpenTabs(plugins=[*folders.many.iterdir()], tools=[count], settings=settings)
        )
        busy.internals.keep_history()
        await _make_calls(busy)
        running = People(tabs, busy, browser)
        await running.echoes()
        yield running


async def _make_calls(tabs: OpenTabs) -> None:
    async def some(first: int) -> None:
        for number in range(first, MADE, AT_ONCE):
            await tabs.call("count", {"number": number})

    async with anyio.create_task_group() as tasks:
        for first in range(AT_ONCE):
            tasks.start_soon(some, first)


@contextmanager
def _data_directory() -> Generator[None]:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_DATA_HOME", directory)
        yield


async def _main(rounds: int) -> None:
    from e2e.bench.page import serve_site

    async with serve_site() as url, plugin_folders() as folders, people(url, folders) as bench:
        for _ in range(rounds):
            print(await bench.first_paint(), await bench.echoes(), flush=True)


if __name__ == "__main__":
    anyio.run(_main, 3, backend_options={"use_uvloop": sys.platform != "win32"})
