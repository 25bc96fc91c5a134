"""Streams of Python tools in a fleet: each is in the worker that ran the tool."""

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import types
from mcp.client import Client

from e2e.fleet.members import OPENTABS, Fleet, endpoint
from opentabs_py import Module, skill

COUNTER = """
import os
from threading import Thread
from time import sleep

from opentabs_py import Module, ToolStream, skill


class Counter(Module):
    @skill
    def begin(self, key: str) -> str:
        stream = self.start_tool("count")
        stream.update(key)
        Thread(target=self._watch, args=(stream, key), daemon=True).start()
        return key

    def _watch(self, stream: ToolStream, key: str) -> None:
        while stream.is_open:
            sleep(0.02)
        with open(os.environ["RUNS"], "a") as runs:
            runs.write(f"cancelled {key}\\n")
"""


class Local(Module):
    """A module of an endpoint."""

    @skill
    def begin_here(self, key: str) -> str:
        """Start a stream with one update."""
        self.start_tool("count").update(key)
        return key


def opened(result: types.CallToolResult) -> str:
    """Return the id of the stream that a call has opened."""
    assert result.meta is not None, result.content
    [stream] = result.meta["opentabs/streams"]
    stream_id: str = stream["id"]
    return stream_id


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_stream_is_read_and_ended_in_the_worker_that_has_it(
    fleet: Fleet, tmp_path: Path, mode: Any
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    for name in ("one", "two"):
        fleet.worker(name, "--tools", "counter.py:Counter")
    async with endpoint(fleet, workers=2) as tabs, Client(tabs.mcp_url, mode=mode) as client:
        for key in ("a", "b"):  # one in each worker
            stream = opened(await client.call_tool("begin", {"key": key}))
            for _ in range(2):
                read = await client.call_tool("stream_read", {"id": f"stream://{stream}"})
                assert read.structured_content is not None, read.content
                assert read.structured_content["updates"] == [{"n": 1, "text": key}]
            await client.call_tool("stream_stop", {"id": stream})
            await fleet.until("cancelled", key)


async def test_a_stream_ends_with_the_session_of_its_client(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    fleet.worker("one", "--tools", "counter.py:Counter")
    async with endpoint(fleet, workers=1) as tabs:
        async with Client(tabs.mcp_url, mode="legacy") as client:
            stream = opened(await client.call_tool("begin", {"key": "a"}))
            async with Client(tabs.mcp_url, mode="legacy") as other:
                stolen = await other.call_tool("stream_read", {"id": stream})
                assert stolen.meta is not None
                assert stolen.meta["opentabs/error"]["code"] == "UNKNOWN_STREAM"
            assert not fleet.count("cancelled")
        await fleet.until("cancelled", "a")


async def test_clients_without_a_session_have_streams_of_their_own(
    fleet: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    fleet.worker("one", "--tools", "counter.py:Counter")
    async with endpoint(fleet, workers=1) as tabs, Client(tabs.mcp_url) as client:
        first = opened(await client.call_tool("begin", {"key": "a"}))
        second = opened(await client.call_tool("begin", {"key": "b"}))
        assert first != second


async def test_a_stream_that_a_command_has_opened_is_read_by_another(
    fleet: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    fleet.worker("one", "--tools", "counter.py:Counter")

    async def call(tool: str, arguments: dict[str, str]) -> str:
        command = [*OPENTABS, "call", tool, json.dumps(arguments), *fleet.options]
        done = await anyio.run_process(command)
        assert b"ends with this command" not in done.stderr
        return done.stdout.decode()

    async with endpoint(fleet, workers=1):
        said = await call("begin", {"key": "a"})
        [stream] = re.findall(r"stream_read with the id '(\w+)'", said)
        read = json.loads(await call("stream_read", {"id": stream}))
        assert read["updates"] == [{"n": 1, "text": "a"}]


async def test_an_endpoint_with_streams_of_its_own_also_reads_those_of_its_workers(
    fleet: Fleet, tmp_path: Path
) -> None:
    (tmp_path / "counter.py").write_text(COUNTER)
    fleet.worker("one", "--tools", "counter.py:Counter")
    async with endpoint(fleet, workers=1, tools=[Local]) as tabs:
        tabs.replace_tools([Local])  # as `opentabs dev` does
        async with Client(tabs.mcp_url, mode="legacy") as client:
            for tool in ("begin", "begin_here"):
                stream = opened(await client.call_tool(tool, {"key": tool}))
                read = await client.call_tool("stream_read", {"id": stream})
                assert read.structured_content is not None, read.content
                assert read.structured_content["updates"] == [{"n": 1, "text": tool}]
