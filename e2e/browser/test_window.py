"""A browser that is launched with a window is its user's to operate."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.waiting import PATIENT, until_file
from opentabs_py.config.settings import load_settings
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

PAGE = """<!doctype html><title>Shop</title><a href=/invoice>Invoice</a>
<button onclick="document.title = confirm('Delete it?') ? 'Deleted' : 'Kept'">Delete</button>"""


@pytest.fixture
async def shop() -> AsyncGenerator[str]:
    """The address of a page that asks, and that has a file to download."""

    async def page(_request: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    async def invoice(_request: Request) -> Response:
        return Response("1 EUR", headers={"content-disposition": "attachment; filename=bill.txt"})

    listener = bind("127.0.0.1", 0)
    app = Starlette(routes=[Route("/", page), Route("/invoice", invoice)])
    async with serve_http(app, listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


@pytest.fixture
async def window(
    shop: str, display: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[Page]:
    """The page, in a window of a user whose downloads go to `tmp_path`."""
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "user-dirs.dirs").write_text(f'XDG_DOWNLOAD_DIR="{tmp_path}"\n')
    async with OpenTabs(settings=load_settings(headed=True, port=0)) as tabs:
        [first] = tabs.context.pages
        page = await tabs.context.new_page()
        await first.close()
        await page.goto(shop)
        yield page


async def test_a_dialog_waits_for_the_user(window: Page) -> None:
    opened = anyio.Event()
    user: Any = await window.context.new_cdp_session(window)
    await user.send("Page.enable")
    user.on("Page.javascriptDialogOpening", lambda _: opened.set())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(window.get_by_role("button").click)
        with anyio.fail_after(PATIENT):
            await opened.wait()
        await user.send("Page.handleJavaScriptDialog", {"accept": True})

    await expect(window).to_have_title("Deleted")


async def test_a_download_is_kept_in_the_users_directory(window: Page, tmp_path: Path) -> None:
    await window.get_by_role("link").click()

    bill = tmp_path / "bill.txt"
    await until_file(tmp_path, bill.exists)
    assert bill.read_text() == "1 EUR"
