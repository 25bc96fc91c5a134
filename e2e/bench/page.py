"""The page that the bench calls into: its site, its plugin, its clock."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http

# A plugin of the bench, for what the probe cannot do: return the page's time.
PACKAGE = {
    "name": "opentabs-plugin-clock",
    "version": "1.0.0",
    "opentabs": {
        "displayName": "Clock",
        "description": "Reports the page's time",
        "urlPatterns": ["http://127.0.0.1/*"],
    },
}
TOOLS = [
    {
        "name": "report",
        "displayName": "Report",
        "description": "Report the page's time, again and again",
        "icon": "clock",
        "input_schema": {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "gap": {"type": "integer"}},
            "required": ["count", "gap"],
        },
        "output_schema": {},
    },
    {
        "name": "hang",
        "displayName": "Hang",
        "description": "Report, and note when the signal fires",
        "icon": "clock",
        "input_schema": {"type": "object", "properties": {}},
        "output_schema": {},
    },
]
ADAPTER = """
(() => {
  const report = async ({ count, gap }, context) => {
    for (let i = 0; i < count; i++) {
      await new Promise((resolve) => setTimeout(resolve, gap));
      context.reportProgress({ message: String(performance.now()) });
    }
  };
  const hang = async (_params, context) => {
    globalThis.abortedAt = undefined;
    const aborted = new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    context.reportProgress({});
    await aborted;
    globalThis.abortedAt = performance.now();
  };
  const tools = [{ name: "report", handle: report }, { name: "hang", handle: hang }];
  globalThis.__openTabs.adapters.clock = { tools, isReady: async () => true };
})();
"""

# When `performance.now()` was zero, on the machine's clock in ms. The clocks are compared at the
# moments when the coarse one ticks, because it is exact then.
ORIGIN = """
() => {
  const origins = [];
  for (let last = Date.now(); origins.length < 40; ) {
    const wall = Date.now();
    if (wall !== last) {
      origins.push(wall - performance.now());
      last = wall;
    }
  }
  return origins.sort((a, b) => a - b)[origins.length / 2];
}
"""


def write_clock_plugin(directory: Path) -> Path:
    dist = directory / "dist"
    dist.mkdir()
    (directory / "package.json").write_text(json.dumps(PACKAGE))
    (dist / "tools.json").write_text(json.dumps(TOOLS))
    (dist / "adapter.iife.js").write_text(ADAPTER)
    return directory


@asynccontextmanager
async def serve_site() -> AsyncGenerator[str]:
    """The address of a page on which nothing happens."""

    async def page(_request: Request) -> HTMLResponse:
        return HTMLResponse("<!doctype html><title>bench</title><body>a page")

    listener = bind("127.0.0.1", 0)
    async with serve_http(Starlette(routes=[Route("/", page)]), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
