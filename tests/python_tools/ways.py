"""The ways to call a tool: in the process, over stdio and over HTTP, in both eras of MCP."""

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import types
from mcp.client.stdio import StdioServerParameters

from opentabs_py.client import Client
from opentabs_py.session.session import Server
from tests.waiting import PATIENT

SAMPLES = Path(__file__).parent / "samples.py"
MODES = {"2026": "auto", "initialize": "legacy"}
REMOTE = [f"{transport} {era}" for transport in ("stdio", "HTTP") for era in MODES]
ALL = ["in process", *REMOTE]
STDIO = StdioServerParameters(
    command=sys.executable,
    args=["-m", "opentabs_py", "serve", "--stdio", "--tools", str(SAMPLES)],
    env={"OPENTABS_AUDIT": "false"},  # the SDK does not pass on that of the tests
)


@dataclass
class Outcome:
    """The outcome of a call, and what was reported during the call."""

    result: types.CallToolResult
    progress: list[tuple[float | None, float | None, str | None]]

    @property
    def messages(self) -> list[str | None]:
        return [message for _, _, message in self.progress]

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.result.content if isinstance(each, types.TextContent)]

    @property
    def text(self) -> str:
        [text] = self.texts
        return text


@dataclass
class Way:
    """One way to the tools.

    Attributes:
        client: The MCP client, unless this is in the process.
        said: The updates of streams, in the form of the transcript.
    """

    name: str
    client: Client | None = None
    server: Server | None = None
    said: list[str] = field(default_factory=list[str])
    heard: anyio.Event = field(default_factory=anyio.Event)

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Outcome:
        progress: list[tuple[float | None, float | None, str | None]] = []
        with anyio.fail_after(PATIENT):
            if self.client is not None:
                result = await self.client.call_tool(
                    name, arguments, progress_callback=lambda *each: progress.append(each)
                )
                return Outcome(result, progress)
            assert self.server is not None
            result = await self.server.call_tool(
                name,
                arguments,
                on_progress=lambda report: progress.append(
                    (report.progress, report.total, report.message)
                ),
            )
            return Outcome(result, progress)

    async def tools(self) -> dict[str, types.Tool]:
        assert self.client is not None
        return {tool.name: tool for tool in (await self.client.sdk.list_tools()).tools}

    async def wait_said(self, last: str) -> None:
        with anyio.fail_after(PATIENT):
            while last not in self.said:
                self.heard = anyio.Event()
                await self.heard.wait()

    def say(self, text: str) -> None:
        self.said.append(text)
        self.heard.set()


@asynccontextmanager
async def connected(name: str, target: Any) -> AsyncGenerator[Way]:
    way = Way(name)
    async with Client(target, mode=MODES[name.split()[1]], on_message=way.say) as way.client:
        yield way
