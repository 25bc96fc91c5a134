"""Clients of both eras, over both transports, are told when the list of tools is another."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from opentabs_py.core.dispatch import Limits
from opentabs_py.server.http import create_app, serve_http
from opentabs_py.server.listen import bind
from opentabs_py.server.mcp import create_mcp_server
from opentabs_py.server.toolbox import Toolbox
from tests.clients import CHANGED, PATIENT, hearing
from tests.fakes import FakeBridge, Json, a_manifest, a_tool

pytestmark = pytest.mark.anyio

INITIALIZE: Json = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
INITIALIZED: Json = {"method": "notifications/initialized"}


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> str:
    """The eras."""
    return str(request.param)


class Served:
    """A toolbox and the server on top of it."""

    def __init__(self) -> None:
        self.bridge = FakeBridge(value={})
        self.toolbox = Toolbox(self.bridge, limits=Limits(), input_limit=1000)
        self.serve("send")
        self.server = create_mcp_server(self.toolbox, version="1")

    def serve(self, *tools: str, **more: object) -> None:
        self.toolbox.set_plugins([a_manifest(*(a_tool(tool, **more) for tool in tools))])

    @asynccontextmanager
    async def over_http(self) -> AsyncGenerator[str]:
        app = create_app(self.server, self.bridge, request_limit=100_000)
        listener = bind("127.0.0.1", 0)
        try:
            async with serve_http(app, listener):
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            listener.close()


async def test_a_server_says_that_its_list_can_change(mode: str) -> None:
    async with Served().over_http() as url, hearing(url, mode) as heard:
        capability = heard.client.server_capabilities.tools
    assert capability is not None
    assert capability.list_changed is True


@pytest.mark.parametrize("transport", ["http", "streams"])
async def test_a_client_is_told_of_a_change_and_finds_it_in_the_list(
    mode: str, transport: str
) -> None:
    served = Served()
    async with (
        served.over_http() as url,
        hearing(url if transport == "http" else served.server, mode) as heard,
    ):
        assert await heard.tools() == ["chat_send"]

        served.serve("send", "read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read", "chat_send"]

        served.serve("read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read"]


@pytest.mark.parametrize(
    "change",
    [
        lambda served: served.serve("read"),
        lambda served: served.serve("send", description="Does it better."),
        lambda served: served.serve("send", displayName="Another"),
        lambda served: served.serve("send", output_schema={"type": "object", "required": ["a"]}),
        lambda served: served.serve(
            "send", input_schema={"type": "object", "properties": {"a": {"type": "string"}}}
        ),
    ],
    ids=["name", "description", "title", "output", "input"],
)
async def test_whatever_clients_see_of_a_tool_counts(change: Callable[[Served], None]) -> None:
    served = Served()
    calls: list[None] = []
    served.toolbox.subscribe(lambda: calls.append(None))
    change(served)
    assert len(calls) == 1
    change(served)
    assert len(calls) == 1


async def test_what_clients_do_not_see_is_not_told(mode: str) -> None:
    served = Served()
    async with hearing(served.server, mode) as heard:
        served.serve("send", icon="bell", group="Messages", summary="Sends")
        served.serve("send", "read")
        await heard.wait_for_change()
        assert await heard.tools() == ["chat_read", "chat_send"]  # all before it has arrived
        assert not heard.has_heard


async def test_a_client_that_left_is_forgotten(mode: str) -> None:
    served = Served()
    async with served.over_http() as url:
        async with hearing(url, mode):
            assert len(served.toolbox._listeners) == 1
        async with hearing(url, mode) as heard:
            served.serve("read")
            await heard.wait_for_change()
            assert len(served.toolbox._listeners) == 1


class RawClient:
    """A client of the initialize era that says what it is told to, and reads only when asked."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader, self._writer = reader, writer

    async def say(self, message: Json) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message})
        with anyio.fail_after(PATIENT):
            await self._writer.send(
                SessionMessage(types.jsonrpc_message_adapter.validate_json(text))
            )

    async def read(self) -> Json:
        with anyio.fail_after(PATIENT):
            message = await self._reader.receive()
        assert isinstance(message, SessionMessage)
        return message.message.model_dump(exclude_unset=True)


@asynccontextmanager
async def raw_client(server: Server[Any]) -> AsyncGenerator[RawClient]:
    async with (
        create_client_server_memory_streams() as (streams, ends),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *ends, server.create_initialization_options())
        client = RawClient(*streams)
        await client.say(INITIALIZE)
        assert (await client.read())["id"] == 1
        yield client
        tasks.cancel_scope.cancel()


async def test_a_client_that_does_not_read_holds_up_nobody(mode: str) -> None:
    served = Served()
    async with raw_client(served.server) as slow, hearing(served.server, mode) as heard:
        await slow.say(INITIALIZED)
        for tools in (["a"], ["b"], ["c"]):
            served.serve(*tools)  # is no coroutine: a reload waits for no client
            await heard.wait_for_change()
            assert await heard.tools() == [f"chat_{tool}" for tool in tools]


async def test_changes_that_a_slow_client_missed_are_told_as_one() -> None:
    served = Served()
    async with raw_client(served.server) as slow:
        await slow.say(INITIALIZED)
        await slow.say(INITIALIZED)  # saying it twice doubles nothing
        await anyio.wait_all_tasks_blocked()
        for number in range(10):
            served.serve(f"tool{number}")
            await anyio.wait_all_tasks_blocked()

        told = [await slow.read() for _ in range(3)]  # one was read ahead, one was on its way
        await slow.say({"id": 2, "method": "ping"})
        answer = await slow.read()

    assert [each.get("method") for each in told] == [CHANGED] * 3
    assert answer["id"] == 2
