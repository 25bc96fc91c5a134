"""Clients of `opentabs serve` are notified of a newly built plugin, and can call it at once."""

import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from mcp.client.stdio import StdioServerParameters

from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from tests.clients import hearing


@asynccontextmanager
async def serving_http(command: list[str]) -> AsyncGenerator[str]:
    """Run `opentabs serve`; yield the address for MCP clients."""
    async with await anyio.open_process(command, stdout=None) as process:
        assert process.stderr is not None
        said = ""
        with anyio.fail_after(PATIENT):
            async for text in TextReceiveStream(process.stderr):
                said += text
                if found := re.search(r"MCP at (\S+)\n", said):
                    yield found[1]
                    break
            else:
                pytest.fail(said)
        process.terminate()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_client_is_notified_of_a_new_version_and_can_call_it(
    tmp_path: Path, site: str, mode: str, transport: str
) -> None:
    plugin = write_plugin(tmp_path / "chat", "1", tools=["wait"])
    serve = [sys.executable, "-m", "opentabs_py", "serve", "--plugin", str(plugin)]
    serve += ["--open", f"{site}/page"]

    async def check(target: object) -> None:
        async with hearing(target, mode) as heard:
            assert await heard.tools() == ["chat_wait", "tabs_close", "tabs_list", "tabs_open"]

            write_plugin(plugin, "2", tools=["version"])
            await heard.wait_for_change()

            assert await heard.tools() == ["chat_version", "tabs_close", "tabs_list", "tabs_open"]
            with anyio.fail_after(PATIENT):
                result = await heard.client.call_tool("chat_version", {})
            assert result.structured_content == {"version": "2"}

    if transport == "stdio":
        command, *args = [*serve, "--stdio"]
        await check(StdioServerParameters(command=command, args=args, env=dict(os.environ)))
    else:
        async with serving_http([*serve, "--port", "0"]) as url:
            await check(url)
