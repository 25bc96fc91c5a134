"""A Python tool that calls a page's tool passes on its reports, its error and its cancellation."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest
from mcp.client import Client

from e2e.chain import PROBE
from e2e.waiting import PATIENT
from opentabs_py import Progress, Server
from opentabs_py.config.settings import load_settings

pytestmark = pytest.mark.anyio


async def drive(steps: list[Any], key: str, progress: Progress) -> Any:
    """Run steps in a page, and report when they are done."""
    progress.report("to the page")
    value = await progress.call("probe_run", {"key": key, "steps": steps, "result": "done"})
    progress.report("back again")
    return value


def drive_from_a_thread(key: str, progress: Progress) -> Any:
    """The same, from a thread."""
    return progress.call_from_thread("probe_run", {"key": key, "result": "done"})


async def fail(progress: Progress) -> Any:
    """Call a page's tool that throws."""
    return await progress.call("probe_fail", {"kind": "tool"})


@pytest.fixture(scope="module")
async def server(site: str) -> AsyncGenerator[Server]:
    """Python tools and page tools, in one server."""
    settings = load_settings(port=0, profile=None, headed=False)
    tools = [drive, drive_from_a_thread, fail]
    async with Server(tools=tools, plugins=[PROBE], settings=settings) as running:
        await running.open(f"{site}/page")
        with anyio.fail_after(PATIENT):
            await running.internals.bridge.wait_ready("probe")
        yield running


REPORTS = [{"report": {"progress": n, "total": 3, "message": f"page {n}"}} for n in (1, 2, 3)]
MESSAGES = ["to the page", "page 1", "page 2", "page 3", "back again"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_sent_the_reports_of_the_page_as_those_of_the_python_tool(
    server: Server, mode: str
) -> None:
    came: dict[float, str | None] = {}

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total in (None, 3.0)
        came[progress] = message

    async with Client(server.mcp_url, mode=mode) as client:
        arguments = {"steps": REPORTS, "key": f"client {mode}"}
        with anyio.fail_after(PATIENT):
            result = await client.call_tool("drive", arguments, progress_callback=note)
            await client.list_tools()
    assert result.structured_content == {"key": f"client {mode}", "result": "done"}
    assert [came[number] for number in sorted(came)] == MESSAGES


async def test_handlers_see_the_call_of_the_python_tool_and_that_of_the_page(
    server: Server,
) -> None:
    seen: dict[str, list[Any]] = {}
    server.on_tool_progress = lambda tool, _call, data: seen.setdefault(tool, []).append(
        data["message"]
    )
    with anyio.fail_after(PATIENT):
        await server.call_tool("drive", {"steps": REPORTS, "key": "handlers"})
    server.on_tool_progress = None
    assert seen == {"drive": MESSAGES, "probe_run": MESSAGES[1:-1]}


async def test_a_sync_tool_calls_the_page_from_its_thread(server: Server) -> None:
    with anyio.fail_after(PATIENT):
        result = await server.call_tool("drive_from_a_thread", {"key": "thread"})
    assert result.structured_content == {"key": "thread", "result": "done"}


async def test_an_error_of_the_page_reaches_the_caller_whole(server: Server) -> None:
    with anyio.fail_after(PATIENT):
        result = await server.call_tool("fail")
    assert result.is_error
    assert "[ERROR code=RATE_LIMITED category=rate_limit retryable=true retryAfterMs=1500]" in str(
        result.content
    )


async def test_cancelling_the_python_tool_aborts_the_page_tool(server: Server) -> None:
    [page] = [page for page in server.context.pages if page.url.startswith("http://127.0.0.1")]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.call_tool, "drive", {"steps": [{"wait": 60_000}], "key": "gone"})
        await page.wait_for_function("() => 'gone' in probe.runs")
        tasks.cancel_scope.cancel()
    await page.wait_for_function("() => 'gone' in probe.aborted")
