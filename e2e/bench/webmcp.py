"""What a call of a page's own tool costs, compared with a plugin's tool in the same page."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio

from e2e.bench.table import Measurement
from e2e.chain import PROBE
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

CALLS = 300
MEASUREMENTS = {
    "webmcp": Measurement(
        f"a WebMCP call, p50 of {CALLS}; floor: a plugin's",
        "ms",
        beside="webmcp_plugin",
    ),
}
REGISTER = """document.modelContext.registerTool({
  name: "echo",
  description: "Returns the value.",
  inputSchema: {type: "object", properties: {value: {}}, required: ["value"]},
  execute: ({value}) => value,
})"""


@dataclass(slots=True)
class WebMcpBench:
    """A page with both tools."""

    tabs: OpenTabs
    tool: str
    tab: int

    async def measure(self) -> dict[str, float]:
        """Alternate the two kinds of call, so that noise affects both equally."""
        own: list[float] = []
        plugins: list[float] = []
        for _ in range(CALLS):
            plugins.append(await self._call("probe_echo"))
            own.append(await self._call(self.tool))
        return {"webmcp": median(own), "webmcp_plugin": median(plugins)}

    async def _call(self, name: str) -> float:
        began = time.perf_counter()
        await self.tabs.call(name, {"value": 1, "tabId": self.tab})
        return (time.perf_counter() - began) * 1000


@asynccontextmanager
async def webmcp_bench(chromium: Path, url: str) -> AsyncGenerator[WebMcpBench]:
    """Open a page with a plugin's tool and one of its own, both warm."""
    settings = load_settings(
        port=0,
        profile=None,
        headed=False,
        chromium=chromium,
        webmcp=("http://127.0.0.1/*",),
        permissions={"default": "auto"},
    )
    async with OpenTabs(plugins=[PROBE], settings=settings) as tabs:
        page = await tabs.open(url)
        await page.evaluate(REGISTER)
        with anyio.fail_after(PATIENT):
            tab, tools = await tabs.internals.page_tools.wait_for(page.url)
            while not tools:
                await tabs.internals.bridge.changed().wait()
                tab, tools = await tabs.internals.page_tools.wait_for(page.url)
            await tabs.internals.bridge.wait_ready("probe")
        yield WebMcpBench(tabs, tools[0].listing.name, tab)
