"""What happens to waiting HTTP clients when the server stops."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskStatus
from mcp import types
from mcp.client import Client

from opentabs_py.core.trace.record import CallRecord
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.session.session import Server
from tests.fakes import FakeBridge
from tests.served import Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


class Waiting:
    """A tool that does not return; it records whether its call was ended."""

    def __init__(self) -> None:
        self.called, self.ended = anyio.Event(), anyio.Event()

    async def wait(self) -> None:
        """Wait forever."""
        self.called.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()


@asynccontextmanager
async def serving(tool: Callable[..., object]) -> AsyncGenerator[tuple[str, Callable[[str], None]]]:
    """Serve a tool in its own task; yield the address, and a function that stops the server."""
    stop = anyio.Event()

    async def serve(*, task_status: TaskStatus[tuple[str, anyio.CancelScope]]) -> None:
        with anyio.CancelScope() as scope:
            async with Server(tools=[tool]) as server:
                task_status.started((server.mcp_url, scope))
                await stop.wait()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            url, scope = await tasks.start(serve)
            # A signal cancels the serving command.
            yield url, lambda how: scope.cancel() if how == "cancelled" else stop.set()


@pytest.mark.parametrize("how", ["cancelled", "left"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_that_runs_when_the_server_stops_is_answered_with_an_error(
    mode: str, how: str
) -> None:
    waiting = Waiting()
    results: list[types.CallToolResult] = []
    async with serving(waiting.wait) as (url, stop), Client(url, mode=mode) as client:

        async def call() -> None:
            results.append(await client.call_tool("wait", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await waiting.called.wait()
            stop(how)
    [result] = results
    assert result.is_error
    assert result.meta is not None
    assert result.meta["opentabs/error"]["code"] == "SERVER_STOPPED"
    assert "The server stopped while wait was running." in str(result.content[0])
    assert waiting.ended.is_set()


async def test_a_stream_of_changes_ends_as_the_specification_asks_when_the_server_stops() -> None:
    async with (
        serving(Waiting().wait) as (url, stop),
        Client(url) as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        stop("cancelled")
        assert [change async for change in changes] == []  # raises if it was dropped


async def test_a_call_that_a_stop_ends_is_recorded_as_its_client_receives_it() -> None:
    bridge = FakeBridge()
    bridge.hangs = True
    served = Served(bridge)
    records: list[CallRecord] = []
    served.tool_calls.records.observe(records.append)
    results: list[types.CallToolResult] = []
    server = create_mcp_server(served.tool_calls)
    with anyio.fail_after(PATIENT):
        async with Client(server) as client, anyio.create_task_group() as tasks:

            async def call() -> None:
                results.append(await client.call_tool("chat_send", {}))

            tasks.start_soon(call)
            await bridge.called.wait()
            served.tool_calls.running.stop()
    [record], [result] = records, results
    assert record.outcome == "lost"
    assert record.error is not None
    assert result.meta is not None
    assert record.error.code == result.meta["opentabs/error"]["code"] == "SERVER_STOPPED"
    assert bridge.received[0].call.cancellation.reason == "the server stopped"


async def test_a_call_that_comes_while_the_server_stops_does_not_run() -> None:
    served = Served()
    served.tool_calls.running.stop()
    async with Client(create_mcp_server(served.tool_calls)) as client:
        result = await client.call_tool("chat_send", {})
    assert "so chat_send did not run" in str(result.content[0])
    assert served.bridge.received == []
