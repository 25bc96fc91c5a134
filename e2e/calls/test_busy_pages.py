"""A tool starts only while somebody waits for it, however late its busy page reads the call."""

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.chain import PROBE, Tab, wait_for_document
from e2e.waiting import PATIENT
from opentabs_py.config.settings import load_settings
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallTimeoutError
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.session.session import OpenTabs

# Its thread waits for the answer; when the page is left, it says so last.
PAGE = """<!doctype html><title>busy</title><script>
addEventListener("pagehide", () => navigator.sendBeacon("/left"));
function block() {
  const request = new XMLHttpRequest();
  request.open("GET", "/answer-later", false);
  request.send();
}
</script>"""


@dataclass
class Site:
    """A site whose page can be kept busy, and that counts what tools post to it."""

    address: str = ""
    posts: list[str] = field(default_factory=list[str])  # the hosts of the pages
    busy: anyio.Event = field(default_factory=anyio.Event)
    answer: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)

    async def serve(self, request: Request) -> Response:
        match request.url.path:
            case "/answer-later":
                self.busy.set()
                await self.answer.wait()
            case "/left":
                self.left.set()
            case "/post":
                self.posts.append(request.url.hostname or "")
            case _:
                return HTMLResponse(PAGE)
        return Response()


@pytest.fixture
async def busy() -> AsyncGenerator[Site]:
    site = Site()
    listener = bind("127.0.0.1", 0)
    routes = [Route("/{path:path}", site.serve, methods=["GET", "POST"])]
    async with serve_http(Starlette(routes=routes), listener):
        site.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield site
        site.answer.set()


@pytest.fixture
async def tab(busy: Site) -> AsyncGenerator[Tab]:
    async with OpenTabs(plugins=[PROBE], settings=load_settings(port=0)) as tabs:
        page = await tabs.context.new_page()
        await page.goto(f"{busy.address}/")
        yield Tab(page, (await wait_for_document(tabs, page.url)).tab_id, tabs)


async def block(tab: Tab, site: Site) -> None:
    await tab.page.evaluate("void setTimeout(block)")
    with anyio.fail_after(PATIENT):
        await site.busy.wait()


async def test_a_call_to_a_busy_page_that_is_left_for_another_site_runs_once(
    tab: Tab, busy: Site
) -> None:
    post = {"fetch": "/post", "method": "POST"}
    results: list[object] = []

    async def call() -> None:
        results.append(await tab.call("run", {"key": "a", "steps": [post], "result": "done"}))

    await block(tab, busy)
    async with anyio.create_task_group() as group:
        group.start_soon(call)
        with anyio.fail_after(PATIENT):
            while not tab.tabs.internals.bridge.calls.dispatch.pending:
                await anyio.lowlevel.checkpoint()
            await tab.page.goto(f"{busy.address.replace('127.0.0.1', 'localhost')}/")
    busy.answer.set()  # now the page that was left reads what it was sent
    with anyio.fail_after(PATIENT):
        await busy.left.wait()

    assert results == [{"key": "a", "result": "done"}]
    assert busy.posts == ["localhost"]


@pytest.mark.parametrize("how", ["timeout", "cancellation"])
async def test_a_call_that_ended_while_its_page_was_busy_does_not_start(
    how: Literal["timeout", "cancellation"], tab: Tab, busy: Site
) -> None:
    await block(tab, busy)
    given_up = anyio.move_on_after(0.2 if how == "cancellation" else PATIENT)
    with given_up, suppress(CallTimeoutError):
        await tab.call(
            "run",
            {"key": "a", "steps": []},
            limits=Limits(idle=PATIENT if how == "cancellation" else 0.2),
        )
    busy.answer.set()

    assert given_up.cancelled_caught == (how == "cancellation")
    await tab.call("run", {"key": "b", "steps": []})  # it is after the first in every queue
    assert await tab.page.evaluate("probe.runs") == {"b": 1}
