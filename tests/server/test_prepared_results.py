"""Results that the server serializes itself arrive as the SDK would send them."""

import json
import logging
import sys
from math import inf, nan

import pytest
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.types import TextContent

from opentabs_py.core.progress import ProgressReport
from tests.fakes import FakeBridge
from tests.served import Served

pytestmark = pytest.mark.anyio

VALUES: list[object] = [
    {"a": [1.5, None, 'say "x" \\ \n \u00e9\u2028'], "content": []},
    {},
    [],
    [{"content": []}],
    'a "text" with \\ and \n',
    "",
    None,
    7,
]

# Each call returns the next value.
OVER_STDIO = """
import json, sys
import anyio
from opentabs_py.core.progress import ProgressReport
from opentabs_py.server.mcp.stdio import serve_stdio
from tests.fakes import FakeBridge
from tests.served import Served

values = iter(json.loads(sys.argv[1]))

class Bridge(FakeBridge):
    async def call(self, *args):
        self.value = next(values)
        return await super().call(*args)

served = Served(Bridge(reports=[ProgressReport(0, 1)]))
anyio.run(lambda: serve_stdio(served.server, line_limit=2**24))
"""


async def ignore(progress: float, total: float | None, message: str | None) -> None:
    pass


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("value", VALUES)
async def test_a_client_over_http_gets_the_result_that_one_in_memory_gets(
    value: object, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    served = Served(FakeBridge(value=value, reports=[ProgressReport(0, 1)]))
    async with Client(served.server, mode=mode) as client:
        expected = await client.call_tool("chat_send", {})
    async with served.over_http() as url, Client(url, mode=mode) as client:
        document = await client.call_tool("chat_send", {})
        in_stream = await client.call_tool("chat_send", {}, progress_callback=ignore)
    assert document == in_stream == expected
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_number_that_json_lacks_arrives_as_null(mode: str) -> None:
    served = Served(FakeBridge(value={"big": inf, "list": [-inf, nan]}))
    async with served.over_http() as url, Client(url, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    text = '{"big":null,"list":[null,null]}'
    assert result.content == [TextContent(text=text)]
    assert result.structured_content == json.loads(text)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_result_of_many_parts_arrives_whole(mode: str) -> None:
    value = {"text": '\u00e9"\\' * 1_000_000}
    served = Served(FakeBridge(value=value))
    async with served.over_http() as url, Client(url, mode=mode) as client:
        result = await client.call_tool("chat_send", {})
    assert result.structured_content == value


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_stdio_gets_the_results_that_one_in_memory_gets(mode: str) -> None:
    expected = []
    for value in VALUES:
        async with Client(Served(FakeBridge(value=value)).server, mode=mode) as client:
            expected.append(await client.call_tool("chat_send", {}))
    command = ["-c", OVER_STDIO, json.dumps(VALUES)]
    transport = stdio_client(StdioServerParameters(command=sys.executable, args=command))
    async with Client(transport, mode=mode) as client:
        results = [
            await client.call_tool("chat_send", {}, progress_callback=ignore) for _ in VALUES
        ]
    assert results == expected


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_over_stdio_gets_the_list_that_one_in_memory_gets(mode: str) -> None:
    async with Client(Served().server, mode=mode) as client:
        expected = await client.list_tools()
    transport = stdio_client(
        StdioServerParameters(command=sys.executable, args=["-c", OVER_STDIO, "[]"])
    )
    async with Client(transport, mode=mode) as client:
        assert await client.list_tools() == expected
