"""The client: progress in order and on time, extensible deadlines, and messages."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import types
from mcp.shared.exceptions import MCPError

import opentabs_py.client
from opentabs_py import Progress
from opentabs_py.client import Client
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import CallTimeoutError
from opentabs_py.session.session import Server
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

SKIPPED = 15.0  # s; half of what the server allows


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def a_client(*tools: Any, mode: str, **options: Any) -> AsyncGenerator[Client]:
    async with Server(tools=tools) as server, Client(server.mcp_server, mode=mode, **options) as it:
        yield it


async def reports(progress: Progress, times: int) -> str:
    """Report several times."""
    for number in range(times):
        progress.report(str(number), progress=number + 1)
        await anyio.lowlevel.checkpoint()
    return "done"


async def test_callbacks_run_one_after_the_other_and_all_before_the_call_returns(mode: str) -> None:
    seen: list[str] = []
    running = 0

    async def slowly(_progress: float, _total: float | None, message: str | None) -> None:
        nonlocal running
        running += 1
        assert running == 1
        # The later the report, the sooner its handler would be done.
        for _ in range(20 - int(str(message))):
            await anyio.lowlevel.checkpoint()
        seen.append(str(message))
        running -= 1

    async with a_client(reports, mode=mode) as client:
        await client.call_tool("reports", {"times": 20}, progress_callback=slowly)
    assert seen == [str(number) for number in range(20)]


async def test_an_error_of_an_elicitation_callback_reaches_the_caller_as_it_is() -> None:
    def greet() -> None: ...

    async def fail(*_: Any) -> Any:
        raise KeyError("mine")

    settings = load_settings(port=0, permissions={"default": "ask"})
    async with (
        Server(tools=[greet], browser="none", settings=settings) as server,
        Client(server.mcp_server, elicitation_callback=fail) as client,
    ):
        with pytest.raises(KeyError, match="mine"):
            await client.call_tool("greet")


async def test_progress_moves_the_idle_deadline(
    mode: str, skip_time: Callable[[float], None]
) -> None:
    arrived = anyio.Event()

    async def works(progress: Progress) -> None:
        nonlocal arrived
        for number in range(3):
            skip_time(SKIPPED)
            progress.report(str(number))
            await arrived.wait()
            arrived = anyio.Event()

    async with a_client(works, mode=mode, idle=2 * SKIPPED - 5) as client:
        result = await client.call_tool("works", progress_callback=lambda *_: arrived.set())
    assert not result.is_error


@pytest.mark.parametrize(
    ("deadlines", "which"),
    [
        ({"idle": SKIPPED}, "idle"),
        ({"idle": 2 * SKIPPED, "ceiling": SKIPPED}, "ceiling"),
    ],
)
async def test_a_deadline_ends_the_call_and_the_tool_with_it(
    mode: str, deadlines: Any, which: str, skip_time: Callable[[float], None]
) -> None:
    stopped = anyio.Event()

    async def hangs(progress: Progress) -> None:
        progress.report("one")
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    async with a_client(hangs, mode=mode) as client:
        with pytest.raises(CallTimeoutError, match="The client gave up on hangs") as caught:
            await client.call_tool(
                "hangs", **deadlines, progress_callback=lambda *_: skip_time(SKIPPED)
            )
        with anyio.fail_after(PATIENT):
            await stopped.wait()
    assert caught.value.timer == which


async def test_a_long_call_gets_its_progress_however_many_have_ended_since_it_began(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opentabs_py.client, "KEPT_CALLS", 2)
    began, goes_on = anyio.Event(), anyio.Event()
    seen: list[str | None] = []

    async def long(progress: Progress) -> None:
        began.set()
        await goes_on.wait()
        progress.report("still here")

    async with a_client(long, reports, mode=mode) as client, anyio.create_task_group() as tasks:

        async def call() -> None:
            await client.call_tool("long", progress_callback=lambda *said: seen.append(said[2]))

        tasks.start_soon(call)
        with anyio.fail_after(PATIENT):
            await began.wait()
            for _ in range(4):
                await client.call_tool("reports", {"times": 0})
            goes_on.set()
    assert seen == ["still here"]


async def test_a_cancelled_call_is_forgotten() -> None:
    began = anyio.Event()

    async def hangs() -> None:
        began.set()
        await anyio.sleep_forever()

    async with a_client(hangs, mode="auto") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "hangs")
        with anyio.fail_after(PATIENT):
            await began.wait()
        tasks.cancel_scope.cancel()
    assert not client._calls


async def test_a_callback_that_fails_does_not_end_the_call_and_is_logged_once(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("broken")

    async with a_client(reports, mode=mode) as client:
        result = await client.call_tool("reports", {"times": 3}, progress_callback=fails)
    assert not result.is_error
    assert caplog.text.count("A listener of an MCP call failed") == 1


async def test_a_server_that_is_not_there_is_an_error_of_its_own_kind(mode: str) -> None:
    async with Server(tools=[reports]) as server:
        with pytest.raises(MCPError):
            await Client(f"{server.mcp_url}/nothing", mode=mode).__aenter__()
        url = server.mcp_url
    with pytest.raises(httpx2.ConnectError):
        await Client(url, mode=mode).__aenter__()


async def test_a_server_that_has_gone_is_an_error_of_its_own_kind_too(mode: str) -> None:
    async def call() -> None:
        server = await Server(tools=[reports]).__aenter__()
        async with Client(server.mcp_url, mode=mode) as client:
            await server.__aexit__(None, None, None)
            await client.call_tool("reports", {"times": 1})

    # The latter if the client notices on another connection before it calls.
    with anyio.fail_after(PATIENT), pytest.raises((httpx2.ConnectError, MCPError)):
        await call()


async def long_text(progress: Progress, length: int) -> str:
    """Report, so that the result is sent as an event, and return a long text."""
    progress.report("long")
    return "x" * length


async def test_a_result_may_be_long(mode: str) -> None:
    async with Server(tools=[long_text]) as server, Client(server.mcp_url, mode=mode) as client:
        result = await client.call_tool("long_text", {"length": 2_000_000})
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert content.text == "x" * 2_000_000


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
async def test_a_server_on_this_machine_is_not_reached_through_a_proxy(
    mode: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    for host in ("127.0.0.1", "localhost"):
        async with Server(tools=[reports]) as server:
            url = server.mcp_url.replace("127.0.0.1", host)
            async with Client(url, mode=mode) as client:
                assert not (await client.call_tool("reports", {"times": 1})).is_error


async def test_a_server_elsewhere_is_reached_through_the_proxy(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Server(tools=[reports]) as server:
        monkeypatch.setenv("HTTP_PROXY", server.mcp_url.removesuffix("/mcp"))
        # The name does not resolve, so this answer can only come from the server in between.
        with pytest.raises(MCPError, match="error response"):
            await Client("http://mcp.example/mcp", mode=mode).__aenter__()


async def test_an_error_of_the_protocol_is_raised_as_it_is(mode: str) -> None:
    async with a_client(reports, mode=mode) as client:
        with pytest.raises(MCPError, match="cursor"):
            await client.sdk.list_tools(cursor="unknown")
        result = await client.call_tool("nothing")
    assert result.is_error


def opens() -> types.CallToolResult:
    """Name a stream, as any server may."""
    named = [{"id": "x", "name": "odd"}]
    text = types.TextContent(text="open")
    return types.CallToolResult(content=[text], _meta={"opentabs/streams": named})


async def test_a_stream_that_cannot_be_read_does_not_end_the_connection(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked = anyio.Event()

    async def stream_read(id: str, after: int, wait_seconds: float) -> dict[str, Any]:  # noqa: A002, ARG001
        """Return invalid updates."""
        asked.set()
        return {"updates": [{"what": "?"}], "open": True, "more": False}

    async with a_client(opens, stream_read, reports, mode=mode, on_message=print) as client:
        await client.call_tool("opens")
        with anyio.fail_after(PATIENT):
            await asked.wait()
            await until_all_wait()
        result = await client.call_tool("reports", {"times": 1})
    assert not result.is_error
    assert "Stopped following the stream odd" in caplog.text
