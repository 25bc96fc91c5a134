"""The page that guides through loading the extension by hand, and shows when it has connected."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from opentabs_py.bridge.pages import Pages
from opentabs_py.server.http.page_headers import PageHeaders

PATH: Final = "/extension"
_PAGE: Final = Path(__file__).with_name("guide_page")


def guide(
    pages: Pages,
    *,
    directory: Path,
    mcp_url: str,
    start_page: Callable[[str], Awaitable[str | None]],
) -> Mount:
    """Return the page and what it asks for, at `PATH`.

    It needs no token, because a browser would not send one: any program on this machine may read
    the extension's place and the plugins' names, but not the extension's secret.

    Args:
        pages: The browsers that have loaded the extension.
        directory: The extension's directory.
        mcp_url: The URL for MCP clients.
        start_page: Returns the URL to try a plugin on, if it has one.
    """

    async def report_state(_request: Request) -> Response:
        connected = [bridge.name for bridge in pages.bridges if bridge.connected]
        plugins = [
            {
                "name": name,
                "status": pages.tabs.status(name),
                "startPage": await start_page(name) if connected else None,
            }
            for name in pages.plugins
        ]
        return JSONResponse(
            {
                "browsers": connected,
                "directory": str(directory),
                "mcpUrl": mcp_url,
                "plugins": plugins,
            }
        )

    return Mount(
        PATH,
        routes=[
            Route("/state", report_state),
            Mount("/", StaticFiles(directory=_PAGE, html=True)),
        ],
        middleware=[Middleware(PageHeaders)],
    )
