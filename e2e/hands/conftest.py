"""A server with the hands, and a browser that shows the shop."""

from collections.abc import AsyncGenerator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from e2e.hands.rig import LONG, PASSWORD, PDF, PIN, SECRETS, SHOP, Rig, hand_settings
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs


@pytest.fixture(scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Rig]:
    async def shop(_request: Request) -> Response:
        return HTMLResponse(SHOP)

    async def long(_request: Request) -> Response:
        return HTMLResponse(LONG)

    async def asking(_request: Request) -> Response:
        return HTMLResponse("<script>document.title = confirm('Delete all?')</script>")

    async def stock(_request: Request) -> Response:
        return JSONResponse({"left": 7, "for": PASSWORD})

    async def report(_request: Request) -> Response:
        return Response("a,b", headers={"Content-Disposition": 'attachment; filename="report.csv"'})

    async def paper(_request: Request) -> Response:
        return Response(PDF, media_type="application/pdf")

    site = Starlette(
        routes=[
            Route("/", shop),
            Route("/cart", long),
            Route("/long", long),
            Route("/asking", asking),
            Route("/api/stock", stock),
            Route("/report", report),
            Route("/paper.pdf", paper),
        ]
    )
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    directory = tmp_path_factory.mktemp("hands")
    (directory / "photo.png").write_bytes(b"png")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SITE_PASSWORD", PASSWORD)
        patched.setenv("SHOP_PIN", PIN)
        patched.chdir(directory)
        async with (
            serve_http(site, listener),
            OpenTabs(settings=hand_settings(secrets=SECRETS)) as tabs,
        ):
            yield Rig(tabs, url, await tabs.open(url))
